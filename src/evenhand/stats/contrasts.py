"""Gaps between groups that respect clusters: of means, of shares, any contrast, all groups at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.core.errors import InputError
from evenhand.core.records import Estimate
from evenhand.stats._arrays import (
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
)
from evenhand.stats._moments import CellMoments, ClusterTable, compute_moments
from evenhand.stats.intervals import NewcombeIntervals, estimate_ratio, share_estimates
from evenhand.stats.quantiles import f_upper_tail, t_lower_tails, t_quantile, t_quantiles
from evenhand.stats.results import NO_VALUES, NO_VARIATION, ONE_CLUSTER, TOO_MANY_GROUPS, Difference, Omnibus

POWER = 0.8
"""The power at which ``min_detectable`` is stated."""
FEW_CLUSTERS = 10
"""Below this many clusters the correlation of two shares is too uncertain to narrow an interval."""
_MIN_VARIANCE_SHARE = 1e-12
"""A variance of a difference below this share of its cells' is none."""
MEANS = "cluster-robust t"
SHARES = "cluster-robust Newcombe"
MOST_GROUPS = 5_000
"""Groups of an omnibus test at most: so many take about a gigabyte."""
GAP = np.array([1.0, -1.0])
_BLOCK = 250_000
"""Sums worked on at a time."""
_MOST_CACHED = 5_000_000
"""Groups x sums up to which the tables of gaps are kept between outputs."""


def clustered_gap(
    y_a: npt.ArrayLike,
    clusters_a: Ids,
    y_b: npt.ArrayLike,
    clusters_b: Ids,
    *,
    is_share: bool,
    level: float = 0.95,
) -> tuple[Difference, Estimate]:
    """Mean (or share) of a minus that of b with a cluster-robust test and interval, and their ratio.

    CR2 variance over the clusters of both groups together, Bell and McCaffrey's degrees of freedom. A
    cluster id that occurs in both groups is one cluster, so pairs (one template under two groups, one
    prompt under two models) are used as pairs. Means are judged by t: with every row its own cluster this is
    Welch's test, but for the degrees of freedom, which come from the design instead of the two sample
    variances.

    Shares have Newcombe's interval at the effective sample sizes. It joins the two cluster-robust Wilson
    intervals (Newcombe 1998, method 10; Zou and Donner 2008 with correlation where clusters reach over both
    groups), so that 0 of 20 texts still count as uncertain. A label that few clusters have is judged with as
    few degrees of freedom. The p-value is the level at which the interval touches 0: the two never disagree.
    The effective size of a group whose share is exactly 0 or 1 takes the other group's likeness within
    clusters.
    """
    check = check_binary if is_share else check_values
    a, b = check(y_a, "y_a"), check(y_b, "y_b")
    codes = encode_jointly(clusters_a, a.size, clusters_b, b.size)
    cells = np.repeat([0, 1], [a.size, b.size])
    of = compute_moments(np.concatenate([a, b]), cells, codes, n_cells=2)
    gap = ContrastTests.of(of, GAP, is_share=is_share, level=check_level(level))
    return gap.difference(), gap.ratio()


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
    (``is_share``) as `clustered_gap` judges two of them.
    """
    values = (check_binary if is_share else check_values)(y, "y")
    of_cell = np.asarray(cells)
    is_place = of_cell.dtype.kind in "iu" and ((of_cell >= 0) & (of_cell < len(weights))).all()
    if not is_place:
        raise InputError(
            f"cells of type {of_cell.dtype} came with {len(weights)} weights",
            expected=f"one integer from 0 to {len(weights) - 1} for each value",
        )
    codes = encode_clusters(clusters, values.size)
    signs, rows = np.sign(weights), np.bincount(of_cell, minlength=len(weights))
    used, keep = np.flatnonzero(signs), signs[of_cell] != 0
    if not used.size or not rows[used].all():
        n_a, n_b, n_clusters = int(rows[signs > 0].sum()), int(rows[signs < 0].sum()), np.unique(codes).size
        method = SHARES if is_share else MEANS
        sizes = {"n_a": n_a, "n_b": n_b, "n_clusters": n_clusters}
        return Difference(level=level, method=method, null_reason=NO_VALUES, **sizes)
    packed = np.searchsorted(used, of_cell[keep])
    of = compute_moments(values[keep], packed, codes[keep], n_cells=used.size)
    own = np.asarray(weights, dtype=np.float64)[used]
    return ContrastTests.of(of, own, is_share=is_share, level=check_level(level)).difference()


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
    result = partial(
        Omnibus,
        n=packed.size,
        n_clusters=np.unique(codes[keep]).size,
        n_groups=n_groups,
        groups_left_out=left_out,
        method="cluster-robust F (Rao-Scott)",
    )
    if not 2 <= n_groups <= MOST_GROUPS:
        reason = ONE_CLUSTER if left_out else NO_VALUES if not values.size else "one group"
        return result(null_reason=TOO_MANY_GROUPS if n_groups > MOST_GROUPS else reason)
    test = compute_moments(values[keep], packed, codes[keep], n_cells=n_groups).homogeneity()
    if test is None:
        return result(null_reason=NO_VARIATION)
    p = f_upper_tail(test.statistic, test.df_between, test.df_error)
    return result(**test._asdict(), p=p)


class _Judgements(NamedTuple):
    """NaN where there is no number."""

    estimate: Floats
    low: Floats
    high: Floats
    se: Floats
    df: Floats
    p: Floats


@dataclass(frozen=True, slots=True)
class ContrastTests:
    """Contrasts of the cells of one or more outputs and sets of cells, each with its interval and test."""

    moments: CellMoments
    weights: Floats
    is_share: bool
    level: float
    judgements: _Judgements

    @classmethod
    def of(cls, of: CellMoments, weights: Floats, *, is_share: bool, level: float) -> ContrastTests:
        """Means judged by t, shares by Newcombe's interval."""
        with np.errstate(divide="ignore", invalid="ignore"):
            judged = (_judge_shares if is_share else _judge_means)(of, weights, level)
            plain = ((of.shares if is_share else of.means) * weights).sum(axis=-1)
        few, empty = of.clusters.min(axis=-1) < 2, of.sizes.min(axis=-1) == 0
        numbers = _Judgements(*(np.where(few, np.nan, part) for part in judged))
        estimate = np.where(empty, np.nan, np.where(few, plain, judged.estimate))
        return cls(of, weights, is_share, level, numbers._replace(estimate=estimate))

    def difference(self, *at: int) -> Difference:
        """One contrast; a is what has a positive weight, b what has a negative one."""
        numbers = {name: float(part[at]) for name, part in self.judgements._asdict().items()}
        known = {name: None if math.isnan(number) else number for name, number in numbers.items()}
        low, high, df, least = known["low"], known["high"], known["df"], None
        # From the interval's half width: shares near 0 count with the uncertainty they are shown with.
        if low is not None and high is not None and df is not None:
            least = (high - low) / 2 * (1 + t_quantile(POWER, df) / t_quantile((1 + self.level) / 2, df))
        sizes, clusters = self.moments.sizes[at[1:]], self.moments.clusters[at[1:]]
        reason = NO_VARIATION if known["p"] is None else None
        return Difference(
            **known,
            level=self.level,
            n_a=int(sizes[self.weights > 0].sum()),
            n_b=int(sizes[self.weights < 0].sum()),
            n_clusters=int(self.moments.n_clusters[at[1:]]),
            min_detectable=least,
            method=SHARES if self.is_share else MEANS,
            null_reason=NO_VALUES if not sizes.all() else ONE_CLUSTER if clusters.min() < 2 else reason,
        )

    def ratio(self, *at: int) -> Estimate:
        """The mean of the first cell over that of the second."""
        of = self.moments.select(*at)
        # Without rounding, or a share of 0 might have a ratio.
        exact = replace(of, means=of.shares) if self.is_share and of.sizes.all() else of
        return estimate_ratio(exact, self.level)

    def shares(self, output: int) -> list[Estimate]:
        """The share of the first cell of each set, as `clustered_proportion` has it."""
        return share_estimates(self.moments.select(output), self.level)


def _judge_means(of: CellMoments, weights: Floats, level: float) -> _Judgements:
    estimate, variance, df = of.contrast(weights)
    se = np.sqrt(variance)
    half = np.where(se > 0, t_quantiles((1 + level) / 2, df) * se, np.nan)
    p = np.where(se > 0, 2 * t_lower_tails(-np.abs(estimate / se), df), np.nan)
    return _Judgements(estimate, estimate - half, estimate + half, se, df, p)


def _judge_shares(of: CellMoments, weights: Floats, level: float) -> _Judgements:
    joined = NewcombeIntervals.of(of, weights)
    _, variance, df = of.contrast(weights)
    estimate, se, quantile = joined.estimate, np.sqrt(variance), t_quantiles((1 + level) / 2, df)
    low, high = joined.interval(quantile)
    first = joined.shares[..., :1]
    is_constant = ((joined.shares == first) & (first % 1 == 0)).all(axis=-1)
    p = np.where(is_constant, np.nan, 2 * t_lower_tails(-joined.touching_quantile(), df))
    # So few clusters hardly tell how the shares move together: be as wide as the t test.
    few = (of.n_clusters < FEW_CLUSTERS) & ~np.isnan(p)
    low = np.where(few, np.minimum(low, estimate - quantile * se), low)
    high = np.where(few, np.maximum(high, estimate + quantile * se), high)
    plain = np.where(se > 0, 2 * t_lower_tails(-np.abs(estimate / se), df), np.nan)
    p = np.where(few, np.maximum(p, plain), p)
    low = np.maximum(low, weights[weights < 0].sum())
    high = np.minimum(high, weights[weights > 0].sum())
    # Clusters that vary, and vary alike in all cells, leave no yardstick for their difference.
    bare = variance < _MIN_VARIANCE_SHARE * of.variances.max(axis=-1)
    low, high, p = (np.where(bare, np.nan, part) for part in (low, high, p))
    return _Judgements(estimate, low, high, se, df, p)


@dataclass(frozen=True)
class GapLayout:
    """Rows in groups and clusters; each group stands against one other group, or against all other rows."""

    groups: Ints
    """The group of each row."""
    clusters: Ints
    """The cluster of each row."""
    n_groups: int
    baseline: int | None = None
    """The group that the others are compared with; None is all other rows."""

    @cached_property
    def _sums(self) -> ClusterTable:
        _, clusters = np.unique(self.clusters, return_inverse=True)
        return ClusterTable.of(self.groups, clusters, self.n_groups)

    @cached_property
    def _cached_gaps(self) -> list[tuple[Ints, ClusterTable]]:
        return [self._gap(group) for group in range(self.n_groups)]

    def _gap(self, group: int) -> tuple[Ints, ClusterTable]:
        """Which sums a group and its baseline have, and their table."""
        sums, base = self._sums, self.baseline
        used = np.flatnonzero((sums.cell == group) | (base is None) | (sums.cell == base))
        outside = sums.cell[used] != group
        return used, ClusterTable.of(outside.astype(np.intp), sums.cluster[used], 2, sums.n[used])

    def moments(self, values: Floats) -> CellMoments:
        """The moments of every gap for each row of ``values``; a cell without rows has zeros."""
        low, high = self._ends(values, np.minimum, np.inf), self._ends(values, np.maximum, -np.inf)
        centre = values.mean(axis=1) if values.size else np.zeros(len(values))
        totals = np.zeros((len(values), self._sums.n.size))
        for of_output, row, mean in zip(totals, values, centre, strict=True):
            of_output[:] = self._sums.sum_pairs(row[None] - mean)
        step = max(1, _BLOCK // max(1, self._sums.n.size))
        blocks = [slice(at, at + step) for at in range(0, max(1, len(values)), step)]
        is_small = self.n_groups * self._sums.n.size <= _MOST_CACHED
        tables = self._cached_gaps if is_small else map(self._gap, range(self.n_groups))
        gaps = []
        for group, (used, table) in enumerate(tables):
            ends = (low[:, group], high[:, group])
            parts = [
                table.moments(table.sum_pairs(totals[at, used]), centre[at], *(end[at] for end in ends))
                for at in blocks
            ]
            gaps.append(CellMoments.join(parts))
        return CellMoments.stack(gaps)

    def _ends(self, values: Floats, fold: np.ufunc, start: float) -> Floats:
        """The lowest or highest value of both cells of every gap together: outputs x groups."""
        if self.baseline is None:
            ends = fold.reduce(values, axis=1, initial=start, keepdims=True)
            return np.repeat(ends, self.n_groups, axis=1)
        ends = np.full((len(values), self.n_groups), start)
        for of_output, row in zip(ends, values, strict=True):
            fold.at(of_output, self.groups, row)
        both: Floats = fold(ends, ends[:, [self.baseline]])
        return both


def compare_many_gaps(layout: GapLayout, values: Floats, *, is_share: bool, level: float) -> ContrastTests:
    """Each group against its baseline for each row of ``values``, outputs that the same texts have."""
    return ContrastTests.of(layout.moments(values), GAP, is_share=is_share, level=level)


class Stratified(NamedTuple):
    """A gap inside strata, beside the same gap over all rows."""

    adjusted: Difference
    """The mean of the gaps inside strata, weighted by the rows of a stratum."""
    disagrees: bool
    """True where it and the gap over all rows have opposite signs and one of the intervals excludes 0."""


def stratified_difference(
    y: npt.ArrayLike,
    group: npt.ArrayLike,
    strata: npt.ArrayLike,
    clusters: Ids = None,
    *,
    is_share: bool = False,
    level: float = 0.95,
) -> Stratified:
    """The gap between ``group`` (True) and the others inside strata, and whether it reverses the plain one.

    The adjusted gap gives each stratum the weight of its rows, the same for both sides (direct
    standardisation); strata in which a side has fewer than two clusters are left out. Both gaps have
    cluster-robust intervals, of means or (``is_share``) of shares.
    """
    values = check_values(y)
    others = (~check_group(group, values.size)).astype(np.intp)
    codes = encode_clusters(clusters, values.size)
    names, of_stratum = np.unique(np.asarray(strata), return_inverse=True)
    cells = 2 * of_stratum + others
    is_usable = clusters_per_cell(cells, codes, 2 * names.size).reshape(-1, 2).min(axis=1) >= 2
    judge = partial(clustered_contrast, is_share=is_share, level=level)
    crude = judge(values, others, codes, weights=(1.0, -1.0))
    weights = np.repeat(np.bincount(of_stratum, minlength=names.size) * is_usable, 2).astype(np.float64)
    weights[1::2] *= -1
    weights /= max(float(weights[::2].sum()), 1.0)
    adjusted = judge(values, cells, codes, weights=weights.tolist())
    is_reversed = (crude.estimate or 0.0) * (adjusted.estimate or 0.0) < 0
    return Stratified(adjusted, is_reversed and (_excludes_zero(crude) or _excludes_zero(adjusted)))


def _excludes_zero(gap: Difference) -> bool:
    return gap.low is not None and gap.high is not None and (gap.low > 0 or gap.high < 0)
