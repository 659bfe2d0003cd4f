"""Two Wilson intervals joined into one for the difference of two shares."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evenhand.stats._arrays import Bools, Floats
from evenhand.stats._moments import Moments
from evenhand.stats.intervals import Interval, effective_size, shares, wilson_interval

_LARGEST_QUANTILE = 1e6
"""Where the search for the quantile that touches 0 gives up; p is 0 for any purpose."""
_HALVINGS = 60
"""Steps of the bisection: more than a float has bits."""


@dataclass(frozen=True, slots=True)
class Newcombe:
    """Two shares with the sizes they are worth, and the correlation that shared clusters give them."""

    share_a: float
    share_b: float
    size_a: float
    size_b: float
    correlation: float = 0.0

    @classmethod
    def of(cls, of: Moments) -> Newcombe:
        """The first two cells; a share of exactly 0 or 1 takes the other cell's likeness within clusters."""
        share_a, share_b = (float(share) for share in shares(of))
        size_a = effective_size(of, 0, icc=_likeness(of, 1))
        size_b = effective_size(of, 1, icc=_likeness(of, 0))
        scale = math.sqrt(float(of.covariance[0, 0] * of.covariance[1, 1]))
        correlation = float(np.clip(of.covariance[0, 1] / scale, -1, 1)) if scale > 0 else 0.0
        return cls(share_a, share_b, size_a, size_b, correlation)

    def interval(self, z: float) -> Interval:
        """The interval for share a - share b at the quantile ``z``."""
        return Interval(self._low(z), -self._swapped()._low(z))

    def touching(self) -> float:
        """The quantile at which the interval touches 0, by bisection: its reach grows with the quantile."""
        side = self if self.share_a >= self.share_b else self._swapped()
        below, above = 0.0, 1.0
        while side._low(above) > 0 and above < _LARGEST_QUANTILE:
            below, above = above, above * 2
        for _ in range(_HALVINGS):
            middle = (below + above) / 2
            below, above = (middle, above) if side._low(middle) > 0 else (below, middle)
        return above if self.share_a != self.share_b else 0.0

    def _low(self, z: float) -> float:
        down = self.share_a - wilson_interval(self.share_a, self.size_a, z).low
        up = wilson_interval(self.share_b, self.size_b, z).high - self.share_b
        reach = down * down - 2 * self.correlation * down * up + up * up
        return self.share_a - self.share_b - math.sqrt(max(0.0, reach))

    def _swapped(self) -> Newcombe:
        return Newcombe(self.share_b, self.share_a, self.size_b, self.size_a, self.correlation)


def touching_quantiles(shares: Floats, sizes: Floats, correlation: Floats) -> Floats:
    """`Newcombe.touching` for many pairs at once: rows of (a, b), and the correlation of each."""
    order = np.argsort(-shares, axis=1, kind="stable")
    (high, low), (worth, other) = (np.take_along_axis(part, order, axis=1).T for part in (shares, sizes))

    def excludes_0(z: Floats) -> Bools:
        down, up = high - _wilson_ends(high, worth, z)[0], _wilson_ends(low, other, z)[1] - low
        excludes: Bools = high - low > np.sqrt(
            np.maximum(0, down * down - 2 * correlation * down * up + up * up)
        )
        return excludes

    below, above = np.zeros(high.size), np.ones(high.size)
    while (grows := excludes_0(above) & (above < _LARGEST_QUANTILE)).any():
        below, above = np.where(grows, above, below), np.where(grows, above * 2, above)
    for _ in range(_HALVINGS):
        middle = (below + above) / 2
        is_inside = excludes_0(middle)
        below, above = np.where(is_inside, middle, below), np.where(is_inside, above, middle)
    return np.where(high > low, above, 0.0)


def _wilson_ends(share: Floats, n: Floats, z: Floats) -> tuple[Floats, Floats]:
    spread = z * z / n
    centre = (share + spread / 2) / (1 + spread)
    half = np.sqrt(spread * share * (1 - share) + spread * spread / 4) / (1 + spread)
    return np.clip(centre - half, 0, share), np.clip(centre + half, share, 1)


def _likeness(of: Moments, cell: int) -> float:
    """The intraclass correlation that a cell's design effect implies; 1 where the cell cannot tell."""
    rows = float(of.sizes[cell])
    excess = rows / float(of.kish[cell]) - 1
    if float(shares(of)[cell]) in (0, 1) or excess <= 0:
        return 1.0
    return float(np.clip((rows / effective_size(of, cell) - 1) / excess, 0, 1))
