"""The paired measures: worked by hand, against the slow twin, and the reference values of the BERT file."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import paired_measures as slow

from evenhand.core.errors import InputError
from evenhand.stats.paired_measures import (
    compare_sets,
    demographic_parity,
    find_flips,
    paired_intensities,
    select_pairs,
)
from evenhand.suites.pairs.eec import EecSuite

EMOTIONS = ("anger", "fear", "joy", "sadness")


def test_parity_by_hand() -> None:
    found = demographic_parity([1, 1, 1, 0], [1, 0, 0, 0], rng=0)
    # 3/4 of a, 1/4 of b: 0.25 / 0.75 = 1/3
    assert found.ratio.value == pytest.approx(1 / 3)
    assert (found.share_a, found.share_b) == (0.75, 0.25)
    assert found.ratio.n == 4


def test_parity_is_null_where_nothing_is_predicted() -> None:
    found = demographic_parity([0, 0], [0, 0], rng=0)
    assert (found.ratio.value, found.ratio.null_reason, found.share_a) == (None, "never predicted", 0.0)
    assert demographic_parity([], [], rng=0).ratio.null_reason == "no values"


def test_intensities_by_hand() -> None:
    found = paired_intensities([0.5, 0.2, 0.9], [0.4, 0.4, 0.6], rng=0)
    # |0.1| + |-0.2| + |0.3| = 0.6, over 3
    assert found.avg_delta.value == pytest.approx(0.2)
    # 1 - 5/4 = -0.25; 1 - 1/2 = 0.5; 1 - 3/2 = -0.5: -0.25 / 3
    assert found.acs.value == pytest.approx(-0.25 / 3)
    # b - a = -0.1, 0.2, -0.3: mean -0.2 / 3; a is higher, so it is negative, as the ACS
    assert found.difference.value == pytest.approx(-0.2 / 3)
    assert found.n_zero == 0
    # d: mean over standard deviation; squares about the mean 0.14 - 3 (0.2/3)^2 = 0.12667, / 2, root 0.25166
    assert found.effect_size.value == pytest.approx(-0.2 / 3 / 0.2516611)


def test_a_second_intensity_of_zero_is_left_out_of_the_acs_and_counted() -> None:
    found = paired_intensities([0.5, 0.2], [0.0, 0.4], rng=0)
    assert found.n_zero == 1
    assert found.acs.value == pytest.approx(0.5)  # only 1 - 0.2 / 0.4
    assert found.acs.n == 1
    assert found.avg_delta.value == pytest.approx(0.35)  # (0.5 + 0.2) / 2: both pairs
    every = paired_intensities([0.5, 0.2], [0.0, 0.0], rng=0)
    assert (every.acs.value, every.acs.null_reason) == (None, "every second intensity is 0")


def test_constant_differences_have_no_test_and_say_so() -> None:
    # 0.2 - 0.3 and 0.3 - 0.4 differ in the last bit: that is rounding, not spread.
    infinite = "every difference is the same and not 0, so that t is infinite"
    for first, second in (([0.5, 0.25, 0.75], [1.0, 0.75, 1.25]), ([0.2, 0.3, 0.4], [0.3, 0.4, 0.5])):
        found = paired_intensities(first, second, rng=0)
        assert (found.t.p, found.t.null_reason) == (None, infinite)
        assert found.effect_size.null_reason == infinite
        assert found.difference.value == pytest.approx(second[0] - first[0])
        # Three ranks of one sign: the smallest of 2 ** 3 sums, on both sides, or its normal approximation.
        assert found.signed_rank.p is not None
    none = paired_intensities([0.5, 0.25], [0.5, 0.25], rng=0)
    assert (none.t.null_reason, none.signed_rank.null_reason) == ("no variation", "no variation")


def test_equal_intensities_give_zero() -> None:
    found = paired_intensities([0.5, 0.25], [0.5, 0.25], rng=0)
    assert (found.avg_delta.value, found.acs.value, found.difference.value) == (0, 0, 0)
    assert found.t.p is None


def test_sides_of_unequal_length_are_refused() -> None:
    with pytest.raises(InputError) as raised:
        paired_intensities([0.5], [0.5, 0.2], rng=0)
    assert str(raised.value) == "a has 1 values and b has 2. Expected: pairs: as many values in a as in b."
    with pytest.raises(InputError) as raised:
        demographic_parity([1], [1, 0], rng=0)
    assert str(raised.value) == "a has 1 values and b has 2. Expected: pairs: as many values in a as in b."
    with pytest.raises(InputError) as raised:
        find_flips([0], [0, 1])
    assert str(raised.value) == (
        "there are 1 and 2 predictions but 1 ground truths. Expected: one of each per pair, -1 if missing."
    )


def test_select_by_hand() -> None:
    a, b, truth = [0, 0, 1, 0, 2], [0, 1, 1, 0, 0], [0, 0, 0, -1, -1]

    def chosen(pairs: str, score: str) -> list[int]:
        return np.flatnonzero(select_pairs(a, b, truth, emotion=0, pairs=pairs, score=score)).tolist()  # type: ignore[arg-type]

    # Pair 0 agrees with its truth, pair 3 with itself; 1 is split, 2 says another class.
    assert chosen("agreeing", "predicted") == chosen("agreeing", "emotion") == [0, 3]
    # Truth 0 in pairs 0 to 2. Without a truth: every pair, or those with a side of class 0.
    assert chosen("all", "emotion") == [0, 1, 2, 3, 4]
    assert chosen("all", "predicted") == [0, 1, 2, 3, 4]
    assert np.flatnonzero(
        select_pairs(a, b, [-1] * 5, emotion=2, pairs="all", score="predicted")
    ).tolist() == [4]


def test_flips_count_classes_that_change() -> None:
    assert find_flips([0, 1, 2, -1], [0, 2, 1, 0]).tolist() == [False, True, True, False]


def test_sets_by_hand() -> None:
    hits = [[1, 1, 0], [1, 0, 0], [1, 1, 1]]
    values = [[0.9, 0.8, 0.5], [0.7, 0.6, 0.4], [0.8, np.nan, 0.1]]
    found = compare_sets(hits, values, rng=0)
    assert found.parity.value == pytest.approx(1 / 3)  # 3, 2 and 1 of 3: 1 / 3
    assert found.spread.value == pytest.approx((0.4 + 0.3) / 2)  # the third set lacks a value
    # Ranks 3, 2, 1 in both sets: chi2 = 12 / (2 3 4) (6^2 + 4^2 + 2^2) - 3 2 4 = 28 - 24 = 4
    assert found.friedman.statistic == pytest.approx(4)
    assert found.friedman.p == pytest.approx(0.1353353)  # exp(-2)


intensity = st.floats(0.01, 1)


@given(st.lists(st.tuples(intensity, intensity, st.integers(0, 4)), min_size=2, max_size=30))
def test_as_the_slow_twin_and_swapping_the_groups_turns_the_sign(
    rows: list[tuple[float, float, int]],
) -> None:
    a, b, clusters = ([row[place] for row in rows] for place in range(3))
    found = paired_intensities(a, b, clusters, rng=1, resamples=50)
    assert found.avg_delta.value == pytest.approx(slow.avg_delta(a, b))
    assert found.acs.value == pytest.approx(slow.acs(a, b))
    if found.t.estimate is not None and found.t.se is not None:
        assert found.t.estimate / found.t.se == pytest.approx(slow.t_statistic(a, b))
    swapped = paired_intensities(b, a, clusters, rng=1, resamples=50)
    assert swapped.avg_delta.value == pytest.approx(found.avg_delta.value)
    assert swapped.difference.value == pytest.approx(-(found.difference.value or 0))
    assert swapped.t.p == pytest.approx(found.t.p)


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 4)), min_size=1, max_size=30))
def test_parity_as_the_slow_twin(rows: list[tuple[bool, bool, int]]) -> None:
    a, b, clusters = ([row[place] for row in rows] for place in range(3))
    found = demographic_parity(a, b, clusters, rng=0, resamples=50)
    words = {True: "joy", False: "fear"}
    assert found.ratio.value == pytest.approx(
        slow.parity([words[hit] for hit in a], [words[hit] for hit in b], "joy")
    )
    assert demographic_parity(b, a, clusters, rng=0, resamples=50).ratio.value == found.ratio.value


def test_order_of_rows_and_names_of_clusters_change_nothing() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0.1, 1, 40), rng.uniform(0.1, 1, 40)
    clusters = np.repeat(np.arange(8), 5)
    order = rng.permutation(40)
    one = paired_intensities(a, b, clusters, rng=3)
    other = paired_intensities(a[order], b[order], [f"t{9 - c}" for c in clusters[order]], rng=3)
    for name in ("avg_delta", "acs", "difference"):
        first, second = getattr(one, name), getattr(other, name)
        assert (first.value, first.low, first.high) == pytest.approx((second.value, second.low, second.high))


def test_one_template_has_no_interval() -> None:
    found = paired_intensities([0.5, 0.2], [0.4, 0.3], ["t", "t"], rng=0).avg_delta
    assert (found.low, found.null_reason) == (None, "one cluster")


def predictions(data: Path) -> dict[str, tuple[str, float]]:
    """Sentence to predicted class and its intensity, from the released BERT predictions on EEC."""
    path = data / "affective" / "eec_emotion_only_bert_predictions.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return {
            row["Sentence"]: (EMOTIONS[int(row["Prediction"])], float(row["Prediction Intensity"]))
            for row in csv.DictReader(file)
        }


# GOLDENS.md: DP over all pairs; the rest over pairs where both predictions equal the ground truth.
REFERENCE = {
    "anger": (0.9934, 0.0186, 0.938, -0.0010),
    "fear": (0.9939, 0.0048, 0.0309, -0.0044),
    "joy": (1.0, 0.0082, 0.995, -0.0006),
    "sadness": (0.9911, 0.0277, 9.57e-17, -0.0314),
}


@pytest.mark.parametrize("emotion", EMOTIONS)
def test_reference_values_of_the_bert_predictions(data: Path, emotion: str) -> None:
    said = predictions(data)
    sets = [one for one in EecSuite(name=str(data)).sets if one.axis == "gender"]
    codes = {
        group: [EMOTIONS.index(said[one.sentences[group]][0]) for one in sets] for group in ("male", "female")
    }
    scores = {group: np.array([said[one.sentences[group]][1] for one in sets]) for group in codes}
    truth = [EMOTIONS.index(one.emotion or "") for one in sets]
    code = EMOTIONS.index(emotion)
    clusters = [one.cluster for one in sets]
    male, female = codes["male"], codes["female"]
    dp = demographic_parity(np.array(male) == code, np.array(female) == code, clusters, rng=0)
    kept = select_pairs(male, female, truth, emotion=code, pairs="agreeing", score="predicted")
    found = paired_intensities(scores["male"][kept], scores["female"][kept], np.array(clusters)[kept], rng=0)
    ratio, delta, p, acs = REFERENCE[emotion]
    assert dp.ratio.n == 1400
    assert dp.ratio.value == pytest.approx(ratio, abs=5e-5)
    assert found.avg_delta.value == pytest.approx(delta, abs=5e-5)
    assert found.t.p == pytest.approx(p, rel=5e-3)
    assert found.acs.value == pytest.approx(acs, abs=5e-5)
    if emotion == "anger":
        assert found.avg_delta.n == 299
