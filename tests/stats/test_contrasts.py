from __future__ import annotations

import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from tests.oracles.stats_cr2 import contrast_slowly
from tests.stats.closeness import same
from tests.stats.gaps import clustered_difference, clustered_proportion_difference

from evenhand.core.errors import InputError
from evenhand.stats import contrasts
from evenhand.stats._moments import compute_moments
from evenhand.stats.contrasts import clustered_contrast, clustered_omnibus
from evenhand.stats.intervals import clustered_mean
from evenhand.stats.results import Difference

Rows = list[tuple[float, int, int]]
"""(value, cell, cluster)"""


def rows_of(cells: int, values: st.SearchStrategy[float]) -> st.SearchStrategy[Rows]:
    return st.lists(st.tuples(values, st.integers(0, cells - 1), st.integers(0, 7)), min_size=8, max_size=60)


def both_sides(function: Any, rows: Rows, **options: Any) -> Difference:
    y, cells, clusters = (np.array(column) for column in zip(*rows, strict=True))
    a, b = cells == 0, cells == 1
    found = function(y[a], clusters[a], y[b], clusters[b], **options)
    assert isinstance(found, Difference)
    return found


def test_difference_of_independent_rows_by_hand() -> None:
    # a: mean 3, variance 1; b: mean 5, variance 4; n = 3 each.
    # difference -2; se = sqrt(1/3 + 4/3) = 1.290994
    # degrees of freedom (1/3 + 1/3)^2 / ((1/3)^2 / 2 + (1/3)^2 / 2) = 4; t = -1.549193
    found = clustered_difference([2.0, 3.0, 4.0], None, [3.0, 5.0, 7.0], None)
    assert found.estimate == pytest.approx(-2)
    assert found.se == pytest.approx(math.sqrt(5 / 3))
    assert found.df == pytest.approx(4)
    assert found.p == pytest.approx(2 * scipy_stats.t.sf(2 / math.sqrt(5 / 3), 4))
    assert found.low == pytest.approx(-2 - 2.7764451 * math.sqrt(5 / 3), abs=1e-6)
    # A true gap of this size is detected with 80 % power: noncentral t with 4 degrees of freedom.
    assert found.min_detectable is not None
    shift = found.min_detectable / math.sqrt(5 / 3)
    assert scipy_stats.nct.sf(2.7764451, 4, shift) == pytest.approx(0.8, abs=0.012)
    assert (found.n_a, found.n_b, found.n_clusters) == (3, 3, 6)


@given(rows_of(3, st.floats(-5, 5)))
def test_the_closed_form_equals_full_matrices(rows: Rows) -> None:
    y, cells, clusters = (np.array(column) for column in zip(*rows, strict=True))
    weights = np.array([1.0, -0.25, -0.75])
    pairs = {(cell, cluster) for _, cell, cluster in rows}
    if any(sum(cell == j for cell, _ in pairs) < 2 for j in range(3)):
        return
    found = compute_moments(y, cells, clusters, n_cells=3).contrast(weights)
    estimate, variance, df = contrast_slowly(y, cells, clusters, weights)
    assert found[0] == pytest.approx(estimate, abs=1e-9)
    assert found[1] == pytest.approx(variance, rel=1e-6, abs=1e-12)
    assert found[2] == pytest.approx(df, rel=1e-6)


@pytest.mark.parametrize("n_cells", [8, 9])
def test_dense_and_sparse_paths_agree_with_full_matrices(n_cells: int) -> None:
    rng = np.random.default_rng(n_cells)
    cells, clusters = np.tile(np.arange(n_cells), 20), rng.integers(0, 25, 20 * n_cells)
    y, weights = rng.normal(size=cells.size), rng.normal(size=n_cells)
    found = compute_moments(y, cells, clusters, n_cells=n_cells).contrast(weights)
    assert tuple(found) == pytest.approx(contrast_slowly(y, cells, clusters, weights))


def test_the_sorted_path_agrees_with_the_table() -> None:
    rng = np.random.default_rng(5)
    y, cells, clusters = rng.normal(size=200), rng.integers(0, 2, 200), rng.integers(0, 30, 200)
    spread_out = clusters * 1_000_000  # too many empty clusters for a table
    here = compute_moments(y, cells, clusters, n_cells=2)
    there = compute_moments(y, cells, spread_out, n_cells=2)
    assert np.allclose(here.covariance, there.covariance)
    assert here.n_clusters == there.n_clusters


def test_variance_equals_statsmodels_up_to_the_small_sample_factor() -> None:
    # Pure clusters of one size: CR2 divides by 1 - m/N = (G - 1)/G = 19/20 within a group.
    rng = np.random.default_rng(7)
    clusters = np.repeat(np.arange(40), 6)
    y = rng.normal(size=240) + rng.normal(size=40)[clusters]
    is_a = (clusters < 20).astype(float)
    fit = sm.OLS(y, sm.add_constant(is_a)).fit(
        cov_type="cluster", cov_kwds={"groups": clusters, "use_correction": False}
    )
    found = clustered_difference(y[is_a == 1], clusters[is_a == 1], y[is_a == 0], clusters[is_a == 0])
    assert found.estimate == pytest.approx(fit.params[1])
    assert found.se == pytest.approx(fit.bse[1] * math.sqrt(20 / 19))


def test_large_samples_agree_with_statsmodels_where_clusters_cross_groups() -> None:
    rng = np.random.default_rng(8)
    clusters, is_a = rng.integers(0, 2000, 20_000), rng.integers(0, 2, 20_000)
    y = rng.normal(size=20_000) + rng.normal(size=2000)[clusters]
    fit = sm.OLS(y, sm.add_constant(is_a.astype(float))).fit(
        cov_type="cluster", cov_kwds={"groups": clusters}
    )
    a = is_a == 1
    found = clustered_difference(y[a], clusters[a], y[~a], clusters[~a])
    assert found.se == pytest.approx(fit.bse[1], rel=2e-3)
    assert found.p == pytest.approx(fit.pvalues[1], rel=2e-2)


def test_pairs_are_used_as_pairs() -> None:
    # One row a side in each cluster: the paired t test.
    rng = np.random.default_rng(9)
    base = rng.normal(size=12) * 5
    a, b = base + rng.normal(size=12) + 0.5, base + rng.normal(size=12)
    found = clustered_difference(a, np.arange(12), b, np.arange(12))
    expected = scipy_stats.ttest_rel(a, b)
    assert found.p == pytest.approx(expected.pvalue)
    assert found.df == pytest.approx(11)
    apart = clustered_mean(a - b)
    assert (found.low, found.high) == pytest.approx((apart.low, apart.high))


def test_a_group_against_all_counts_its_rows_once() -> None:
    # a minus (all) is (1 - share of a) times a minus rest, whatever way one asks.
    rng = np.random.default_rng(10)
    y, clusters = rng.normal(size=4000), rng.integers(0, 900, 4000)
    a = rng.random(4000) < 0.3
    to_all = clustered_difference(y[a], clusters[a], y, clusters)
    to_rest = clustered_difference(y[a], clusters[a], y[~a], clusters[~a])
    assert to_all.estimate == pytest.approx((1 - a.mean()) * to_rest.estimate)
    assert to_all.se == pytest.approx((1 - a.mean()) * to_rest.se, rel=5e-3)


@given(rows_of(2, st.floats(-5, 5)))
def test_swapping_groups_flips_the_sign_and_nothing_else(rows: Rows) -> None:
    here = both_sides(clustered_difference, rows)
    there = both_sides(clustered_difference, [(y, 1 - cell, cluster) for y, cell, cluster in rows])
    assert_mirrored(here, there)


@given(rows_of(2, st.sampled_from([0.0, 1.0])))
def test_swapping_groups_flips_the_sign_of_shares(rows: Rows) -> None:
    here = both_sides(clustered_proportion_difference, rows)
    there = both_sides(clustered_proportion_difference, [(y, 1 - cell, c) for y, cell, c in rows])
    assert_mirrored(here, there)


def assert_mirrored(here: Difference, there: Difference) -> None:
    assert here.null_reason == there.null_reason
    assert same(here.estimate, None if there.estimate is None else -there.estimate)
    assert same(here.low, None if there.high is None else -there.high)
    assert same(here.p, there.p)


@given(rows_of(2, st.floats(-5, 5)), st.integers(0, 100))
def test_order_and_names_change_nothing(rows: Rows, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(rows))
    here = both_sides(clustered_difference, rows)
    names = [(rows[i][0], rows[i][1], 7 - rows[i][2]) for i in order]
    there = both_sides(clustered_difference, names)
    assert here.null_reason == there.null_reason
    for field in ("estimate", "low", "high", "p", "df"):
        assert same(getattr(here, field), getattr(there, field)), field


@given(rows_of(2, st.sampled_from([0.0, 1.0])), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_interval_and_p_of_shares_never_disagree(rows: Rows, level: float) -> None:
    found = both_sides(clustered_proportion_difference, rows, level=level)
    if found.p is None or found.low is None or found.high is None:
        return
    if abs(found.p - (1 - level)) > 1e-6:
        assert (found.low > 0 or found.high < 0) == (found.p < 1 - level)


@given(rows_of(2, st.sampled_from([0.0, 1.0])))
def test_a_gap_of_shares_lies_in_its_interval(rows: Rows) -> None:
    found = both_sides(clustered_proportion_difference, rows)
    if found.low is None or found.high is None or found.estimate is None:
        return
    assert -1 <= found.low <= found.estimate <= found.high <= 1


def test_none_of_few_is_not_taken_for_certain() -> None:
    # 0 of 20 against 10 of 200: a test of means sees no variance in a and says p < 0.01; Fisher says 0.6.
    a, b = np.zeros(20), np.repeat([1.0, 0.0], [10, 190])
    naive = clustered_difference(a, np.arange(20), b, 20 + np.arange(200))
    found = clustered_proportion_difference(a, np.arange(20), b, 20 + np.arange(200))
    assert naive.p is not None
    assert naive.p < 0.01
    assert found.p is not None
    assert found.p > 0.3
    assert found.estimate == pytest.approx(-0.05)


def test_newcombe_by_hand() -> None:
    # Newcombe (1998), Table II, case (a), method 10: 56/70 - 48/80 = 0.2, interval 0.0524 to 0.3339 with z.
    # Rows as clusters have sizes of n - 1 and t quantiles: about 1 % wider.
    y_a, y_b = np.repeat([1, 0], [56, 14]), np.repeat([1, 0], [48, 32])
    found = clustered_proportion_difference(y_a, None, y_b, None)
    assert found.estimate == pytest.approx(0.2)
    assert found.low == pytest.approx(0.0524, abs=3e-3)
    assert found.high == pytest.approx(0.3339, abs=3e-3)


@pytest.mark.parametrize("function", [clustered_difference, clustered_proportion_difference])
@pytest.mark.parametrize(
    ("a", "clusters_a", "estimate", "reason"),
    [
        ([], [], None, "no values"),
        ([1.0, 0.0], [1, 1], 0.25, "one cluster"),
    ],
)
def test_a_gap_that_cannot_be_judged_says_why(
    function: Any, a: list[float], clusters_a: list[int], estimate: float | None, reason: str
) -> None:
    found = function(a, clusters_a, [0.0, 1.0, 0.0, 0.0], [2, 3, 4, 5])
    assert found.estimate == estimate
    assert (found.low, found.p, found.min_detectable, found.null_reason) == (None, None, None, reason)


def test_equal_values_give_a_gap_of_zero_and_no_p() -> None:
    found = clustered_difference([0.1] * 7, list("aabbccd"), [0.1] * 5, list("efghi"))
    assert (found.estimate, found.se, found.p) == (0, 0, None)
    assert (found.low, found.null_reason) == (None, "no variation")


def test_no_success_anywhere_has_an_interval_but_no_p() -> None:
    found = clustered_proportion_difference([0] * 30, None, [0] * 60, None)
    assert (found.estimate, found.p, found.null_reason) == (0, None, "no variation")
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0 < found.high


def test_all_against_none_is_found() -> None:
    found = clustered_proportion_difference([1] * 30, None, [0] * 30, None)
    assert found.estimate == 1
    assert found.p is not None
    assert found.p < 1e-6


def test_pairs_that_all_differ_by_the_same_have_no_yardstick() -> None:
    base = np.random.default_rng(1).normal(size=9)
    found = clustered_difference(base + 0.3, np.arange(9), base, np.arange(9))
    assert found.estimate == pytest.approx(0.3)
    assert (found.p, found.null_reason) == (None, "no variation")


def test_ids_of_two_types_are_refused() -> None:
    with pytest.raises(InputError, match=r"^the cluster ids are of two types"):
        clustered_difference([1.0, 2.0], [1, 2], [1.0, 2.0], ["1", "2"])
    with pytest.raises(InputError, match=r"^only one of the two groups came with cluster ids"):
        clustered_difference([1.0, 2.0], [1, 2], [1.0, 2.0], None)


def test_a_gap_of_gaps_is_the_difference_of_differences() -> None:
    rng = np.random.default_rng(2)
    y, cells, clusters = rng.normal(size=400), rng.integers(0, 4, 400), rng.integers(0, 50, 400)
    found = clustered_contrast(y, cells, clusters, weights=(1, -1, -1, 1))
    means = [y[cells == j].mean() for j in range(4)]
    assert found.estimate == pytest.approx((means[0] - means[1]) - (means[2] - means[3]))
    expected = contrast_slowly(y, cells, clusters, np.array([1.0, -1, -1, 1]))
    assert (found.se, found.df) == pytest.approx((math.sqrt(expected[1]), expected[2]))


def test_a_contrast_ignores_cells_without_weight() -> None:
    rng = np.random.default_rng(3)
    y, cells, clusters = rng.normal(size=300), rng.integers(0, 3, 300), rng.integers(0, 40, 300)
    found = clustered_contrast(y, cells, clusters, weights=(1, 0, -1))
    a, b = cells == 0, cells == 2
    plain = clustered_difference(y[a], clusters[a], y[b], clusters[b])
    assert (found.estimate, found.se, found.df) == pytest.approx((plain.estimate, plain.se, plain.df))
    assert (found.n_a, found.n_b, found.n_clusters) == (plain.n_a, plain.n_b, plain.n_clusters)


def test_a_contrast_over_an_empty_cell_is_null() -> None:
    assert clustered_contrast([1.0, 2.0], [0, 0], None, weights=(1, -1)).null_reason == "no values"


def test_cells_outside_the_weights_are_refused() -> None:
    with pytest.raises(InputError, match=r"^cells of type int64 do not index the 2 weights\. Expected: "):
        clustered_contrast([1.0, 2.0], [0, 2], None, weights=(1, -1))


def test_omnibus_of_independent_rows_is_close_to_anova() -> None:
    rng = np.random.default_rng(4)
    groups = np.repeat(np.arange(4), 200)
    y = rng.normal(size=800) + 0.15 * groups
    found = clustered_omnibus(y, groups)
    expected = scipy_stats.f_oneway(*(y[groups == g] for g in range(4)))
    assert found.statistic == pytest.approx(expected.statistic, rel=0.02)
    assert found.df_between == pytest.approx(3, rel=0.02)
    assert found.df_error == pytest.approx(796, rel=0.01)
    assert found.p == pytest.approx(expected.pvalue, rel=0.3)


def test_omnibus_of_two_groups_is_close_to_the_difference() -> None:
    rng = np.random.default_rng(5)
    clusters = np.repeat(np.arange(80), 5)
    y, groups = rng.normal(size=400) + rng.normal(size=80)[clusters], clusters % 2
    found = clustered_omnibus(y, groups, clusters)
    gap = clustered_difference(y[groups == 0], clusters[groups == 0], y[groups == 1], clusters[groups == 1])
    assert found.p == pytest.approx(gap.p, rel=0.05)


def test_omnibus_works_with_more_groups_than_clusters() -> None:
    rng = np.random.default_rng(6)
    groups, clusters = (grid.ravel() for grid in np.mgrid[:18, :10])
    y = rng.normal(size=180) + rng.normal(size=10)[clusters]
    assert (clustered_omnibus(y, groups, clusters).p or 0) > 0.05
    shifted = clustered_omnibus(y + 2.0 * (groups == 3), groups, clusters)
    assert shifted.p is not None
    assert shifted.p < 0.05


@pytest.mark.parametrize(
    ("y", "groups", "clusters", "reason", "left_out"),
    [
        ([], [], [], "no values", 0),
        ([1.0, 2.0], ["a", "a"], [1, 2], "one group", 0),
        ([1.0, 2.0, 3.0], ["a", "a", "b"], [1, 2, 3], "one cluster", 1),
        ([1.0, 1.0, 1.0, 1.0], ["a", "a", "b", "b"], [1, 2, 3, 4], "no variation", 0),
    ],
)
def test_an_omnibus_that_cannot_be_judged_says_why(
    y: list[float], groups: list[str], clusters: list[int], reason: str, left_out: int
) -> None:
    found = clustered_omnibus(y, np.array(groups, dtype=str), np.array(clusters, dtype=int))
    assert (found.p, found.null_reason, found.groups_left_out) == (None, reason, left_out)


def test_omnibus_leaves_out_groups_of_one_cluster() -> None:
    rng = np.random.default_rng(11)
    y, groups, clusters = rng.normal(size=41), np.r_[np.arange(40) % 2, 2], np.arange(41)
    found = clustered_omnibus(y, groups, clusters)
    without = clustered_omnibus(y[:40], groups[:40], clusters[:40])
    assert (found.n_groups, found.groups_left_out, found.n, found.p) == (2, 1, 40, without.p)


def test_five_hundred_groups_of_a_large_run_are_quick() -> None:
    rng = np.random.default_rng(12)
    y, groups, clusters = rng.normal(size=200_000), rng.integers(0, 500, 200_000), np.arange(200_000) // 2
    found = clustered_omnibus(y, groups, clusters)
    assert (found.n_groups, found.n_clusters) == (500, 100_000)
    assert found.p is not None


@pytest.mark.parametrize("reaching", [False, True], ids=["apart", "over all groups"])
def test_thousands_of_groups_take_a_bounded_memory(reaching: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, size = np.random.default_rng(12), 400
    groups = np.repeat(np.arange(size), 2)
    clusters = np.arange(groups.size) % 50 if reaching else np.arange(groups.size)
    tracemalloc.start()
    found = clustered_omnibus(rng.normal(size=groups.size), groups, clusters)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.p is not None
    # A handful of matrices of groups x groups; all products of the four parts at once would be sixteen.
    assert most < 8 * size**2 * 8
    monkeypatch.setattr(contrasts, "MOST_GROUPS", size - 1)
    refused = clustered_omnibus(rng.normal(size=groups.size), groups, clusters)
    assert (refused.p, refused.n_groups, refused.null_reason) == (None, size, "too many groups")
