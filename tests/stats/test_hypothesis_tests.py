from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from statsmodels.stats.proportion import confint_proportions_2indep, proportions_ztest

from evenhand.core.errors import InputError
from evenhand.stats.hypothesis_tests import chi_square, paired_difference, two_proportions, wilcoxon


def test_two_proportions_gives_the_printed_p_of_bold() -> None:
    # BOLD 6.1.2: positive sentiment male 0.17041, female 0.17763, "binomial proportion test: 0.204", over six
    # sources of 2,048 and 1,156 texts: 0.17041 x 12,288 = 2,094 and 0.17763 x 6,936 = 1,232.
    found = two_proportions(1_232, 6_936, 2_094, 12_288)
    assert found.estimate == pytest.approx(0.17763 - 0.17041, abs=1e-5)
    assert found.p == pytest.approx(0.204, abs=5e-4)


@given(st.integers(1, 80), st.integers(1, 80), st.data())
def test_two_proportions_equals_statsmodels(n_a: int, n_b: int, data: st.DataObject) -> None:
    a, b = data.draw(st.integers(0, n_a)), data.draw(st.integers(0, n_b))
    if a + b in (0, n_a + n_b):
        return
    found = two_proportions(a, n_a, b, n_b)
    _, p = proportions_ztest([a, b], [n_a, n_b])
    low, high = confint_proportions_2indep(a, n_a, b, n_b, method="newcomb")
    assert found.p == pytest.approx(p, abs=1e-9)
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-9)


def test_two_proportions_without_variation_or_values() -> None:
    assert two_proportions(0, 5, 0, 9).null_reason == "no variation"
    assert two_proportions(0, 5, 0, 9).estimate == 0
    empty = two_proportions(0, 0, 1, 9)
    assert (empty.estimate, empty.p, empty.null_reason) == (None, None, "no values")
    with pytest.raises(InputError, match=r"^3 successes of 2\."):
        two_proportions(3, 2, 1, 9)


def test_chi_square_by_hand() -> None:
    # Expected counts 15, 15, 15, 15; chi-square = 4 x 5^2 / 15 = 6.6667 with 1 degree of freedom.
    found = chi_square([[10, 20], [20, 10]])
    assert found.statistic == pytest.approx(20 / 3)
    assert (found.df, found.n, found.warning) == (1, 60, None)
    assert found.p == pytest.approx(scipy_stats.chi2.sf(20 / 3, 1))


def test_chi_square_of_two_groups_is_the_pooled_z_squared() -> None:
    z = two_proportions(12, 40, 30, 60)
    assert chi_square([[12, 28], [30, 30]]).p == pytest.approx(z.p)


def test_chi_square_warns_of_small_expected_counts_and_drops_empty_labels() -> None:
    found = chi_square([[3, 0, 2], [9, 0, 30]])
    assert found.df == 1
    # expected: 5 x 12/44 = 1.36, 5 x 32/44 = 3.64, 39 x 12/44 = 10.6, 39 x 32/44 = 28.4
    assert found.warning == "2 of 4 expected counts are below 5"


@pytest.mark.parametrize(
    ("table", "reason"), [([[0, 0], [0, 0]], "no values"), ([[4, 0], [9, 0]], "no variation")]
)
def test_chi_square_that_cannot_be_judged_says_why(table: list[list[int]], reason: str) -> None:
    found = chi_square(table)
    assert (found.statistic, found.p, found.null_reason) == (None, None, reason)


def test_chi_square_refuses_what_is_no_table_of_counts() -> None:
    with pytest.raises(InputError, match=r"^a table of shape \(2,\)\. Expected: rows of counts"):
        chi_square([1, 2])


@given(st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9)), min_size=2, max_size=40))
def test_paired_t_equals_scipy(pairs: list[tuple[float, float]]) -> None:
    a, b = np.array(pairs).T
    if np.ptp(a - b) < 1e-6:
        return
    found, expected = paired_difference(a, b), scipy_stats.ttest_rel(a, b)
    assert found.estimate is not None
    assert found.se is not None
    assert found.estimate / found.se == pytest.approx(expected.statistic, rel=1e-6, abs=1e-9)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-9)
    assert found.estimate == pytest.approx(float((a - b).mean()), abs=1e-12)


def test_wilcoxon_by_hand() -> None:
    # Differences 1, 2, 3, 4, 5, -6: ranks of the negative sum to 6. Of 2^6 sign patterns, 14 have a rank sum
    # of 6 or less (1 + 1 + 1 + 2 + 2 + 3 + 4): p = 2 x 14 / 64.
    found = wilcoxon([1.0, 2.0, 3.0, 4.0, 5.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 6.0])
    assert found.statistic == 6
    assert found.p == pytest.approx(28 / 64)
    assert found.estimate == 2.5


def test_wilcoxon_with_zeros_and_ties_equals_scipy() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 5, 60).astype(float), rng.integers(0, 6, 60).astype(float)
    expected = scipy_stats.wilcoxon(a, b, zero_method="pratt", method="asymptotic")
    assert wilcoxon(a, b).p == pytest.approx(expected.pvalue)


@pytest.mark.parametrize("test", [paired_difference, wilcoxon])
def test_pairs_that_cannot_be_judged_say_why(test: object) -> None:
    assert callable(test)
    assert test([], []).null_reason == "no values"
    assert test([1.0], [2.0]).null_reason == "one pair"
    assert test([1.0, 2.0], [1.0, 2.0]).null_reason == "no variation"
    with pytest.raises(InputError, match=r"^a has 2 values and b has 1\."):
        test([1.0, 2.0], [1.0])


@pytest.mark.parametrize(
    ("emotion", "label", "p"),
    [("anger", "0", 0.938), ("fear", "1", 0.0309), ("joy", "2", 0.995), ("sadness", "3", 9.57e-17)],
)
def test_paired_t_gives_the_reference_p_of_published_predictions(
    data: Path, emotion: str, label: str, p: float
) -> None:
    # Sentences without a name, male and female in file order, where both predictions are right.
    file = data / "affective" / "eec_emotion_only_bert_predictions.csv"
    with file.open(encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if not row["Race"] and row["Emotion"] == emotion]
    male, female = ([row for row in rows if row["Gender"] == gender] for gender in ("male", "female"))
    right = [(m, f) for m, f in zip(male, female, strict=True) if m["Prediction"] == f["Prediction"] == label]
    scores = [[float(row["Prediction Intensity"]) for row in pair] for pair in right]
    assert paired_difference(*zip(*scores, strict=True)).p == pytest.approx(p, rel=2e-3)
