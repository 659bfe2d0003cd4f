from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from statsmodels.stats.proportion import proportion_confint
from tests.stats.closeness import same

from evenhand.core.errors import InputError
from evenhand.stats.contrasts import clustered_gap
from evenhand.stats.intervals import clustered_mean, clustered_proportion, wilson


def test_wilson_by_hand() -> None:
    # z = 1.959964; z^2 / n = 3.841459 / 10 = 0.3841459
    # centre = (0.3 + 0.19207) / 1.3841459 = 0.355508
    # half = sqrt(0.3841459 * 0.21 + 0.1475681 / 4) / 1.3841459 = sqrt(0.1175627) / 1.3841459 = 0.247715
    found = wilson(3, 10)
    assert found.value == 0.3
    assert found.low == pytest.approx(0.107793, abs=2e-6)
    assert found.high == pytest.approx(0.603222, abs=2e-6)
    assert (found.n, found.n_clusters, found.null_reason) == (10, 10, None)


@given(st.integers(1, 500), st.data())
def test_wilson_equals_statsmodels(n: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(0, n))
    found = wilson(k, n, level=0.9)
    low, high = proportion_confint(k, n, alpha=0.1, method="wilson")
    assert found.low == pytest.approx(low, abs=1e-12)
    assert found.high == pytest.approx(high, abs=1e-12)


def test_wilson_of_nothing_is_null_with_a_reason() -> None:
    found = wilson(0, 0, n_null=7)
    assert (found.value, found.low, found.high) == (None, None, None)
    assert (found.n_null, found.null_reason) == (7, "no values")


def test_wilson_refuses_more_successes_than_rows() -> None:
    with pytest.raises(InputError, match=r"^11 successes of 10\. Expected: successes from 0 to n\.$"):
        wilson(11, 10)


def test_proportion_at_the_ends_has_a_width() -> None:
    # Ten clusters of five rows, no success: the worst case, 10 independent rows with t(9) = 2.262157.
    # high = (t^2 / 10) / (1 + t^2 / 10) = 0.511735 / 1.511735
    clusters = np.repeat(np.arange(10), 5)
    none = clustered_proportion(np.zeros(50), clusters)
    assert (none.value, none.low) == (0, 0)
    assert none.high == pytest.approx(0.511735 / 1.511735, abs=1e-6)
    every = clustered_proportion(np.ones(50), clusters)
    assert (every.value, every.high) == (1, 1)
    assert every.low == pytest.approx(1 - 0.511735 / 1.511735, abs=1e-6)


def test_doubled_rows_of_a_cluster_do_not_shrink_the_interval() -> None:
    y = np.array([1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0])
    once = clustered_proportion(y, np.arange(12))
    twice = clustered_proportion(np.repeat(y, 2), np.repeat(np.arange(12), 2))
    assert twice.value == once.value
    assert twice.high is not None
    assert once.high is not None
    assert twice.low is not None
    assert once.low is not None
    assert twice.high - twice.low >= (once.high - once.low) * (1 - 1e-9)


def test_proportion_of_independent_rows_is_wilson_with_t() -> None:
    # Every row its own cluster: CR2 variance is p(1-p)/(n-1), above p(1-p)/n, so the size is n - 1.
    found = clustered_proportion([1, 1, 1, 0, 0, 0, 0, 0, 0, 0])
    t = scipy_stats.t.ppf(0.975, 9)
    n = 9
    centre = (0.3 + t * t / (2 * n)) / (1 + t * t / n)
    half = t * math.sqrt(0.21 / n + t * t / (4 * n * n)) / (1 + t * t / n)
    assert found.low == pytest.approx(centre - half)
    assert found.high == pytest.approx(centre + half)


def test_mean_of_independent_rows_is_the_classical_t_interval() -> None:
    y = np.array([1.0, 4.0, 2.0, 8.0, 5.0])
    found = clustered_mean(y)
    # mean 4; variance (9 + 0 + 4 + 16 + 1) / 4 = 7.5; se = sqrt(1.5) = 1.224745; t(4) = 2.776445
    assert found.value == pytest.approx(4)
    assert found.low == pytest.approx(4 - 1.2247449 * 2.7764451, abs=1e-6)
    assert found.high == pytest.approx(4 + 1.2247449 * 2.7764451, abs=1e-6)


def test_mean_of_equal_clusters_is_the_t_interval_of_cluster_means() -> None:
    rng = np.random.default_rng(3)
    y = rng.normal(size=(6, 4)) + rng.normal(size=(6, 1))
    found = clustered_mean(y.ravel(), np.repeat(np.arange(6), 4))
    expected = scipy_stats.t.interval(0.95, 5, y.mean(), scipy_stats.sem(y.mean(axis=1)))
    assert (found.low, found.high) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("y", "clusters", "value", "reason"),
    [
        ([], [], None, "no values"),
        ([1.0, 2.0], ["a", "a"], 1.5, "one cluster"),
        ([0.1, 0.1, 0.1], [1, 2, 3], 0.1, "no variation"),
    ],
)
def test_a_mean_that_cannot_have_an_interval_says_why(
    y: list[float], clusters: list[int] | list[str], value: float | None, reason: str
) -> None:
    found = clustered_mean(y, clusters, n_null=2)
    assert (found.value, found.low, found.high) == (value, None, None)
    assert (found.null_reason, found.n_null) == (reason, 2)


def test_a_share_of_one_cluster_has_no_interval() -> None:
    found = clustered_proportion([True, False, True], ["a", "a", "a"])
    assert found.value == pytest.approx(2 / 3)
    assert (found.low, found.high, found.null_reason) == (None, None, "one cluster")


def test_missing_values_are_refused_not_dropped() -> None:
    message = (
        r"^y holds 1 values that are NaN or infinite\. Expected: finite numbers\. "
        r"Fix: drop rows without a value and pass their number as n_null\.$"
    )
    with pytest.raises(InputError, match=message):
        clustered_mean([1.0, math.nan])


def test_a_share_needs_yes_or_no() -> None:
    with pytest.raises(InputError, match=r"^y contains 0\.5, which is neither 0 nor 1\."):
        clustered_proportion([0, 0.5, 1])


@pytest.mark.parametrize("clusters", [["a", None], [0.5, math.nan], [1]])
def test_bad_cluster_ids_are_refused(clusters: list[object]) -> None:
    with pytest.raises(InputError, match="ids of"):
        clustered_mean([1.0, 2.0], np.array(clusters, dtype=object))


def test_ratio_of_means() -> None:
    # means 3 and 2, ratio 1.5; variances 3 and 1. On the log scale: 3/3 / 3^2 + 1/3 / 2^2 = 1/9 + 1/12
    _, found = clustered_gap([2.0, 2.0, 5.0], None, [1.0, 2.0, 3.0], None, is_share=False)
    assert found.value is not None
    assert found.value == pytest.approx(1.5)
    assert found.low is not None
    assert found.high is not None
    assert math.sqrt(found.low * found.high) == pytest.approx(1.5)  # symmetric on the log scale
    half = scipy_stats.t.ppf(0.975, _bell_df(1 / 9, 1 / 4)) * math.sqrt(1 / 9 + 1 / 12)
    assert math.log(found.high / found.value) == pytest.approx(half)


def _bell_df(weight_a: float, weight_b: float) -> float:
    # Two groups of three independent rows: (w_a / 3 + w_b / 3)^2 / ((w_a / 3)^2 / 2 + (w_b / 3)^2 / 2)
    return (weight_a + weight_b) ** 2 / (weight_a**2 / 2 + weight_b**2 / 2)


@pytest.mark.parametrize(
    ("a", "b", "value", "reason"),
    [
        ([0.0, 0.0], [1.0, 2.0], None, "a mean is not positive"),
        ([], [1.0], None, "no values"),
        ([1.0], [2.0, 4.0], 1 / 3, "one cluster"),
        ([2.0, 2.0], [1.0, 1.0], 2.0, "no variation"),
    ],
)
def test_a_ratio_that_cannot_be_judged_says_why(
    a: list[float], b: list[float], value: float | None, reason: str
) -> None:
    _, found = clustered_gap(a, None, b, None, is_share=False)
    assert found.value == (None if value is None else pytest.approx(value))
    assert (found.low, found.null_reason) == (None, reason)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 6)), min_size=2, max_size=60), st.integers(0, 99))
def test_order_of_rows_changes_nothing(rows: list[tuple[int, int]], seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(rows))
    y, clusters = np.array(rows).T
    for function in (clustered_proportion, clustered_mean):
        here, there = function(y, clusters), function(y[order], clusters[order])
        assert here.null_reason == there.null_reason
        for field in ("value", "low", "high"):
            assert same(getattr(here, field), getattr(there, field))


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9)), min_size=2, max_size=80))
def test_a_share_lies_in_its_interval_and_that_in_0_to_1(rows: list[tuple[bool, int]]) -> None:
    found = clustered_proportion([y for y, _ in rows], [c for _, c in rows])
    if found.null_reason is None:
        assert found.low is not None
        assert found.high is not None
        assert found.value is not None
        assert 0 <= found.low <= found.value <= found.high <= 1
        assert found.low < found.high
