"""Cluster-robust gaps between groups: of means, of shares, any contrast, all groups at once.

And the check on them, a cluster permutation test: how extreme is the gap among permuted labels?
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
    RandomSource,
    check_binary,
    check_group,
    check_level,
    check_values,
    clusters_per_cell,
    encode_clusters,
    encode_jointly,
    weighted_counts,
)
from evenhand.stats._moments import CellMoments, ClusterTable, compute_moments
from evenhand.stats.intervals import NewcombeIntervals, effective_sizes, estimate_ratio, share_estimates
from evenhand.stats.power_analysis import GapSpread, SharePair
from evenhand.stats.quantiles import f_upper_tail, t_lower_tails, t_quantile, t_quantiles
from evenhand.stats.results import NO_VALUES, NO_VARIATION, ONE_CLUSTER, TOO_MANY_GROUPS, Difference, Omnibus

FEW_CLUSTERS = 10
"""With fewer clusters the correlation of two shares is too uncertain to narrow an interval."""
_MIN_VARIANCE_SHARE = 1e-12
"""A difference whose variance is below this share of its cells' variances has none."""
MEANS = "cluster-robust t"
SHARES = "cluster-robust Newcombe"
MOST_GROUPS = 5_000
"""Maximum number of groups in an omnibus test: this many take about a gigabyte."""
GAP = np.array([1.0, -1.0])


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
    prompt under two models) are treated as pairs. Means use a t test: with every row its own cluster this is
    Welch's test, except for the degrees of freedom, which come from the design instead of the two sample
    variances.

    Shares use Newcombe's interval at the effective sample sizes. It combines the two cluster-robust Wilson
    intervals (Newcombe 1998, method 10; Zou and Donner 2008 with correlation where clusters span both
    groups), so that 0 of 20 texts still has an uncertainty. A label that occurs in few clusters is tested
    with few degrees of freedom. The p-value is the level at which the interval touches 0: the two always
    agree. The effective size of a group whose share is exactly 0 or 1 uses the other group's intraclass
    correlation.
    """
    check = check_binary if is_share else check_values
    a, b = check(y_a, "y_a"), check(y_b, "y_b")
    codes = encode_jointly(clusters_a, a.size, clusters_b, b.size)
    cells = np.repeat([0, 1], [a.size, b.size])
    moments = compute_moments(np.concatenate([a, b]), cells, codes, n_cells=2)
    gap = ContrastTests.of(moments, GAP, is_share=is_share, level=check_level(level))
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
    cells (group, baseline) x (model 1, model 2) test whether the gap of model 1 exceeds that of model 2. In
    the result a stands for the cells with a positive weight, b for those with a negative one. Means use a t
    test, shares (``is_share``) the test of `clustered_gap`.
    """
    values = (check_binary if is_share else check_values)(y, "y")
    of_cell = np.asarray(cells)
    if of_cell.dtype.kind not in "iu" or not ((of_cell >= 0) & (of_cell < len(weights))).all():
        raise InputError(
            f"cells of type {of_cell.dtype} do not index the {len(weights)} weights",
            expected=f"one integer from 0 to {len(weights) - 1} for each value",
        )
    codes = encode_clusters(clusters, values.size)
    own = np.asarray(weights, dtype=np.float64)
    used, keep = np.flatnonzero(own), own[of_cell] != 0
    if not used.size:
        method, n_clusters = SHARES if is_share else MEANS, np.unique(codes).size
        return Difference(
            level=level, n_a=0, n_b=0, n_clusters=n_clusters, method=method, null_reason=NO_VALUES
        )
    packed = np.searchsorted(used, of_cell[keep])
    moments = compute_moments(values[keep], packed, codes[keep], n_cells=used.size)
    return ContrastTests.of(moments, own[used], is_share=is_share, level=check_level(level)).difference()


def clustered_omnibus(y: npt.ArrayLike, groups: npt.ArrayLike, clusters: Ids = None) -> Omnibus:
    """Cluster-robust F test, with Rao and Scott's correction, that all groups have one mean (or share).

    Run it before testing any single group: p is small if the groups differ more than variation between
    clusters explains. Groups with one cluster are left out and counted. The test keeps its level with few
    clusters, rare labels, and more groups than clusters. With more than ``MOST_GROUPS`` groups the result is
    null with a reason.
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
    statistic, df_between, df_error = test
    return result(statistic=statistic, df_between=df_between, df_error=df_error, p=f_upper_tail(*test))


@dataclass(frozen=True, slots=True)
class ContrastTests:
    """Contrasts of cells, for one or more outputs and sets of cells, each with its interval and test."""

    moments: CellMoments
    weights: Floats
    intervals: NewcombeIntervals | None
    """Of shares; null for means."""
    level: float
    judgements: Mapping[str, Floats]
    """Numbers per contrast, by the field of a `Difference`; NaN where missing."""

    @classmethod
    def of(cls, cells: CellMoments, weights: Floats, *, is_share: bool, level: float) -> ContrastTests:
        """Test means by t, shares by Newcombe's interval."""
        with np.errstate(divide="ignore", invalid="ignore"):
            intervals = _newcombe(cells, weights) if is_share else None
            parts = (
                _judge_shares(cells, intervals, level) if intervals else _judge_means(cells, weights, level)
            )
            plain = ((cells.shares if is_share else cells.means) * weights).sum(axis=-1)
        few, empty = cells.clusters.min(axis=-1) < 2, cells.sizes.min(axis=-1) == 0
        numbers = {name: np.where(few, np.nan, part) for name, part in parts.items()}
        numbers["estimate"] = np.where(empty, np.nan, np.where(few, plain, parts["estimate"]))
        return cls(cells, weights, intervals, level, numbers)

    def difference(self, *at: int) -> Difference:
        """One contrast; a stands for the cells with a positive weight, b for those with a negative one."""
        numbers = {name: float(part[at]) for name, part in self.judgements.items()}
        known = {name: None if math.isnan(number) else number for name, number in numbers.items()}
        sizes, clusters = self.moments.sizes[at[1:]], self.moments.clusters[at[1:]]
        reason = NO_VARIATION if known["p"] is None else None
        return Difference(
            **known,
            level=self.level,
            n_a=int(sizes[self.weights > 0].sum()),
            n_b=int(sizes[self.weights < 0].sum()),
            n_clusters=int(self.moments.n_clusters[at[1:]]),
            spread=self._spread(*at) if known["low"] is not None else None,
            method=SHARES if self.intervals else MEANS,
            null_reason=NO_VALUES if not sizes.all() else ONE_CLUSTER if clusters.min() < 2 else reason,
        )

    def _spread(self, *at: int) -> GapSpread:
        """What decides which gap this test detects."""
        se, df, low, high = (float(self.judgements[name][at]) for name in ("se", "df", "low", "high"))
        if self.intervals is None:
            return GapSpread(se, df)
        if self.weights.size > 2 or not np.array_equal(self.weights, GAP):
            # From the interval's half width, so that shares near 0 have the uncertainty that is reported.
            return GapSpread((high - low) / 2 / t_quantile((1 + self.level) / 2, df), df)
        # One design effect for both, since that of a rare label is known roughly.
        rows = self.moments.sizes[at[1:]]
        size, other = (rows / (rows / self.intervals.sizes[at]).mean()).tolist()
        pair = SharePair(
            baseline=float(self.intervals.shares[*at, 1]),
            size=size,
            baseline_size=other,
            shared=float(np.asarray(self.intervals.shared)[at]),
            is_few=bool(self.moments.n_clusters[at[1:]] < FEW_CLUSTERS),
        )
        return GapSpread(se, df, pair)

    def ratio(self, *at: int) -> Estimate:
        """The mean of the first cell divided by that of the second."""
        pair = self.moments.select(*at)
        # Without rounding error, or a share of 0 might get a ratio.
        exact = replace(pair, means=pair.shares) if self.intervals and pair.sizes.all() else pair
        return estimate_ratio(exact, self.level)

    def shares(self, output: int) -> list[Estimate]:
        """The share of the first cell of each set, as in `clustered_proportion`."""
        return share_estimates(self.moments.select(output), self.level)


def _judge_means(cells: CellMoments, weights: Floats, level: float) -> dict[str, Floats]:
    estimate, variance, df = cells.contrast(weights)
    se = np.sqrt(variance)
    half = np.where(se > 0, t_quantiles((1 + level) / 2, df) * se, np.nan)
    p = np.where(se > 0, 2 * t_lower_tails(-np.abs(estimate / se), df), np.nan)
    return {"estimate": estimate, "low": estimate - half, "high": estimate + half, "se": se, "df": df, "p": p}


def _newcombe(cells: CellMoments, weights: Floats) -> NewcombeIntervals:
    _, variance, df = cells.contrast(weights)
    independent = (weights**2 * cells.variances).sum(axis=-1)
    shared = np.where(independent > 0, variance / independent, 1.0)
    sizes = effective_sizes(cells.shares, cells.sizes, cells.kish, cells.variances)
    return NewcombeIntervals(cells.shares, sizes, weights, shared, df, cells.own_df(df))


def _judge_shares(cells: CellMoments, newcombe: NewcombeIntervals, level: float) -> dict[str, Floats]:
    weights = newcombe.weights
    _, variance, df = cells.contrast(weights)
    estimate, se, quantile = newcombe.estimate, np.sqrt(variance), t_quantiles((1 + level) / 2, df)
    low, high = newcombe.interval(quantile)
    first = newcombe.shares[..., :1]
    is_constant = ((newcombe.shares == first) & (first % 1 == 0)).all(axis=-1)
    p = np.where(is_constant, np.nan, 2 * t_lower_tails(-newcombe.touching_quantile(), df))
    # So few clusters cannot estimate the correlation of the shares: be at least as wide as the t test.
    few = (cells.n_clusters < FEW_CLUSTERS) & ~np.isnan(p)
    low = np.where(few, np.minimum(low, estimate - quantile * se), low)
    high = np.where(few, np.maximum(high, estimate + quantile * se), high)
    plain = np.where(se > 0, 2 * t_lower_tails(-np.abs(estimate / se), df), np.nan)
    p = np.where(few, np.maximum(p, plain), p)
    low = np.maximum(low, weights[weights < 0].sum())
    high = np.minimum(high, weights[weights > 0].sum())
    # Clusters that vary identically in all cells leave no standard error for the difference.
    is_degenerate = variance < _MIN_VARIANCE_SHARE * cells.variances.max(axis=-1)
    low, high, p = (np.where(is_degenerate, np.nan, part) for part in (low, high, p))
    return {"estimate": estimate, "low": low, "high": high, "se": se, "df": df, "p": p}


@dataclass(frozen=True, slots=True)
class GapLayout:
    """Rows in groups and clusters; each group is compared with a baseline group or all other rows."""

    groups: Ints
    """The group of each row."""
    clusters: Ints
    """The cluster of each row."""
    n_groups: int
    baseline: int | None = None
    """The group that the others are compared with; None means all other rows."""

    def moments(self, values: Floats) -> CellMoments:
        """The moments of every gap for each row of ``values``; those of a cell without rows are zeros."""
        _, clusters = np.unique(self.clusters, return_inverse=True)
        sums, base = ClusterTable.of(self.groups, clusters, self.n_groups), self.baseline
        low, high = self._ends(values, np.minimum, np.inf), self._ends(values, np.maximum, -np.inf)
        centre = values.mean(axis=1) if values.size else np.zeros(len(values))
        totals = np.zeros((len(values), sums.n.size))
        for of_output, row, mean in zip(totals, values, centre, strict=True):
            of_output[:] = sums.sum_pairs(row[None] - mean)
        gaps = []
        for group in range(self.n_groups):
            used = np.flatnonzero((sums.cell == group) | (base is None) | (sums.cell == base))
            outside = (sums.cell[used] != group).astype(np.intp)
            table = ClusterTable.of(outside, sums.cluster[used], 2, sums.n[used])
            of_pairs = table.sum_pairs(totals[:, used])
            gaps.append(table.moments(of_pairs, centre, low[:, group], high[:, group]))
        return CellMoments.stack(gaps)

    def _ends(self, values: Floats, fold: np.ufunc, start: float) -> Floats:
        """The lowest or highest value over both cells of each gap: outputs x groups."""
        if self.baseline is None:
            ends = fold.reduce(values, axis=1, initial=start, keepdims=True)
            return np.repeat(ends, self.n_groups, axis=1)
        ends = np.full((len(values), self.n_groups), start)
        for of_output, row in zip(ends, values, strict=True):
            fold.at(of_output, self.groups, row)
        both: Floats = fold(ends, ends[:, [self.baseline]])
        return both


def compare_many_gaps(layout: GapLayout, values: Floats, *, is_share: bool, level: float) -> ContrastTests:
    """Compare each group with its baseline for each row of ``values`` (one output of the same texts)."""
    return ContrastTests.of(layout.moments(values), GAP, is_share=is_share, level=level)


class Stratified(NamedTuple):
    """A gap adjusted for strata, compared with the gap over all rows."""

    adjusted: Difference
    """The mean of the gaps within strata, weighted by the number of rows per stratum."""
    disagrees: bool
    """True if it and the gap over all rows have opposite signs and at least one interval excludes 0."""


def stratified_difference(
    y: npt.ArrayLike,
    group: npt.ArrayLike,
    strata: npt.ArrayLike,
    clusters: Ids = None,
    *,
    is_share: bool = False,
    level: float = 0.95,
) -> Stratified:
    """The gap between ``group`` (True) and the others adjusted for strata, and whether its sign reverses.

    The adjusted gap weights each stratum by its number of rows, the same for both sides (direct
    standardisation); strata in which a side has fewer than two clusters are left out. Both gaps have
    cluster-robust intervals, of means or (``is_share``) of shares.
    """
    values = check_values(y)
    others = (~check_group(group, values.size)).astype(np.intp)
    codes = encode_clusters(clusters, values.size)
    names, of_stratum = np.unique(np.asarray(strata), return_inverse=True)
    cells = 2 * of_stratum + others
    is_usable = clusters_per_cell(cells, codes, 2 * names.size).reshape(-1, 2).min(axis=1) >= 2
    contrast = partial(clustered_contrast, is_share=is_share, level=level)
    crude = contrast(values, others, codes, weights=(1.0, -1.0))
    weights = np.repeat(np.bincount(of_stratum, minlength=names.size) * is_usable, 2).astype(np.float64)
    weights[1::2] *= -1
    weights /= max(float(weights[::2].sum()), 1.0)
    adjusted = contrast(values, cells, codes, weights=weights.tolist())
    is_reversed = (crude.estimate or 0.0) * (adjusted.estimate or 0.0) < 0
    return Stratified(adjusted, is_reversed and (_excludes_zero(crude) or _excludes_zero(adjusted)))


def _excludes_zero(gap: Difference) -> bool:
    return gap.low is not None and gap.high is not None and (gap.low > 0 or gap.high < 0)


_BLOCK = 2_000_000
"""Number of cluster labels held in memory at once."""
_CANCELLED = 1e-13
"""A variance below this share of its terms is cancellation error."""
_TIE = 1e-9
"""Statistics within this relative distance are ties, separated only by rounding."""


class Permutation(NamedTuple):
    """A p-value from exchanging group labels."""

    estimate: float | None = None
    """Mean of the group minus mean of the others."""
    p: float | None = None
    """Two-sided. Never below 1 / (arrangements + 1) unless exact."""
    arrangements: int = 0
    """Number of label arrangements evaluated."""
    is_exact: bool = False
    """True if every possible arrangement was evaluated."""
    null_reason: str | None = None


def cluster_permutation(
    y: npt.ArrayLike,
    group: npt.ArrayLike,
    clusters: Ids = None,
    *,
    rng: RandomSource,
    is_share: bool = False,
    resamples: int = 10_000,
) -> Permutation:
    """The two-sided permutation p-value of the gap between ``group`` (True) and the rest.

    Labels are permuted among clusters that lie on one side; a cluster that spans both exchanges its two
    sides or not (for pairs: a sign flip). The statistic is the gap over its cluster-robust standard error, so
    the test is also valid where only the variances of the groups differ (Janssen 1997). For shares
    (``is_share``; values of 0 and 1) it is the quantile at which the default test's interval touches 0: a
    rare label is absent from the group in most arrangements, which makes the standard error 0, so that no
    real gap would ever be significant.
    All arrangements are enumerated if there are at most ``resamples``; else p = (1 + number as extreme) /
    (resamples + 1).
    """
    values = (check_binary if is_share else check_values)(y, "y")
    in_group = check_group(group, values.size)
    sides = _Sides.of(values, in_group, encode_clusters(clusters, values.size))
    if not sides.n_clusters or sides.sizes.sum(axis=0).min() == 0:
        return Permutation(null_reason=NO_VALUES)
    inside, outside = sides.sums.sum(axis=0) / sides.sizes.sum(axis=0)
    gap, is_single = float(inside - outside), np.count_nonzero(sides.sizes, axis=0).min() < 2
    if is_single or float(np.ptp(values)) == 0:
        return Permutation(gap, null_reason=ONE_CLUSTER if is_single else NO_VARIATION)
    statistics = partial(_judge_share_totals, centre=float(values.mean())) if is_share else _judge_mean_totals
    observed = float(statistics(sides.totals(np.zeros((1, sides.n_clusters), dtype=np.bool_)))[0])
    total = math.comb(sides.inside.size, int(sides.inside.sum())) << int(np.count_nonzero(sides.spans))
    is_exact = total <= resamples
    blocks = sides.enumerate_totals() if is_exact else sides.draw(rng, resamples)
    threshold = observed * (1 - _TIE)
    extreme = sum(int(np.count_nonzero(statistics(block) >= threshold)) for block in blocks)
    p = extreme / total if is_exact else (1 + extreme) / (resamples + 1)
    return Permutation(gap, p, total if is_exact else resamples, is_exact)


class _Sides(NamedTuple):
    """Each cluster's sums and sizes inside (column 0) and outside (column 1) the group."""

    sums: Floats
    sizes: Floats

    @classmethod
    def of(cls, y: Floats, group: Bools, codes: Ints) -> _Sides:
        """Clusters sorted by content, so the draws do not depend on row order or names."""
        key = codes * 2 + ~group
        length = 2 * (int(codes.max(initial=-1)) + 1)
        sizes = np.bincount(key, minlength=length).reshape(-1, 2).astype(np.float64)
        centred = y - y.mean() if y.size else y
        sums = weighted_counts(key, centred, length).reshape(-1, 2)
        order = np.lexsort((sums[:, 1], sums[:, 0], sizes[:, 1], sizes[:, 0]))
        order = order[sizes[order].sum(axis=1) > 0]
        return cls(sums[order], sizes[order])

    @property
    def n_clusters(self) -> int:
        return int(self.sums.shape[0])

    @property
    def spans(self) -> Bools:
        """Which clusters span both sides."""
        both: Bools = self.sizes.min(axis=1) > 0
        return both

    @property
    def inside(self) -> Bools:
        """Which of the one-sided clusters are in the group."""
        inside: Bools = self.sizes[~self.spans, 0] > 0
        return inside

    def enumerate_totals(self) -> Iterator[Floats]:
        """The totals of every arrangement, in blocks."""
        spans, inside = self.spans, self.inside
        one_sided, two_sided = np.flatnonzero(~spans), np.flatnonzero(spans)
        chosen = itertools.combinations(one_sided.tolist(), int(inside.sum()))
        flips = itertools.product((False, True), repeat=two_sided.size)
        arrangements = itertools.product(chosen, flips)
        while rows := list(itertools.islice(arrangements, max(1, _BLOCK // self.n_clusters))):
            block = np.zeros((len(rows), self.n_clusters), dtype=np.bool_)
            for row, (members, flipped) in zip(block, rows, strict=True):
                row[list(members)] = True
                row[two_sided] = flipped
            block[:, one_sided] ^= inside
            yield self.totals(block)

    def draw(self, rng: RandomSource, resamples: int) -> Iterator[Floats]:
        """The totals of random arrangements, in blocks."""
        # Imported here: numba takes half a second, and most runs do not need it.
        from evenhand.stats import _random_draws

        rows, generator = max(1, _BLOCK // self.n_clusters), _random_draws.make_generator(rng)
        one_sided, two_sided = np.flatnonzero(~self.spans), np.flatnonzero(self.spans)
        straight, change = self._products()
        for start in range(0, resamples, rows):
            totals = np.tile(straight.sum(axis=0), (min(rows, resamples - start), 1))
            state = _random_draws.read_state(generator)
            _random_draws.permute_totals(self.inside, one_sided, two_sided, change, state, totals)
            _random_draws.restore_state(generator, state)
            yield totals

    def totals(self, exchanged: Bools) -> Floats:
        """For each arrangement the sums of (s, m, t, n), then the sums of their products."""
        straight, change = self._products()
        totals: Floats = straight.sum(axis=0) + exchanged.astype(np.float64) @ change
        return totals

    def _products(self) -> tuple[Floats, Floats]:
        """Each cluster's contribution to the totals, and the change in it when its sides are exchanged."""
        parts = np.stack([self.sums, self.sizes], axis=2).reshape(-1, 4)
        straight, crossed = (
            np.concatenate([side, np.einsum("gi,gj->gij", side, side).reshape(-1, 16)], axis=1)
            for side in (parts, parts[:, [2, 3, 0, 1]])
        )
        return straight, crossed - straight


def _judge_mean_totals(totals: Floats) -> Floats:
    """|gap| / standard error under each arrangement (a row of ``totals``).

    With a cluster's sums s, t and sizes m, n on the two sides, its influence on the gap is (s - A m) / M -
    (t - B n) / N. The sum of its squares needs only the sums of the products of (s, m, t, n), and each of
    those is one matrix product with the exchanged labels.
    """
    s, m, t, n = totals[:, :4].T
    gap = np.abs(s / m - t / n)
    weights = np.stack([1 / m, -s / m**2, -1 / n, t / n**2], axis=1)
    terms = weights[:, :, None] * weights[:, None, :] * totals[:, 4:].reshape(-1, 4, 4)
    variance = terms.sum(axis=(1, 2))
    has_spread = variance > _CANCELLED * np.abs(terms).sum(axis=(1, 2))
    ratio = np.divide(gap, np.sqrt(np.abs(variance)), out=np.zeros_like(gap), where=has_spread)
    return np.where(has_spread, ratio, np.where(gap > 0, np.inf, 0.0))


@np.errstate(divide="ignore", invalid="ignore")
def _judge_share_totals(totals: Floats, *, centre: float) -> Floats:
    """The quantile at which the interval of the gap touches 0; values were centred at ``centre``."""
    successes, rows, products = totals[:, :4:2], totals[:, 1:4:2], totals[:, 4:].reshape(-1, 4, 4)
    means = successes / rows
    shares = np.rint(successes + centre * rows) / rows
    # Effective numbers of clusters.
    kish = rows**2 / products[:, [1, 3], [1, 3]]
    # The influence of a cluster on the two means is (s - A m) / M and (t - B n) / N.
    influence = np.zeros((len(totals), 2, 4))
    influence[:, [0, 1], [0, 2]], influence[:, [0, 1], [1, 3]] = 1 / rows, -means / rows
    covariance = influence @ products @ influence.transpose(0, 2, 1)
    variances = np.diagonal(covariance, axis1=1, axis2=2)
    variances = np.where((shares > 0) & (shares < 1) & (variances > _CANCELLED), variances, 0.0)
    independent = variances.sum(axis=1)
    # The variance of the gap, with the covariance from clusters on both sides.
    variance = independent - 2 * np.where(variances.all(axis=1), covariance[:, 0, 1], 0.0)
    shared = np.where(independent > 0, np.maximum(variance, 0) / independent, 1.0)
    correction = np.where(kish > 1 + _TIE, kish / (kish - 1), 1.0)
    sizes = effective_sizes(shares, rows, kish, variances * correction)
    return NewcombeIntervals(shares, sizes, GAP, shared).touching_quantile()
