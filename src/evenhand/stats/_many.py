"""Many gaps judged at once: what `contrasts.clustered_gap` says of one, as arrays over outputs and groups.

The formulas and their reasons are those of `contrasts`, `intervals` and `_newcombe`; here they are written
for arrays, so that the thousands of gaps of a run take seconds. That the two agree is tested.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evenhand.core.records import Estimate
from evenhand.stats._arrays import Bools, Floats, Ints
from evenhand.stats._layout import Cells, Layout, Spreads
from evenhand.stats._moments import CANCELLED, Moments
from evenhand.stats._newcombe import HALVINGS, LARGEST_QUANTILE, LEAST_TAIL, ROUNDING, wilson_ends
from evenhand.stats._quantiles import t_lower_tails, t_quantiles
from evenhand.stats.contrasts import FEW_CLUSTERS, MEANS, NO_YARDSTICK, POWER, SHARES
from evenhand.stats.intervals import SHARE, ratio_of
from evenhand.stats.results import NO_VALUES, NO_VARIATION, ONE_CLUSTER, Difference

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

    cells: Cells
    spreads: Spreads
    is_share: bool
    level: float
    judged: _Judged
    min_detectable: Floats

    def difference(self, output: int, group: int) -> Difference:
        """One gap, as `clustered_gap` has it."""
        at, cells = (output, group), self.cells
        *numbers, reason = (float(part[at]) for part in self.judged)
        estimate, low, high, se, df, p = (_known(number) for number in numbers)
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
            min_detectable=_known(float(self.min_detectable[at])),
            method=SHARES if self.is_share else MEANS,
            null_reason=REASONS[int(reason)],
        )

    def ratio(self, output: int, group: int) -> Estimate:
        """The mean of a group over that of its baseline."""
        sizes, clusters, kish, n_clusters, design = (part[group] for part in self.cells)
        if not sizes.all():
            return ratio_of(None, self.level)
        means, covariance, fourth = (part[output, group] for part in self.spreads)
        if self.is_share:
            means = _exact(means, sizes)
        of = Moments(means, sizes, clusters, kish, int(n_clusters), covariance, design, fourth)
        return ratio_of(of, self.level)


def many_gaps(layout: Layout, values: Floats, *, is_share: bool, level: float) -> ManyGaps:
    """Each group against its baseline for each row of ``values``, outputs that the same texts have."""
    cells, spreads = layout.cells, layout.spreads(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        of = _Contrasts.of(cells, spreads, is_share=is_share)
        found = _judged_shares(of, level) if is_share else _judged_means(of, level)
        few, empty = cells.clusters.min(axis=1) < 2, cells.sizes.min(axis=1) == 0
        low, high, se, df, p = (np.where(few, np.nan, part) for part in found[1:6])
        estimate = np.where(empty, np.nan, np.where(few, of.means[..., 0] - of.means[..., 1], found.estimate))
        reason = np.where(empty, _EMPTY, np.where(few, _FEW, found.reason))
        judged = _Judged(estimate, low, high, se, df, p, reason)
        return ManyGaps(cells, spreads, is_share, level, judged, _min_detectable(judged, level))


def many_shares(cells: Cells, spreads: Spreads, *, level: float) -> list[list[Estimate]]:
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

    cells: Cells
    means: Floats
    variances: Floats
    variance: Floats
    df: Floats
    own: Floats
    """Degrees of freedom of each cell's own variance."""

    @classmethod
    def of(cls, cells: Cells, spreads: Spreads, *, is_share: bool) -> _Contrasts:
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
        2 * t_lower_tails(-joined.touching(), of.df),
    )
    few = (of.cells.n_clusters < FEW_CLUSTERS) & ~np.isnan(p)
    low = np.where(few, np.minimum(low, estimate - quantile * se), low)
    high = np.where(few, np.maximum(high, estimate + quantile * se), high)
    plain = np.where(se > 0, 2 * t_lower_tails(-np.abs(estimate / se), of.df), np.nan)
    p = np.where(few, np.maximum(p, plain), p)
    bare = of.variance < NO_YARDSTICK * of.variances.max(axis=-1)
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

    def touching(self) -> Floats:
        """The quantiles at which the intervals touch 0, by bisection."""
        estimate = self.estimate
        away, is_up = np.abs(estimate), estimate < 0
        side = self._turned(is_up)
        below, above = np.zeros_like(away), np.ones_like(away)
        while (grows := (side.reach(above, up=False) < away) & (above < LARGEST_QUANTILE)).any():
            below, above = np.where(grows, above, below), np.where(grows, above * 2, above)
        for _ in range(HALVINGS):
            middle = (below + above) / 2
            is_inside = side.reach(middle, up=False) < away
            below, above = np.where(is_inside, middle, below), np.where(is_inside, above, middle)
        return np.where(estimate == 0, 0.0, above)

    def _turned(self, chosen: Bools) -> _Newcombes:
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


def _known(number: float) -> float | None:
    return None if np.isnan(number) else number
