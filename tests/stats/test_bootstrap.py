from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from tests.stats.closeness import same

from evenhand.core.errors import InputError
from evenhand.core.records import Estimate
from evenhand.stats.bootstrap import cluster_bootstrap_mean, percentile_estimate, resample_clusters
from evenhand.stats.intervals import clustered_mean


def test_a_large_normal_sample_gives_the_t_interval() -> None:
    rng = np.random.default_rng(0)
    clusters = np.repeat(np.arange(400), 3)
    y = rng.normal(size=1200) + rng.normal(size=400)[clusters]
    found, expected = cluster_bootstrap_mean(y, clusters, rng=1), clustered_mean(y, clusters)
    assert found.value == expected.value
    assert expected.high is not None
    assert expected.low is not None
    width = expected.high - expected.low
    assert found.low == pytest.approx(expected.low, abs=0.05 * width)
    assert found.high == pytest.approx(expected.high, abs=0.05 * width)


def test_independent_rows_agree_with_scipy() -> None:
    y = np.random.default_rng(2).exponential(size=300)
    found = cluster_bootstrap_mean(y, rng=3)
    expected = scipy_stats.bootstrap(
        (y,), np.mean, rng=np.random.default_rng(4), method="BCa", n_resamples=9999
    )
    low, high = expected.confidence_interval
    assert found.low == pytest.approx(low, abs=0.02)
    assert found.high == pytest.approx(high, abs=0.02)


def test_the_seed_fixes_the_interval() -> None:
    y, clusters = np.arange(30.0) ** 2, np.arange(30) // 3
    one, again, other = (cluster_bootstrap_mean(y, clusters, rng=seed, resamples=500) for seed in (1, 1, 2))
    assert one == again
    assert one != other
    assert one == cluster_bootstrap_mean(y, clusters, rng=np.random.default_rng(1), resamples=500)
    assert one == cluster_bootstrap_mean(y, clusters, rng=np.random.SeedSequence(1), resamples=500)


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 9)), min_size=2, max_size=60), st.integers(0, 99)
)
def test_order_and_names_change_nothing(rows: list[tuple[int, int]], seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(rows))
    y, clusters = np.array(rows).T
    here = cluster_bootstrap_mean(y, clusters, rng=5, resamples=200)
    there = cluster_bootstrap_mean(y[order], (9 - clusters)[order], rng=5, resamples=200)
    assert here.null_reason == there.null_reason
    assert same(here.low, there.low)
    assert same(here.high, there.high)


@given(st.lists(st.tuples(st.floats(-9, 9), st.integers(0, 4)), min_size=3, max_size=30))
@settings(max_examples=30)
def test_ends_stay_inside_the_cluster_means(rows: list[tuple[float, int]]) -> None:
    y, clusters = np.array([v for v, _ in rows]), np.array([c for _, c in rows])
    found = cluster_bootstrap_mean(y, clusters, rng=6, resamples=200)
    if found.low is None or found.high is None:
        return
    means = [y[clusters == c].mean() for c in np.unique(clusters)]
    assert min(means) - 1e-9 <= found.low <= found.high <= max(means) + 1e-9


@pytest.mark.parametrize(
    ("y", "clusters", "value", "reason"),
    [
        ([], [], None, "no values"),
        ([1.0, 3.0], ["a", "a"], 2.0, "one cluster"),
        ([2.0, 2.0, 2.0], [1, 2, 3], 2.0, "no variation"),
    ],
)
def test_what_cannot_be_resampled_says_why(
    y: list[float], clusters: list[int] | list[str], value: float | None, reason: str
) -> None:
    found = cluster_bootstrap_mean(y, clusters, rng=0, n_null=4)
    assert (found.value, found.low, found.high) == (value, None, None)
    assert (found.null_reason, found.n_null) == (reason, 4)


def test_too_few_resamples_are_refused() -> None:
    message = r"^99 resamples\. Expected: 100 or more\. Fix: use 2,000 or more for a report\.$"
    with pytest.raises(InputError, match=message):
        cluster_bootstrap_mean([1.0, 2.0, 3.0], rng=0, resamples=99)


def test_resamples_hold_whole_clusters() -> None:
    clusters = np.array(["b", "a", "b", "c", "a", "b"])
    sizes = {"a": 2, "b": 3, "c": 1}
    for rows in resample_clusters(clusters, rng=7, resamples=100):
        drawn = {name: int((clusters[rows] == name).sum()) for name in "abc"}
        assert sum(drawn[name] // sizes[name] for name in "abc") == 3
        assert all(drawn[name] % sizes[name] == 0 for name in "abc")
        for name in "abc":  # every row of a drawn cluster, as often as the cluster
            _, times = np.unique(rows[clusters[rows] == name], return_counts=True)
            assert set(times.tolist()) <= {drawn[name] // sizes[name]}


def test_any_statistic_gets_an_interval() -> None:
    rng = np.random.default_rng(8)
    y, clusters = rng.normal(size=400), np.arange(400) // 2
    draws = np.array([np.median(y[rows]) for rows in resample_clusters(clusters, rng=9, resamples=500)])
    missing = Estimate(None, None, None, 0.95, "median", 400, 0, 200, "no values")
    found = percentile_estimate(float(np.median(y)), draws, missing, resamples=500)
    assert found.value == float(np.median(y))
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.value < found.high
    assert found.high - found.low == pytest.approx(2 * 1.96 * 1.2533 / 20, rel=0.3)  # se of a normal median


def test_a_statistic_without_a_value_says_so() -> None:
    missing = Estimate(None, None, None, 0.95, "one", 9, 0, 9, "no values")
    assert percentile_estimate(None, np.ones(100), missing) == missing
    lone = percentile_estimate(1.0, np.ones(100), replace(missing, n_clusters=1))
    assert (lone.value, lone.low, lone.null_reason) == (1.0, None, "one cluster")
    rare = percentile_estimate(1.0, np.r_[1.0, np.full(99, np.nan)], missing, resamples=100)
    assert (rare.value, rare.low, rare.null_reason) == (1.0, None, "too few resamples have a value")


def test_a_bold_sized_run_takes_seconds() -> None:
    # The bar is 5 s on one core; half of it leaves room for a busy machine.
    rng = np.random.default_rng(10)
    clusters = np.r_[np.arange(7_133), rng.integers(0, 7_133, 23_679 - 7_133)]
    y = rng.normal(size=23_679)
    start = time.process_time()
    found = cluster_bootstrap_mean(y, clusters, rng=11, resamples=10_000)
    assert time.process_time() - start < 5
    assert (found.n, found.n_clusters) == (23_679, 7_133)
