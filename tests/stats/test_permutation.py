from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from tests.oracles.stats_permutation import permutation_p_slowly
from tests.stats.closeness import same
from tests.stats.gaps import clustered_difference, clustered_proportion_difference

from evenhand.core.errors import InputError
from evenhand.stats import contrasts
from evenhand.stats._arrays import Bools, Floats, Ints
from evenhand.stats.contrasts import GAP, cluster_permutation
from evenhand.stats.intervals import NewcombeIntervals


def test_three_against_three_by_hand() -> None:
    # 20 ways to choose 3 of 6; only the real one and its mirror are as far apart: p = 2/20.
    found = cluster_permutation([1.0, 2.0, 3.0, 7.0, 8.0, 9.5], [False] * 3 + [True] * 3, rng=0)
    assert found.estimate == pytest.approx(24.5 / 3 - 2)
    assert (found.p, found.arrangements, found.is_exact) == (0.1, 20, True)


def test_pairs_flip_signs() -> None:
    # Four pairs, all in favour of the group by different amounts: 2 of 2^4 arrangements are as extreme.
    y = [1.0, 2.0, 3.0, 5.0, 2.0, 6.0, 1.0, 7.0]
    found = cluster_permutation(y, [False, True] * 4, [0, 0, 1, 1, 2, 2, 3, 3], rng=0)
    assert (found.p, found.arrangements) == (2 / 16, 16)


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 5), st.booleans(), st.integers(0, 5)), min_size=6, max_size=18))
def test_the_exact_test_equals_relabelled_rows(rows: list[tuple[int, bool, int]]) -> None:
    y, group, clusters = (np.array(column) for column in zip(*rows, strict=True))
    found = cluster_permutation(y, group, clusters, rng=0)
    if found.null_reason:
        return
    with np.errstate(divide="ignore", invalid="ignore"):
        try:
            expected = permutation_p_slowly(y.astype(float), group, clusters)
        except ZeroDivisionError:
            return
    assert found.p == pytest.approx(expected)


def test_many_arrangements_are_looked_at_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    y, group = np.arange(8.0) ** 2, np.arange(8) < 3
    whole = cluster_permutation(y, group, rng=0)
    monkeypatch.setattr(contrasts, "_BLOCK", 50)  # six arrangements a block instead of all 56
    assert cluster_permutation(y, group, rng=0) == whole


def test_random_arrangements_come_near_the_exact_p() -> None:
    rng = np.random.default_rng(1)
    y, group = rng.normal(size=12) + 0.8 * (np.arange(12) < 6), np.arange(12) < 6
    exact = cluster_permutation(y, group, rng=0)
    drawn = cluster_permutation(y, group, rng=0, resamples=900)  # fewer than the 924 arrangements
    assert exact.is_exact
    assert not drawn.is_exact
    assert drawn.p == pytest.approx(exact.p, abs=0.03)


def test_the_smallest_p_is_one_over_the_arrangements() -> None:
    y, group = np.r_[np.zeros(50), np.ones(50)] + np.arange(100) * 1e-3, np.arange(100) >= 50
    found = cluster_permutation(y, group, rng=2, resamples=999)
    assert found.p == 1 / 1000


def test_it_agrees_with_the_default_test_on_plain_data() -> None:
    rng = np.random.default_rng(3)
    clusters = np.repeat(np.arange(60), 4)
    y, group = rng.normal(size=240) + rng.normal(size=60)[clusters], clusters % 2 == 0
    y = y + 0.5 * group
    found = cluster_permutation(y, group, clusters, rng=4)
    default = clustered_difference(y[group], clusters[group], y[~group], clusters[~group])
    assert found.estimate == pytest.approx(default.estimate)
    assert found.p == pytest.approx(default.p, abs=0.01)


def test_independent_rows_agree_with_scipy() -> None:
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=40), rng.normal(size=40) + 0.5
    found = cluster_permutation(np.r_[a, b], np.arange(80) < 40, rng=6)

    def t(x: Floats, y: Floats, axis: int) -> Floats:
        size: Floats = np.abs(scipy_stats.ttest_ind(x, y, axis=axis, equal_var=False).statistic)
        return size

    expected = scipy_stats.permutation_test(
        (a, b), t, vectorized=True, n_resamples=9999, alternative="greater", rng=np.random.default_rng(7)
    )
    assert found.p == pytest.approx(expected.pvalue, abs=0.01)


@settings(max_examples=25)
@given(st.integers(0, 1000))
def test_order_and_names_change_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y, group, clusters = rng.integers(0, 9, 40), rng.random(40) < 0.5, rng.integers(0, 25, 40)
    order = rng.permutation(40)
    here = cluster_permutation(y, group, clusters, rng=8, resamples=200)
    there = cluster_permutation(y[order], group[order], (24 - clusters)[order], rng=8, resamples=200)
    assert same(here.p, there.p)
    swapped = cluster_permutation(y, ~group, clusters, rng=8, resamples=200)
    assert same(here.estimate, None if swapped.estimate is None else -swapped.estimate)


@pytest.mark.parametrize(
    ("y", "group", "clusters", "reason"),
    [
        ([], [], [], "no values"),
        ([1.0, 2.0], [True, True], [0, 1], "no values"),
        ([1.0, 2.0, 3.0], [True, True, False], [0, 1, 2], "one cluster"),
        ([1.0, 1.0, 1.0, 1.0], [True, True, False, False], [0, 1, 2, 3], "no variation"),
    ],
)
def test_what_cannot_be_permuted_says_why(
    y: list[float], group: list[bool], clusters: list[int], reason: str
) -> None:
    found = cluster_permutation(y, np.array(group, dtype=bool), np.array(clusters, dtype=int), rng=0)
    assert (found.p, found.null_reason) == (None, reason)


def test_labels_must_be_true_or_false() -> None:
    message = (
        r"^group has type int64 and shape \(2,\)\. Expected: 2 values of True \(in the group\) or False\.$"
    )
    with pytest.raises(InputError, match=message):
        cluster_permutation([1.0, 2.0], [0, 1], rng=0)


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([0.0, 0.004, 0.3, 0.5, 0.97, 1.0]),
            st.sampled_from([0.0, 0.004, 0.3, 0.5, 0.97, 1.0]),
            st.floats(2, 5_000),
            st.floats(2, 5_000),
            st.floats(0.05, 2),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_many_quantiles_are_those_of_one_at_a_time(pairs: list[tuple[float, ...]]) -> None:
    columns = np.array(pairs)
    many = NewcombeIntervals(columns[:, :2], columns[:, 2:4], GAP, columns[:, 4])
    found = many.touching_quantile()
    for row, quantile in zip(columns, found, strict=True):
        one = NewcombeIntervals(row[:2], row[2:4], GAP, row[4])
        assert one.touching_quantile() == pytest.approx(quantile)
        low, high = one.interval(quantile)
        assert min(abs(low), abs(high)) < 1e-9 or quantile > 1e5


def _rare(seed: int, *, share: float) -> tuple[Floats, Bools, Ints]:
    """A label of 0.3 % in 200 clusters of 1 to 30 texts; in the first 20 of them ``share``."""
    rng = np.random.default_rng(seed)
    clusters = np.repeat(np.arange(200), rng.integers(1, 31, size=200))
    group: Bools = clusters < 20
    return (rng.random(clusters.size) < np.where(group, share, 0.003)).astype(np.float64), group, clusters


def test_a_rare_label_that_is_frequent_in_one_group_stands_up() -> None:
    y, group, clusters = _rare(0, share=0.04)
    default = clustered_proportion_difference(y[group], clusters[group], y[~group], clusters[~group])
    assert default.p is not None
    assert default.p < 0.001
    as_share = cluster_permutation(y, group, clusters, rng=1, is_share=True, resamples=2_000)
    as_mean = cluster_permutation(y, group, clusters, rng=1, resamples=2_000)
    assert as_share.p is not None
    assert as_mean.p is not None
    assert as_share.p < 0.005 < as_mean.p


def test_a_rare_label_without_a_gap_is_rarely_called_one() -> None:
    found = [
        cluster_permutation(*_rare(seed, share=0.003), rng=seed, is_share=True, resamples=199).p
        for seed in range(200)
    ]
    assert sum(p is not None and p <= 0.05 for p in found) <= 20


def test_shares_are_yes_or_no() -> None:
    with pytest.raises(InputError, match=r"^y contains 0\.5, which is neither 0 nor 1"):
        cluster_permutation([0.5, 1.0], [False, True], rng=0, is_share=True)
