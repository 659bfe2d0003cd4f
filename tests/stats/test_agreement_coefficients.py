from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from statsmodels.stats.inter_rater import fleiss_kappa as fleiss_of_table
from tests.oracles.stats_agreement import alpha_slowly

from evenhand.core.errors import InputError
from evenhand.stats.agreement_coefficients import (
    AlphaScale,
    fleiss_kappa,
    krippendorff_alpha,
    rank_correlation,
    spearman,
)

# Krippendorff (2011), Computing Krippendorff's Alpha-Reliability, example C; 0 is "not rated".
OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
    [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
]
RATINGS = [(unit, row[unit]) for row in OBSERVERS for unit in range(12) if row[unit]]


@pytest.mark.parametrize(("scale", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_of_the_published_example(scale: AlphaScale, alpha: float) -> None:
    items, values = zip(*RATINGS, strict=True)
    found = krippendorff_alpha(items, values, scale=scale, rng=0, resamples=200)
    assert found.value == pytest.approx(alpha, abs=5e-4)
    assert (found.n, found.n_clusters, found.n_null) == (40, 11, 1)  # unit 12 has one rating
    assert found.low is not None
    assert found.high is not None
    assert found.low < alpha < found.high


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 5)), min_size=4, max_size=40),
    st.sampled_from(["nominal", "ordinal", "interval"]),
)
def test_alpha_equals_every_pair_of_ratings(ratings: list[tuple[int, int]], scale: AlphaScale) -> None:
    items, values = zip(*ratings, strict=True)
    found = krippendorff_alpha(items, values, scale=scale, rng=0, resamples=100)
    if found.value is not None:
        assert found.value == pytest.approx(alpha_slowly(items, values, scale), abs=1e-9)


def test_ordinal_alpha_of_many_values_is_that_of_every_pair() -> None:
    """Above 20 different labels ranks are made once: the value is the same, the interval still holds it."""
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 60, 40)
    items, values = np.repeat(np.arange(40), 3), np.repeat(truth, 3) + rng.integers(-5, 6, 120)
    found = krippendorff_alpha(items, values, scale="ordinal", rng=0, resamples=200)
    assert found.value == pytest.approx(alpha_slowly(items.tolist(), values.tolist(), "ordinal"), abs=1e-9)
    assert found.low is not None
    assert found.low < found.value


def test_intervals_are_those_of_items_drawn_one_by_one() -> None:
    rng = np.random.default_rng(6)
    truth = rng.integers(0, 3, 120)
    said = np.where(rng.random((120, 3)) < 0.7, truth[:, None], rng.integers(0, 3, (120, 3)))
    items = np.repeat(np.arange(120), 3)
    fast = fleiss_kappa(items, said.ravel(), rng=0, resamples=2000)
    drawn = [
        fleiss_kappa(items, said[rng.integers(0, 120, 120)].ravel(), rng=0, resamples=100).value
        for _ in range(300)
    ]
    assert fast.low is not None
    assert fast.high is not None
    # The standard deviation of 300 draws is known to within 4 / sqrt(600) = 16 %.
    assert (fast.high - fast.low) / 3.92 == pytest.approx(np.std(drawn), rel=0.2)


def test_fleiss_by_hand() -> None:
    # Three items, three ratings each: aab, bbb, aab -> pair agreement 1/3, 1, 1/3: mean 5/9.
    # Shares a 4/9, b 5/9: chance 41/81. kappa = (45/81 - 41/81) / (40/81) = 0.1
    found = fleiss_kappa([1, 1, 1, 2, 2, 2, 3, 3, 3], list("aabbbbaab"), rng=0, resamples=100)
    assert found.value == pytest.approx(0.1)
    assert (found.n, found.n_clusters) == (9, 3)


def test_fleiss_equals_statsmodels() -> None:
    labels = np.random.default_rng(1).integers(0, 4, (30, 5))
    table = np.stack([(labels == k).sum(axis=1) for k in range(4)], axis=1)
    found = fleiss_kappa(np.repeat(np.arange(30), 5), labels.ravel(), rng=0, resamples=100)
    assert found.value == pytest.approx(fleiss_of_table(table))


def test_fleiss_takes_different_numbers_of_ratings() -> None:
    # aa agrees (1 of 1 pair), aab in 1 of 3; c has one rating and is left out.
    # Mean 2/3; shares a 4/5, b 1/5: chance 17/25. kappa = (2/3 - 17/25) / (8/25) = -1/24
    found = fleiss_kappa(["x", "x", "y", "y", "y", "z"], ["a", "a", "a", "a", "b", "c"], rng=0, resamples=100)
    assert found.value == pytest.approx(-1 / 24)
    assert (found.n, found.n_null) == (5, 1)


@pytest.mark.parametrize(
    ("items", "labels", "reason"),
    [
        ([], [], "no item has two ratings"),
        ([1, 2], [3, 4], "no item has two ratings"),
        ([1, 1, 2, 2], [3] * 4, "no variation"),
    ],
)
def test_agreement_that_cannot_be_told_says_why(items: list[int], labels: list[int], reason: str) -> None:
    ids = np.array(items, dtype=int)
    assert fleiss_kappa(ids, labels, rng=0).null_reason == reason
    for scale in ("nominal", "ordinal", "interval"):
        found = krippendorff_alpha(ids, labels, scale=scale, rng=0)
        assert (found.value, found.null_reason) == (None, reason)


def test_an_unknown_scale_is_refused() -> None:
    with pytest.raises(InputError, match=r"^scale is 'ratio'\. Expected: nominal, ordinal or interval\.$"):
        krippendorff_alpha([1, 1], [1, 2], scale="ratio", rng=0)  # type: ignore[arg-type]


def test_full_agreement_is_one() -> None:
    items, values = np.repeat(np.arange(20), 3), np.repeat(np.arange(20) % 4, 3)
    assert fleiss_kappa(items, values, rng=0, resamples=100).value == pytest.approx(1)
    for scale in ("nominal", "ordinal", "interval"):
        found = krippendorff_alpha(items, values, scale=scale, rng=0, resamples=100)
        assert found.value == pytest.approx(1)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=40))
def test_spearman_equals_scipy(pairs: list[tuple[int, int]]) -> None:
    x, y = zip(*pairs, strict=True)
    found = spearman(x, y, rng=0, resamples=100)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert (found.value, found.null_reason) == (None, "no variation")
    else:
        assert found.value == pytest.approx(scipy_stats.spearmanr(x, y).statistic, abs=1e-12)


def test_spearman_has_an_interval_over_clusters() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=200)
    y = x + rng.normal(size=200)
    rows = spearman(x, y, rng=0, resamples=500)
    doubled = spearman(np.repeat(x, 2), np.repeat(y, 2), np.repeat(np.arange(200), 2), rng=0, resamples=500)
    assert doubled.value == pytest.approx(rows.value)
    assert (doubled.low, doubled.high) == pytest.approx((rows.low, rows.high), abs=0.02)
    assert spearman([1.0], [2.0], rng=0).null_reason == "fewer than two values"
    with pytest.raises(InputError, match=r"^x has 2 values and y has 1\."):
        spearman([1.0, 2.0], [1.0], rng=0)


def test_full_agreement_has_no_interval():
    items, labels = np.repeat(np.arange(12), 2), np.repeat(np.arange(12) % 2, 2)
    for found in (
        fleiss_kappa(items, labels, rng=0),
        krippendorff_alpha(items, labels, scale="ordinal", rng=0),
        spearman(np.arange(12), np.arange(12), rng=0),
    ):
        assert found.value == pytest.approx(1.0)
        assert (found.low, found.high, found.null_reason) == (None, None, "no variation")


def test_no_order_of_three_is_significant():
    # Two of the six orders of three values correlate fully: p = 1/3.
    assert rank_correlation([1, 2, 3], [1, 2, 3], rng=0).p == pytest.approx(1 / 3)
