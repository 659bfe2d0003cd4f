"""Gaps between groups that respect clusters: of means, of shares, any contrast, all groups at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.core.errors import InputError
from evenhand.core.records import Estimate
from evenhand.stats._arrays import (
    Bools,
    Floats,
    Ids,
    Ints,
    check_binary,
    check_group,
    check_level,
    check_values,
    clusters_per_cell,
    encode_clusters,
    encode_jointly,
    weighted_counts,
)
from evenhand.stats._moments import CellMoments, compute_moments
from evenhand.stats.intervals import NewcombeInterval, estimate_ratio, exact_shares
from evenhand.stats.quantiles import f_upper_tail, t_quantile, t_two_sided
from evenhand.stats.results import (
    NO_VALUES,
    NO_VARIATION,
    ONE_CLUSTER,
    TOO_MANY_GROUPS,
    Difference,
    Omnibus,
    Stratified,
    StratumGap,
)

POWER = 0.8
"""The power at which ``min_detectable`` is stated."""
FEW_CLUSTERS = 10
"""Below this many clusters the correlation of two shares is too uncertain to narrow an interval."""
MIN_VARIANCE_SHARE = 1e-12
"""A variance of a difference below this share of its cells' is none."""
MEANS = "cluster-robust t"
SHARES = "cluster-robust Newcombe"
_OMNIBUS = "cluster-robust F (Rao-Scott)"
MOST_GROUPS = 5_000
"""Groups of an omnibus test at most: so many take about a gigabyte."""


def clustered_difference(
    y_a: npt.ArrayLike, clusters_a: Ids, y_b: npt.ArrayLike, clusters_b: Ids, *, level: float = 0.95
) -> Difference:
    """Mean of a minus mean of b with a cluster-robust t test and interval.

    CR2 variance over the clusters of both groups together, Bell and McCaffrey's degrees of freedom. A
    cluster id that occurs in both groups is one cluster, so pairs (one template under two groups, one
    prompt under two models) are used as pairs. With every row its own cluster this is Welch's test, but for
    the degrees of freedom, which come from the design instead of the two sample variances.
    """
    return clustered_gap(y_a, clusters_a, y_b, clusters_b, is_share=False, level=level)[0]


def clustered_proportion_difference(
    y_a: npt.ArrayLike, clusters_a: Ids, y_b: npt.ArrayLike, clusters_b: Ids, *, level: float = 0.95
) -> Difference:
    """Share of ones in a minus share in b, with Newcombe's interval at the effective sample sizes.

    The interval joins the two cluster-robust Wilson intervals (Newcombe 1998, method 10; Zou and Donner
    2008 with correlation where clusters reach over both groups), so that 0 of 20 texts still count as
    uncertain. A label that few clusters have is judged with as few degrees of freedom. The p-value is the
    level at which the interval touches 0: the two never disagree. The effective size of a group whose share
    is exactly 0 or 1 takes the other group's likeness within clusters.
    """
    return clustered_gap(y_a, clusters_a, y_b, clusters_b, is_share=True, level=level)[0]


def clustered_gap(
    y_a: npt.ArrayLike,
    clusters_a: Ids,
    y_b: npt.ArrayLike,
    clusters_b: Ids,
    *,
    is_share: bool,
    level: float = 0.95,
) -> tuple[Difference, Estimate]:
    """`clustered_proportion_difference` or `clustered_difference` with `clustered_ratio`, from one pass."""
    check = check_binary if is_share else check_values
    a, b = check(y_a, "y_a"), check(y_b, "y_b")
    codes = encode_jointly(clusters_a, a.size, clusters_b, b.size)
    sizes = _Sizes(a.size, b.size, check_level(level), SHARES if is_share else MEANS)
    if not a.size or not b.size:
        return sizes.without(NO_VALUES, n_clusters=np.unique(codes).size), estimate_ratio(None, level)
    of, weights = _two_cells(a, b, codes), np.array([1.0, -1.0])
    if is_share:
        # Without rounding, or a share of 0 might have a ratio.
        return _judged_shares(of, weights, sizes), estimate_ratio(replace(of, means=exact_shares(of)), level)
    return _judge_means(of, weights, sizes), estimate_ratio(of, level)


def clustered_contrast(
    y: npt.ArrayLike,
    cells: npt.ArrayLike,
    clusters: Ids,
    *,
    weights: Sequence[float],
    is_share: bool = False,
    level: float = 0.95,
) -> Difference:
    """The weighted sum of cell means, such as a gap of gaps, with a cluster-robust test and interval.

    ``cells`` holds for each row the position of its cell in ``weights``. Weights (1, -1, -1, 1) over the
    cells (group, baseline) x (model 1, model 2) ask whether the gap of model 1 exceeds that of model 2. In
    the result a is what has a positive weight, b what has a negative one. Means are judged by t, shares
    (``is_share``) as `clustered_proportion_difference` judges two of them.
    """
    values = (check_binary if is_share else check_values)(y, "y")
    of_cell = _checked_cells(cells, len(weights))
    codes = encode_clusters(clusters, values.size)
    sign = np.sign(np.asarray(weights, dtype=np.float64))
    rows = np.bincount(of_cell, minlength=len(weights))
    method = SHARES if is_share else MEANS
    sizes = _Sizes(int(rows[sign > 0].sum()), int(rows[sign < 0].sum()), check_level(level), method)
    used = np.flatnonzero(sign)
    if used.size == 0 or rows[used].min() == 0:
        return sizes.without(NO_VALUES, n_clusters=np.unique(codes).size)
    keep = sign[of_cell] != 0
    packed = np.searchsorted(used, of_cell[keep])
    of = compute_moments(values[keep], packed, codes[keep], n_cells=used.size)
    judge = _judged_shares if is_share else _judge_means
    return judge(of, np.asarray(weights, dtype=np.float64)[used], sizes)


def clustered_omnibus(y: npt.ArrayLike, groups: npt.ArrayLike, clusters: Ids = None) -> Omnibus:
    """Whether all groups share one mean (or share): a cluster-robust F test with Rao and Scott's correction.

    The one question to ask before any single group: p is small where the groups differ more than clusters
    alone would make them. Groups of one cluster are left out and counted. Holds its level with few
    clusters, with rare labels, and with more groups than clusters. More than ``MOST_GROUPS`` groups have no
    answer, with that reason.
    """
    values = check_values(y)
    of_group = encode_clusters(groups, values.size)
    codes = encode_clusters(clusters, values.size)
    clusters_of = clusters_per_cell(of_group, codes)
    keep, left_out = clusters_of[of_group] >= 2, int(np.count_nonzero(clusters_of == 1))
    _, packed = np.unique(of_group[keep], return_inverse=True)
    n_groups = int(packed.max()) + 1 if packed.size else 0
    if not 2 <= n_groups <= MOST_GROUPS:
        n_clusters = np.unique(codes[keep]).size
        reason = ONE_CLUSTER if left_out else NO_VALUES if not values.size else "one group"
        reason = TOO_MANY_GROUPS if n_groups > MOST_GROUPS else reason
        return Omnibus(None, None, None, None, packed.size, n_clusters, n_groups, left_out, _OMNIBUS, reason)
    of = compute_moments(values[keep], packed, codes[keep], n_cells=n_groups)
    return _omnibus(of, packed.size, n_groups, left_out)


class _Sizes(NamedTuple):
    """What every `Difference` states, whether or not it has an estimate."""

    n_a: int
    n_b: int
    level: float
    method: str

    def without(self, reason: str, *, n_clusters: int, estimate: float | None = None) -> Difference:
        return self.difference(_Judgement(estimate, None, None, None, None, None), n_clusters, reason)

    def difference(self, of: _Judgement, n_clusters: int, reason: str | None = None) -> Difference:
        return Difference(
            estimate=of.estimate,
            low=of.low,
            high=of.high,
            se=of.se,
            df=of.df,
            p=of.p,
            level=self.level,
            n_a=self.n_a,
            n_b=self.n_b,
            n_clusters=n_clusters,
            min_detectable=self._min_detectable(of),
            method=self.method,
            null_reason=reason,
        )

    def _min_detectable(self, of: _Judgement) -> float | None:
        # From the interval's half width: shares near 0 count with the uncertainty they are shown with.
        if of.low is None or of.high is None or of.df is None:
            return None
        alpha = t_quantile((1 + self.level) / 2, of.df)
        return (of.high - of.low) / 2 * (1 + t_quantile(POWER, of.df) / alpha)


class _Judgement(NamedTuple):
    estimate: float | None
    low: float | None
    high: float | None
    se: float | None
    df: float | None
    p: float | None


def _judge_means(of: CellMoments, weights: Floats, sizes: _Sizes) -> Difference:
    if of.clusters.min() < 2:
        return sizes.without(ONE_CLUSTER, n_clusters=of.n_clusters, estimate=float(weights @ of.means))
    estimate, variance, df = of.contrast(weights)
    if variance == 0:
        no_spread = _Judgement(estimate, None, None, 0.0, df, None)
        return sizes.difference(no_spread, of.n_clusters, NO_VARIATION)
    se = math.sqrt(variance)
    half = t_quantile((1 + sizes.level) / 2, df) * se
    p = t_two_sided(estimate / se, df)
    return sizes.difference(_Judgement(estimate, estimate - half, estimate + half, se, df, p), of.n_clusters)


def _judged_shares(of: CellMoments, weights: Floats, sizes: _Sizes) -> Difference:
    if of.clusters.min() < 2:
        return sizes.without(
            ONE_CLUSTER, n_clusters=of.n_clusters, estimate=float(weights @ exact_shares(of))
        )
    joined = NewcombeInterval.of(of, weights)
    estimate = joined.estimate
    _, variance, df = of.contrast(weights)
    se, quantile = math.sqrt(variance), t_quantile((1 + sizes.level) / 2, df)
    low, high = joined.interval(quantile)
    is_constant = len(set(joined.shares)) == 1 and joined.shares[0] in (0, 1)
    p = None if is_constant else t_two_sided(joined.touching_quantile(), df)
    if of.n_clusters < FEW_CLUSTERS and p is not None:
        # So few clusters hardly tell how the shares move together: be as wide as the t test.
        low, high = min(low, estimate - quantile * se), max(high, estimate + quantile * se)
        p = max(p, t_two_sided(estimate / se, df)) if se > 0 else None
    # Clusters that vary, and vary alike in all cells, leave no yardstick for their difference.
    if variance < MIN_VARIANCE_SHARE * float(np.diag(of.covariance).max()):
        return sizes.difference(_Judgement(estimate, None, None, se, df, None), of.n_clusters, NO_VARIATION)
    least, most = float(weights[weights < 0].sum()), float(weights[weights > 0].sum())
    judged = _Judgement(estimate, max(low, least), min(high, most), se, df, p)
    return sizes.difference(judged, of.n_clusters, NO_VARIATION if p is None else None)


def _omnibus(of: CellMoments, n: int, n_groups: int, left_out: int) -> Omnibus:
    found = of.homogeneity()
    if found is None:
        return Omnibus(None, None, None, None, n, of.n_clusters, n_groups, left_out, _OMNIBUS, NO_VARIATION)
    p = f_upper_tail(found.statistic, found.df_between, found.df_error)
    return Omnibus(*found, p, n, of.n_clusters, n_groups, left_out, _OMNIBUS)


def _two_cells(a: Floats, b: Floats, codes: Ints) -> CellMoments:
    return compute_moments(np.concatenate([a, b]), np.repeat([0, 1], [a.size, b.size]), codes, n_cells=2)


def _checked_cells(cells: npt.ArrayLike, n_cells: int) -> Ints:
    of_cell = np.asarray(cells)
    if of_cell.dtype.kind not in "iu" or (of_cell.size and not 0 <= of_cell.min() <= of_cell.max() < n_cells):
        raise InputError(
            f"cells of type {of_cell.dtype} came with {n_cells} weights",
            expected=f"one integer from 0 to {n_cells - 1} for each value",
        )
    return of_cell.astype(np.intp, copy=False)


def stratified_difference(
    y: npt.ArrayLike,
    group: npt.ArrayLike,
    strata: npt.ArrayLike,
    clusters: Ids = None,
    *,
    is_share: bool = False,
    level: float = 0.95,
) -> Stratified:
    """The gap between ``group`` (True) and the others, over all rows and inside strata.

    The adjusted gap gives each stratum the weight of its rows, the same for both sides (direct
    standardisation). Both gaps come with cluster-robust intervals, of means or (``is_share``) of shares.
    """
    values = check_values(y)
    others = (~check_group(group, values.size)).astype(np.intp)
    codes = encode_clusters(clusters, values.size)
    names, of_stratum = np.unique(np.asarray(strata), return_inverse=True)
    cells = 2 * of_stratum + others
    usable = _usable(cells, codes, names.size)
    judge = partial(clustered_contrast, is_share=is_share, level=level)
    crude = judge(values, others, codes, weights=(1.0, -1.0))
    weights = np.repeat(np.bincount(of_stratum, minlength=names.size) * usable, 2).astype(np.float64)
    weights[1::2] *= -1
    weights /= max(float(weights[::2].sum()), 1.0)
    adjusted = judge(values, cells, codes, weights=weights.tolist())
    gaps = _gaps(values, cells, names, usable)
    return Stratified(crude, adjusted, gaps, names.size - len(gaps), _do_disagree(crude, adjusted))


def _gaps(y: Floats, cells: Ints, names: npt.NDArray[np.generic], usable: Bools) -> tuple[StratumGap, ...]:
    rows = np.bincount(cells, minlength=2 * names.size)
    sums = weighted_counts(cells, y, 2 * names.size)
    means = np.divide(sums, rows, out=np.zeros_like(sums), where=rows > 0)
    return tuple(
        StratumGap(
            str(names[i]), float(means[2 * i] - means[2 * i + 1]), int(rows[2 * i]), int(rows[2 * i + 1])
        )
        for i in np.flatnonzero(usable)
    )


def _usable(cells: Ints, codes: Ints, n_strata: int) -> Bools:
    """Which strata have two clusters or more on both sides."""
    usable: Bools = clusters_per_cell(cells, codes, 2 * n_strata).reshape(-1, 2).min(axis=1) >= 2
    return usable


def _do_disagree(crude: Difference, adjusted: Difference) -> bool:
    if crude.estimate is None or adjusted.estimate is None or crude.estimate * adjusted.estimate >= 0:
        return False
    return _excludes_zero(crude) or _excludes_zero(adjusted)


def _excludes_zero(gap: Difference) -> bool:
    return gap.low is not None and gap.high is not None and (gap.low > 0 or gap.high < 0)
