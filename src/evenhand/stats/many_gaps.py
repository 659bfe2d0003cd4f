"""Every group of an axis against its baseline at once: the moments of many gaps from one table of sums.

A gap needs the sums of its two cells by cluster (`_moments`). The groups of an axis share those: the cell of
a group is its part of the table, the cell of the rest is what the clusters hold in all less that part. What
depends on who is where and not on any value (sizes, degrees of freedom) is found once a `Layout`, and serves
every output and every cut of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from evenhand.core.records import Estimate
from evenhand.stats._arrays import Bools, Floats, Ints, weighted_counts
from evenhand.stats._moments import CANCELLED, CellMoments, rounding_floor
from evenhand.stats.contrasts import FEW_CLUSTERS, MEANS, MIN_VARIANCE_SHARE, POWER, SHARES
from evenhand.stats.intervals import (
    HALVINGS,
    LARGEST_QUANTILE,
    LEAST_TAIL,
    ROUNDING,
    SHARE,
    estimate_ratio,
    wilson_ends,
)
from evenhand.stats.quantiles import t_lower_tails, t_quantiles
from evenhand.stats.results import NO_VALUES, NO_VARIATION, ONE_CLUSTER, Difference

_BLOCK = 250_000
"""Cluster sums worked on at a time: they stay in the cache of one core."""

_KEPT = 5_000_000
"""Groups x clusters up to which the cells of gaps are kept between outputs."""


class GapCells(NamedTuple):
    """What the two cells of every gap are, whatever the values; axes: gaps, then cells."""

    sizes: Floats
    clusters: Ints
    kish: Floats
    n_clusters: Ints
    design: Floats
    """As in `Moments`, of shape (gaps, 2, 2)."""


class GapMoments(NamedTuple):
    """What values make of every gap; axes: outputs, gaps, then cells."""

    means: Floats
    covariance: Floats
    fourth: Floats


class _Cell(NamedTuple):
    """One cell: its clusters, their rows, and what turns their residual sums into parts of the mean."""

    clusters: Ints
    n: Floats
    size: float
    scale: Floats

    @classmethod
    def of(cls, clusters: Ints, n: Floats) -> _Cell:
        size = float(n.sum())
        others = 1 - n / max(1.0, size)
        scale = np.zeros_like(n)
        np.divide(1, size * np.sqrt(np.maximum(others, 0)), out=scale, where=others > 0)
        return cls(clusters, n, size, scale)


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
    def _pairs(self) -> tuple[Ints, Ints, Ints, Floats]:
        """Where each row goes among the (group, cluster) pairs; starts of groups; clusters; rows a pair."""
        _, of_cluster = np.unique(self.clusters, return_inverse=True)
        n_clusters = int(of_cluster.max(initial=-1)) + 1
        found, place, n = np.unique(
            self.groups * n_clusters + of_cluster, return_inverse=True, return_counts=True
        )
        starts = np.searchsorted(found, np.arange(self.n_groups + 1) * n_clusters)
        return place, starts, found % max(1, n_clusters), n.astype(np.float64)

    @cached_property
    def n_clusters(self) -> int:
        """Clusters over all rows."""
        return int(self._pairs[2].max(initial=-1)) + 1

    def _group_rows(self, group: int) -> slice:
        starts = self._pairs[1]
        return slice(int(starts[group]), int(starts[group + 1]))

    def _inside(self, group: int) -> _Cell:
        _, _, clusters, n = self._pairs
        own = self._group_rows(group)
        return _Cell.of(clusters[own], n[own])

    def _outside(self, group: int) -> _Cell:
        if self.baseline is not None:
            return self._inside(self.baseline)
        _, _, clusters, n = self._pairs
        rows = weighted_counts(clusters, n, self.n_clusters)
        own = self._group_rows(group)
        rows[clusters[own]] -= n[own]
        there = np.flatnonzero(rows)
        return _Cell.of(there, rows[there])

    @property
    def _gaps(self) -> Iterable[_Gap]:
        # Kept where they are not too large: each holds an entry for every cluster.
        if self.n_groups * self.n_clusters <= _KEPT:
            return self._gap_list
        return (self._gap(group) for group in range(self.n_groups))

    @cached_property
    def _gap_list(self) -> list[_Gap]:
        return [self._gap(group) for group in range(self.n_groups)]

    def _gap(self, group: int) -> _Gap:
        return _Gap.of(self._inside(group), self._outside(group))

    @cached_property
    def cells(self) -> GapCells:
        """What the cells of every gap are; a cell without rows has zeros."""
        return GapCells(*(np.array(part) for part in zip(*(gap.facts() for gap in self._gaps), strict=True)))

    def moments(self, values: Floats) -> GapMoments:
        """The means of every gap's cells and how far they are known, for each row of ``values``."""
        if not values.size:
            shape = (len(values), self.n_groups)
            return GapMoments(np.zeros((*shape, 2)), np.zeros((*shape, 2, 2)), np.zeros((*shape, 2)))
        step = max(1, _BLOCK // self.n_clusters)
        parts = [self._spreads(values[start : start + step]) for start in range(0, len(values), step)]
        return GapMoments(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def _spreads(self, values: Floats) -> GapMoments:
        place, _, clusters, n = self._pairs
        low, high = self._ranges(values)
        # Equal values must come out as exactly equal means.
        centre = np.where(np.ptp(values, axis=1) > 0, values.mean(axis=1), values[:, 0])[:, None]
        totals = np.stack([weighted_counts(place, row, n.size) for row in values - centre])
        everywhere = np.stack([weighted_counts(clusters, row, self.n_clusters) for row in totals])
        shape = (len(values), self.n_groups)
        found = GapMoments(np.zeros((*shape, 2)), np.zeros((*shape, 2, 2)), np.zeros((*shape, 2)))
        for group, gap in enumerate(self._gaps):
            inside = totals[:, self._group_rows(group)]
            outside = self._sums_outside(group, gap, totals, everywhere)
            gap.fill(found, group, inside, outside)
        found.means[:] += centre[:, :, None]
        return _zero_rounding(found, low, high)

    def _sums_outside(self, group: int, gap: _Gap, totals: Floats, everywhere: Floats) -> Floats:
        if self.baseline is not None:
            return totals[:, self._group_rows(self.baseline)]
        rest = everywhere.copy()
        rest[:, gap.inside.clusters] -= totals[:, self._group_rows(group)]
        return rest if gap.outside.clusters.size == self.n_clusters else rest[:, gap.outside.clusters]

    def _ranges(self, values: Floats) -> tuple[Floats, Floats]:
        """The lowest and highest value of both cells of every gap together."""
        if self.baseline is None:
            every = np.ones((1, self.n_groups))
            return values.min(axis=1, keepdims=True) * every, values.max(axis=1, keepdims=True) * every
        low, high = (np.full((len(values), self.n_groups), end) for end in (np.inf, -np.inf))
        for row, of_row in enumerate(values):
            np.minimum.at(low[row], self.groups, of_row)
            np.maximum.at(high[row], self.groups, of_row)
        base = slice(self.baseline, self.baseline + 1)
        return np.minimum(low, low[:, base]), np.maximum(high, high[:, base])


class _Gap(NamedTuple):
    """The cells of one gap, and the clusters that reach over both."""

    inside: _Cell
    outside: _Cell
    both: tuple[Ints, Ints]
    """Where the shared clusters lie in the two cells."""

    @classmethod
    def of(cls, inside: _Cell, outside: _Cell) -> _Gap:
        _, first, second = np.intersect1d(
            inside.clusters, outside.clusters, assume_unique=True, return_indices=True
        )
        return cls(inside, outside, (first, second))

    def facts(self) -> tuple[Floats, Ints, Floats, int, Floats]:
        """The sizes, clusters, Kish sizes, clusters of both, and design of the gap."""
        cells = (self.inside, self.outside)
        sizes = np.array([cell.size for cell in cells])
        clusters = np.array([cell.clusters.size for cell in cells])
        kish = np.array([cell.size**2 / max(1.0, float(cell.n @ cell.n)) for cell in cells])
        union = int(clusters.sum()) - self.both[0].size
        return sizes, clusters, kish, union, self._design()

    def _design(self) -> Floats:
        cells = (self.inside, self.outside)
        own = [cell.scale**2 * cell.n for cell in cells]
        pull = [cell.scale * cell.n / np.sqrt(max(1.0, cell.size)) for cell in cells]
        found = np.zeros((2, 2))
        for cell in (0, 1):
            found[cell, cell] = _design(own[cell], own[cell], pull[cell], pull[cell])
        (own_a, pull_a), (own_b, pull_b) = (
            (own[cell][at], pull[cell][at]) for cell, at in enumerate(self.both)
        )
        found[0, 1] = found[1, 0] = _design(own_a, own_b, pull_a, pull_b)
        return found

    def fill(self, found: GapMoments, group: int, inside: Floats, outside: Floats) -> None:
        """Put in the means (not yet shifted back), covariances and fourth moments of a group's gap."""
        shared = []
        for number, (cell, totals) in enumerate(((self.inside, inside), (self.outside, outside))):
            shift = totals.sum(axis=1) / max(1.0, cell.size)
            residual = totals - shift[:, None] * cell.n
            residual *= cell.scale
            shared.append(residual[:, self.both[number]])
            residual *= residual
            found.means[:, group, number] = shift
            found.covariance[:, group, number, number] = residual.sum(axis=1)
            found.fourth[:, group, number] = np.einsum("qc,qc->q", residual, residual)
        between = np.einsum("qc,qc->q", *shared)
        found.covariance[:, group, 0, 1] = found.covariance[:, group, 1, 0] = between


def _design(own_a: Floats, own_b: Floats, pull_a: Floats, pull_b: Floats) -> float:
    crossed = float(own_a @ pull_b**2) + float(pull_a**2 @ own_b)
    return float(own_a @ own_b) - crossed + float(pull_a @ pull_b) ** 2


def _zero_rounding(found: GapMoments, low: Floats, high: Floats) -> GapMoments:
    """Exact zeros where a covariance is but rounding, and equal means where all values are equal."""
    diagonal = np.diagonal(found.covariance, axis1=2, axis2=3)
    rounding: Bools = diagonal <= rounding_floor(high - low)[:, :, None]
    zero = rounding[:, :, :, None] | rounding[:, :, None, :]
    flat = (high == low)[:, :, None]
    return GapMoments(
        means=np.where(flat, low[:, :, None], found.means),
        covariance=np.where(zero | flat[:, :, :, None], 0.0, found.covariance),
        fourth=np.where(flat, 0.0, found.fourth),
    )


REASONS: tuple[str | None, ...] = (None, NO_VALUES, ONE_CLUSTER, NO_VARIATION)
_SOUND, _EMPTY, _FEW, _FLAT = range(4)


class _Judged(NamedTuple):
    """Axes: outputs, groups; NaN where there is no number."""

    estimate: Floats
    low: Floats
    high: Floats
    se: Floats
    df: Floats
    p: Floats
    reason: Floats
    """Places in ``REASONS``."""


@dataclass(frozen=True, slots=True)
class ManyGaps:
    """Each group's gap to its baseline on each of several outputs."""

    cells: GapCells
    spreads: GapMoments
    is_share: bool
    level: float
    judged: _Judged
    min_detectable: Floats

    def difference(self, output: int, group: int) -> Difference:
        """One gap, as `clustered_gap` has it."""
        at, cells = (output, group), self.cells
        *numbers, reason = (float(part[at]) for part in self.judged)
        estimate, low, high, se, df, p = (_none_if_nan(number) for number in numbers)
        return Difference(
            estimate=estimate,
            low=low,
            high=high,
            se=se,
            df=df,
            p=p,
            level=self.level,
            n_a=int(cells.sizes[group, 0]),
            n_b=int(cells.sizes[group, 1]),
            n_clusters=int(cells.n_clusters[group]),
            min_detectable=_none_if_nan(float(self.min_detectable[at])),
            method=SHARES if self.is_share else MEANS,
            null_reason=REASONS[int(reason)],
        )

    def ratio(self, output: int, group: int) -> Estimate:
        """The mean of a group over that of its baseline."""
        sizes, clusters, kish, n_clusters, design = (part[group] for part in self.cells)
        if not sizes.all():
            return estimate_ratio(None, self.level)
        means, covariance, fourth = (part[output, group] for part in self.spreads)
        if self.is_share:
            means = _exact(means, sizes)
        of = CellMoments(means, sizes, clusters, kish, int(n_clusters), covariance, design, fourth)
        return estimate_ratio(of, self.level)


def compare_many_gaps(layout: GapLayout, values: Floats, *, is_share: bool, level: float) -> ManyGaps:
    """Each group against its baseline for each row of ``values``, outputs that the same texts have."""
    cells, spreads = layout.cells, layout.moments(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        of = _Contrasts.of(cells, spreads, is_share=is_share)
        found = _judged_shares(of, level) if is_share else _judged_means(of, level)
        few, empty = cells.clusters.min(axis=1) < 2, cells.sizes.min(axis=1) == 0
        low, high, se, df, p = (np.where(few, np.nan, part) for part in found[1:6])
        estimate = np.where(empty, np.nan, np.where(few, of.means[..., 0] - of.means[..., 1], found.estimate))
        reason = np.where(empty, _EMPTY, np.where(few, _FEW, found.reason))
        judged = _Judged(estimate, low, high, se, df, p, reason)
        return ManyGaps(cells, spreads, is_share, level, judged, _min_detectable(judged, level))


def estimate_many_shares(cells: GapCells, spreads: GapMoments, *, level: float) -> list[list[Estimate]]:
    """Each group's own share for each output, as `clustered_proportion` has it."""
    size, clusters, kish = cells.sizes[:, 0], cells.clusters[:, 0], cells.kish[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = _exact(spreads.means[..., 0], size)
        variance = spreads.covariance[..., 0, 0]
        df = np.broadcast_to(1 / size**2 / cells.design[:, 0, 0], share.shape)
        worth = np.where((share == 0) | (share == 1), kish, _worth(share, size, variance))
        own = _own_df(variance, clusters, spreads.fourth[..., 0], df)
        plain, wide = (t_quantiles((1 + level) / 2, known) for known in (df, own))
        low = wilson_ends(share, worth, np.where(share <= 0.5, wide, plain))[0]
        high = wilson_ends(share, worth, np.where(share >= 0.5, wide, plain))[1]
    return [
        [
            _estimate(share[at], low[at], high[at], int(size[at[1]]), int(clusters[at[1]]), level)
            for at in ((output, group) for group in range(size.size))
        ]
        for output in range(len(share))
    ]


def _estimate(share: float, low: float, high: float, n: int, n_clusters: int, level: float) -> Estimate:
    if not n:
        return Estimate(None, None, None, level, SHARE, 0, 0, 0, NO_VALUES)
    if n_clusters < 2:
        return Estimate(float(share), None, None, level, SHARE, n, 0, n_clusters, ONE_CLUSTER)
    return Estimate(float(share), float(low), float(high), level, SHARE, n, 0, n_clusters)


class _Contrasts(NamedTuple):
    """The differences of all gaps and what they are judged by; cells on a last axis."""

    cells: GapCells
    means: Floats
    variances: Floats
    variance: Floats
    df: Floats
    own: Floats
    """Degrees of freedom of each cell's own variance."""

    @classmethod
    def of(cls, cells: GapCells, spreads: GapMoments, *, is_share: bool) -> _Contrasts:
        covariance, design = spreads.covariance, cells.design
        variances = np.diagonal(covariance, axis1=2, axis2=3)
        apart = variances.sum(axis=-1)
        variance = apart - 2 * covariance[..., 0, 1]
        variance = np.where(variance <= CANCELLED * apart, 0.0, variance)
        df = (1 / cells.sizes).sum(axis=1) ** 2 / design.sum(axis=(1, 2))
        df = np.broadcast_to(df, variance.shape)
        own = _own_df(variances, cells.clusters, spreads.fourth, df[..., None])
        means = _exact(spreads.means, cells.sizes) if is_share else spreads.means
        return cls(cells, means, variances, variance, df, own)


def _judged_means(of: _Contrasts, level: float) -> _Judged:
    estimate, flat = of.means[..., 0] - of.means[..., 1], of.variance == 0
    se = np.sqrt(of.variance)
    half = np.where(flat, np.nan, t_quantiles((1 + level) / 2, of.df) * se)
    p = np.where(flat, np.nan, 2 * t_lower_tails(-np.abs(estimate / se), of.df))
    reason = np.where(flat, _FLAT, _SOUND)
    return _Judged(estimate, estimate - half, estimate + half, se, of.df, p, reason)


def _judged_shares(of: _Contrasts, level: float) -> _Judged:
    joined = _Newcombes.of(of)
    estimate, se = joined.estimate, np.sqrt(of.variance)
    quantile = t_quantiles((1 + level) / 2, of.df)
    low, high = estimate - joined.reach(quantile, up=False), estimate + joined.reach(quantile, up=True)
    first, second = of.means[..., 0], of.means[..., 1]
    p = np.where(
        (first == second) & ((first == 0) | (first == 1)),
        np.nan,
        2 * t_lower_tails(-joined.touching_quantiles(), of.df),
    )
    few = (of.cells.n_clusters < FEW_CLUSTERS) & ~np.isnan(p)
    low = np.where(few, np.minimum(low, estimate - quantile * se), low)
    high = np.where(few, np.maximum(high, estimate + quantile * se), high)
    plain = np.where(se > 0, 2 * t_lower_tails(-np.abs(estimate / se), of.df), np.nan)
    p = np.where(few, np.maximum(p, plain), p)
    bare = of.variance < MIN_VARIANCE_SHARE * of.variances.max(axis=-1)
    low, high, p = (
        np.where(bare, np.nan, part) for part in (np.maximum(low, -1.0), np.minimum(high, 1.0), p)
    )
    return _Judged(estimate, low, high, se, of.df, p, np.where(np.isnan(p), _FLAT, _SOUND))


class _Newcombes(NamedTuple):
    """`_newcombe.Newcombe` of two cells, many at once."""

    shares: Floats
    sizes: Floats
    shared: Floats
    df: Floats
    own: Floats

    @classmethod
    def of(cls, of: _Contrasts) -> _Newcombes:
        rows, kish = of.cells.sizes, of.cells.kish
        tells = (of.means > 0) & (of.means < 1)
        worth = _worth(of.means, rows, of.variances)
        excess = rows / kish - 1
        alike = np.clip((rows / worth - 1) / excess, 0, 1)
        # The worst case, 1, where the other cell cannot tell either.
        alike = np.where(tells & (excess > 0), alike, 1.0)[..., ::-1]
        apart = of.variances.sum(axis=-1)
        return cls(
            shares=of.means,
            sizes=np.where(tells, worth, rows / (1 + alike * excess)),
            shared=np.where(apart > 0, of.variance / apart, 1.0),
            df=of.df,
            own=of.own,
        )

    @property
    def estimate(self) -> Floats:
        """The differences."""
        found = self.shares[..., 0] - self.shares[..., 1]
        return np.where(np.abs(found) > ROUNDING, found, 0.0)

    def reach(self, z: Floats, *, up: bool) -> Floats:
        """How far the intervals at the quantile ``z`` lie below the estimates, or above."""
        # Below: the first share could be lower and the second higher; above, the other way.
        first, second = (1, 0) if up else (0, 1)
        down = self.shares[..., first] - self._end(first, z, upper=False)
        rise = self._end(second, z, upper=True) - self.shares[..., second]
        return np.sqrt(self.shared * (down * down + rise * rise))

    def touching_quantiles(self) -> Floats:
        """The quantiles at which the intervals touch 0, by bisection."""
        estimate = self.estimate
        away, is_up = np.abs(estimate), estimate < 0
        side = self._swap_where(is_up)
        below, above = np.zeros_like(away), np.ones_like(away)
        while (grows := (side.reach(above, up=False) < away) & (above < LARGEST_QUANTILE)).any():
            below, above = np.where(grows, above, below), np.where(grows, above * 2, above)
        for _ in range(HALVINGS):
            middle = (below + above) / 2
            is_inside = side.reach(middle, up=False) < away
            below, above = np.where(is_inside, middle, below), np.where(is_inside, above, middle)
        return np.where(estimate == 0, 0.0, above)

    def _swap_where(self, chosen: Bools) -> _Newcombes:
        """With the two cells exchanged where chosen, so that every difference is positive."""
        parts = (self.shares, self.sizes, self.own)
        shares, sizes, own = (np.where(chosen[..., None], part[..., ::-1], part) for part in parts)
        return self._replace(shares=shares, sizes=sizes, own=own)

    def _end(self, cell: int, z: Floats, *, upper: bool) -> Floats:
        share, own = self.shares[..., cell], self.own[..., cell]
        is_own = (own < self.df) & (share >= 0.5 if upper else share <= 0.5)
        quantile = z.copy()
        tail = np.maximum(t_lower_tails(-z[is_own], self.df[is_own]), LEAST_TAIL)
        quantile[is_own] = -t_quantiles(tail, own[is_own])
        return wilson_ends(share, self.sizes[..., cell], quantile)[int(upper)]


def _exact(means: Floats, sizes: Floats) -> Floats:
    exact: Floats = np.rint(means * sizes) / sizes
    return exact


def _worth(share: Floats, rows: Floats, variance: Floats) -> Floats:
    """Effective sizes of shares that are neither 0 nor 1."""
    worth: Floats = np.where(variance > 0, np.minimum(rows, share * (1 - share) / variance), rows)
    return worth


def _own_df(variance: Floats, clusters: Ints, fourth: Floats, most: Floats) -> Floats:
    """As `Moments.own_df`."""
    excess = fourth - variance**2 / clusters
    found = np.minimum(most, np.maximum(1.0, 2 * variance**2 / excess))
    return np.where((variance == 0) | (excess <= 0), most, found)


def _min_detectable(of: _Judged, level: float) -> Floats:
    alpha, power = (t_quantiles(tail, of.df) for tail in ((1 + level) / 2, POWER))
    least: Floats = (of.high - of.low) / 2 * (1 + power / alpha)
    return least


def _none_if_nan(number: float) -> float | None:
    return None if np.isnan(number) else number
