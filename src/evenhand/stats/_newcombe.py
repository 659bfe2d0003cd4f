"""Wilson intervals joined into one for a weighted sum of shares: a difference of two, a gap of gaps.

The lower end lies below the estimate by the root of k times the sum of d^2, where d is the distance of each
weighted share to the end of its own interval on the unfavourable side (Newcombe 1998, method 10; Zou, Huang
and Zhang 2009 for sums). The factor k is what clusters that reach over several cells make of the variance of
the sum: its cluster-robust variance over that of independent cells, below 1 for pairs. In large samples this
is the cluster-robust interval. (Correlations between the distances, as Zou and Donner 2008 have them, let
unequal distances cancel: one text of 200 against one of 3,400 in the same cluster becomes a finding.)

A rare label makes the cluster-robust variance of its share as uncertain as the few clusters that have it. Its
degrees of freedom are then not those of the design but those of its own fourth moment (Fay and Graubard 2001
take theirs from the data too): about twice the clusters with the label. They enter on the side of the rarer
answer, where a null hypothesis has the label rarer still; on the other side Wilson's variance under the null
holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from evenhand.stats._arrays import Bools, Floats
from evenhand.stats._moments import Moments
from evenhand.stats._quantiles import t_lower_tail, t_quantile
from evenhand.stats.intervals import Interval, effective_size, shares, wilson_interval

LARGEST_QUANTILE = 1e6
"""Where the search for the quantile that touches 0 gives up; p is 0 for any purpose."""
HALVINGS = 36
"""Steps of the bisection: to eleven digits."""
LEAST_TAIL = 1e-290
"""Below this no quantile is looked up."""
ROUNDING = 1e-14
"""An estimate this near 0 is 0."""


@dataclass(frozen=True, slots=True)
class Newcombe:
    """A weighted sum of shares, with the sizes they are worth and what shared clusters make of it."""

    shares: tuple[float, ...]
    sizes: tuple[float, ...]
    weights: tuple[float, ...] = (1.0, -1.0)
    shared: float = 1.0
    """The variance of the sum over that of as many independent shares."""
    df: float = math.inf
    """Degrees of freedom of the design."""
    own: tuple[float, ...] = (math.inf, math.inf)
    """Those of each share's own variance, at most ``df``."""

    @classmethod
    def of(cls, of: Moments, weights: Floats) -> Newcombe:
        """All cells; a share of exactly 0 or 1 takes the other cells' likeness within clusters."""
        cells, (_, variance, df) = range(of.sizes.size), of.contrast(weights)
        likeness = [_likeness(of, cell) for cell in cells]
        apart = float(weights**2 @ np.diag(of.covariance))
        return cls(
            shares=tuple(shares(of).tolist()),
            sizes=tuple(effective_size(of, cell, icc=_others(likeness, cell)) for cell in cells),
            weights=tuple(weights.tolist()),
            shared=variance / apart if apart > 0 else 1.0,
            df=df,
            own=tuple(of.own_df(cell, most=df) for cell in cells),
        )

    @property
    def estimate(self) -> float:
        """The weighted sum."""
        total = sum(weight * share for weight, share in zip(self.weights, self.shares, strict=True))
        return total if abs(total) > ROUNDING else 0.0

    def interval(self, z: float) -> Interval:
        """The interval at the quantile ``z`` of the design's reference."""
        return Interval(self._low(z), -self._negated()._low(z))

    def touching(self) -> float:
        """The quantile at which the interval touches 0, by bisection: its reach grows with the quantile."""
        side = self if self.estimate >= 0 else self._negated()
        below, above = 0.0, 1.0
        while side._low(above) > 0 and above < LARGEST_QUANTILE:
            below, above = above, above * 2
        for _ in range(HALVINGS):
            middle = (below + above) / 2
            below, above = (middle, above) if side._low(middle) > 0 else (below, middle)
        return above if self.estimate else 0.0

    def _low(self, z: float) -> float:
        squares = (self._distance(cell, z) ** 2 for cell in range(len(self.shares)))
        return self.estimate - math.sqrt(self.shared * sum(squares))

    def _distance(self, cell: int, z: float) -> float:
        """How far the share's unfavourable end pulls the sum down."""
        share, weight = self.shares[cell], self.weights[cell]
        is_rarer = share <= 0.5 if weight > 0 else share >= 0.5
        low, high = wilson_interval(share, self.sizes[cell], self._own_quantile(cell, z) if is_rarer else z)
        return weight * (share - low if weight > 0 else high - share)

    def _own_quantile(self, cell: int, z: float) -> float:
        """The quantile of the share's own reference that leaves the same tail."""
        if self.own[cell] >= self.df:
            return z
        return -t_quantile(max(t_lower_tail(-z, self.df), LEAST_TAIL), self.own[cell])

    def _negated(self) -> Newcombe:
        return replace(self, weights=tuple(-weight for weight in self.weights))


def touching_quantiles(shares: Floats, sizes: Floats, shared: Floats) -> Floats:
    """`Newcombe.touching` of many differences (rows of a, b) at once, by the normal quantile."""
    order = np.argsort(-shares, axis=1, kind="stable")
    (high, low), (worth, other) = (np.take_along_axis(part, order, axis=1).T for part in (shares, sizes))

    def excludes_0(z: Floats) -> Bools:
        down, up = high - wilson_ends(high, worth, z)[0], wilson_ends(low, other, z)[1] - low
        excludes: Bools = high - low > np.sqrt(shared * (down * down + up * up))
        return excludes

    below, above = np.zeros(high.size), np.ones(high.size)
    while (grows := excludes_0(above) & (above < LARGEST_QUANTILE)).any():
        below, above = np.where(grows, above, below), np.where(grows, above * 2, above)
    for _ in range(HALVINGS):
        middle = (below + above) / 2
        is_inside = excludes_0(middle)
        below, above = np.where(is_inside, middle, below), np.where(is_inside, above, middle)
    return np.where(high > low, above, 0.0)


def wilson_ends(share: Floats, n: Floats, z: Floats) -> tuple[Floats, Floats]:
    """`intervals.wilson_interval` of many shares."""
    spread = z * z / n
    centre = (share + spread / 2) / (1 + spread)
    half = np.sqrt(spread * share * (1 - share) + spread * spread / 4) / (1 + spread)
    return np.clip(centre - half, 0, share), np.clip(centre + half, share, 1)


def _likeness(of: Moments, cell: int) -> float | None:
    """The intraclass correlation that a cell's design effect implies; None where the cell cannot tell."""
    rows = float(of.sizes[cell])
    excess = rows / float(of.kish[cell]) - 1
    if float(shares(of)[cell]) in (0, 1) or excess <= 0:
        return None
    return float(np.clip((rows / effective_size(of, cell) - 1) / excess, 0, 1))


def _others(likeness: list[float | None], cell: int) -> float:
    """The mean likeness of the other cells; 1, the worst case, where none can tell."""
    known = [value for other, value in enumerate(likeness) if other != cell and value is not None]
    return sum(known) / len(known) if known else 1.0
