"""Means and shares of one group, with intervals that respect clusters."""

from __future__ import annotations

import math
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
    check_binary,
    check_level,
    check_values,
    encode_clusters,
    encode_jointly,
)
from evenhand.stats._moments import CellMoments, compute_moments
from evenhand.stats.quantiles import normal_quantile, t_lower_tail, t_quantile
from evenhand.stats.results import NEAR_ZERO, NO_VALUES, NO_VARIATION, NOT_POSITIVE, ONE_CLUSTER

SHARE = "cluster-robust Wilson"
_SMALLEST = 1e-100
"""A mean below this would overflow the square of its inverse."""
_UNBOUNDED = 50.0
"""Half width of a log ratio beyond which it says nothing: a factor of 10^21 either way."""


class Interval(NamedTuple):
    """Two ends."""

    low: float
    high: float


def wilson(successes: int, n: int, *, level: float = 0.95, n_null: int = 0) -> Estimate:
    """A share with Wilson's score interval, for rows that are independent of each other.

    The interval stays inside [0, 1] and is wider than 0 for 0 of n and n of n.

    >>> e = wilson(0, 10)
    >>> e.value, e.low, round(e.high, 4)
    (0.0, 0.0, 0.2775)
    """
    if not 0 <= successes <= n:
        raise InputError(f"{successes} successes of {n}", expected="successes from 0 to n")
    check_level(level)
    if n == 0:
        return _no_values("Wilson", level, n_null)
    share = successes / n
    low, high = wilson_interval(share, n, normal_quantile((1 + level) / 2))
    return Estimate(share, low, high, level, "Wilson", n, n_null, n)


def clustered_proportion(
    y: npt.ArrayLike, clusters: Ids = None, *, level: float = 0.95, n_null: int = 0
) -> Estimate:
    """The share of ones in ``y`` with a cluster-robust Wilson interval.

    Wilson's interval at the effective sample size p(1 - p) / var(p), with the cluster-robust variance and
    its t quantile (Korn and Graubard 1998 adapt an interval in the same way). On the side of the rarer answer
    the quantile has the degrees of freedom of the share's own variance, about twice the clusters that have
    that answer. The effective size never exceeds the number of rows. A share of exactly 0 or 1 tells nothing
    about how alike the rows of a cluster are: then the worst case is taken, one independent observation a
    cluster.
    """
    values = check_binary(y)
    codes = encode_clusters(clusters, values.size)
    check_level(level)
    if not values.size:
        return _no_values(SHARE, level, n_null)
    of = compute_moments(values, np.zeros_like(codes), codes, n_cells=1)
    share = float(exact_shares(of)[0])
    estimate = partial(Estimate, share, level=level, method=SHARE, n=values.size, n_null=n_null)
    if of.n_clusters < 2:
        return estimate(low=None, high=None, n_clusters=of.n_clusters, null_reason=ONE_CLUSTER)
    df, size = of.contrast(np.ones(1)).df, effective_size(of, 0)
    plain, own = (t_quantile((1 + level) / 2, known) for known in (df, of.own_df(0, most=df)))
    low = wilson_interval(share, size, own if share <= 0.5 else plain).low
    high = wilson_interval(share, size, own if share >= 0.5 else plain).high
    return estimate(low=low, high=high, n_clusters=of.n_clusters)


def clustered_mean(
    y: npt.ArrayLike, clusters: Ids = None, *, level: float = 0.95, n_null: int = 0
) -> Estimate:
    """The mean of ``y`` with a cluster-robust t interval.

    CR2 variance and Bell and McCaffrey's degrees of freedom. With every row its own cluster this is the
    classical t interval.
    """
    values = check_values(y)
    codes = encode_clusters(clusters, values.size)
    method = "cluster-robust t"
    check_level(level)
    if not values.size:
        return _no_values(method, level, n_null)
    of = compute_moments(values, np.zeros_like(codes), codes, n_cells=1)
    mean, variance = float(of.means[0]), float(of.covariance[0, 0])
    estimate = partial(Estimate, mean, level=level, method=method, n=values.size, n_null=n_null)
    if of.n_clusters < 2 or variance == 0:
        reason = ONE_CLUSTER if of.n_clusters < 2 else NO_VARIATION
        return estimate(low=None, high=None, n_clusters=of.n_clusters, null_reason=reason)
    half = t_quantile((1 + level) / 2, of.contrast(np.ones(1)).df) * math.sqrt(variance)
    return estimate(low=mean - half, high=mean + half, n_clusters=of.n_clusters)


def clustered_ratio(
    y_a: npt.ArrayLike, clusters_a: Ids, y_b: npt.ArrayLike, clusters_b: Ids, *, level: float = 0.95
) -> Estimate:
    """Mean of a over mean of b (above 1: a is higher), with a cluster-robust interval on the log scale.

    The delta method on log mean a - log mean b; a cluster that reaches over both groups is counted once. Null
    where a mean is not positive.
    """
    a, b = check_values(y_a, "y_a"), check_values(y_b, "y_b")
    codes = encode_jointly(clusters_a, a.size, clusters_b, b.size)
    check_level(level)
    if not a.size or not b.size:
        return estimate_ratio(None, level)
    of = compute_moments(np.concatenate([a, b]), np.repeat([0, 1], [a.size, b.size]), codes, n_cells=2)
    return estimate_ratio(of, level)


def estimate_ratio(of: CellMoments | None, level: float) -> Estimate:
    """The ratio of the means of two cells; None where a cell is empty."""
    method = "cluster-robust log ratio"
    if of is None:
        return _no_values(method, level, 0)
    ratio, interval, reason = _ratio(of, level)
    size = int(of.sizes.sum())
    return Estimate(
        ratio, *interval, level, method, n=size, n_null=0, n_clusters=of.n_clusters, null_reason=reason
    )


def wilson_interval(share: float, n: float, z: float) -> Interval:
    """Wilson's interval for a share of ``n`` (effective) observations at the quantile ``z``."""
    spread = z * z / n
    centre = (share + spread / 2) / (1 + spread)
    half = math.sqrt(spread * share * (1 - share) + spread * spread / 4) / (1 + spread)
    # Rounding must not push the ends past the share itself, as it would at 0 and 1.
    return Interval(max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half)))


def effective_size(of: CellMoments, cell: int, *, icc: float = 1.0) -> float:
    """How many independent rows say as much about the share of a cell as its clustered rows do.

    At a share of 0 or 1, where the data cannot tell, ``icc`` is taken for the likeness of rows in a cluster.
    """
    share, rows = float(exact_shares(of)[cell]), float(of.sizes[cell])
    variance = float(of.covariance[cell, cell])
    if share in (0, 1):
        return rows / (1 + icc * (rows / float(of.kish[cell]) - 1))
    return min(rows, share * (1 - share) / variance) if variance > 0 else rows


def exact_shares(of: CellMoments) -> Floats:
    """The means of 0/1 values without rounding: successes over rows."""
    exact: Floats = np.rint(of.means * of.sizes) / of.sizes
    return exact


def _ratio(
    of: CellMoments, level: float
) -> tuple[float | None, tuple[float | None, float | None], str | None]:
    mean_a, mean_b = (float(mean) for mean in of.means)
    if min(mean_a, mean_b) <= 0:
        return None, (None, None), NOT_POSITIVE
    if min(mean_a, mean_b) < _SMALLEST:
        return None, (None, None), NEAR_ZERO
    ratio = mean_a / mean_b
    if of.clusters.min() < 2:
        return ratio, (None, None), ONE_CLUSTER
    _, variance, df = of.contrast(np.array([1 / mean_a, -1 / mean_b]))
    if variance == 0:
        return ratio, (None, None), NO_VARIATION
    reach = t_quantile((1 + level) / 2, df) * math.sqrt(variance)
    if reach > _UNBOUNDED:
        return ratio, (None, None), NEAR_ZERO
    factor = math.exp(reach)
    return ratio, (ratio / factor, ratio * factor), None


def _no_values(method: str, level: float, n_null: int) -> Estimate:
    return Estimate(None, None, None, level, method, 0, n_null, 0, NO_VALUES)


LARGEST_QUANTILE = 1e6
"""Where the search for the quantile that touches 0 gives up; p is 0 for any purpose."""
HALVINGS = 36
"""Steps of the bisection: to eleven digits."""
LEAST_TAIL = 1e-290
"""Below this no quantile is looked up."""
ROUNDING = 1e-14
"""An estimate this near 0 is 0."""


@dataclass(frozen=True, slots=True)
class NewcombeInterval:
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
    def of(cls, of: CellMoments, weights: Floats) -> NewcombeInterval:
        """All cells; a share of exactly 0 or 1 takes the other cells' likeness within clusters."""
        cells, (_, variance, df) = range(of.sizes.size), of.contrast(weights)
        likeness = [_likeness(of, cell) for cell in cells]
        apart = float(weights**2 @ np.diag(of.covariance))
        return cls(
            shares=tuple(exact_shares(of).tolist()),
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
        return Interval(self._low(z), -self._negate()._low(z))

    def touching_quantile(self) -> float:
        """The quantile at which the interval touches 0, by bisection: its reach grows with the quantile."""
        side = self if self.estimate >= 0 else self._negate()
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

    def _negate(self) -> NewcombeInterval:
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


def _likeness(of: CellMoments, cell: int) -> float | None:
    """The intraclass correlation that a cell's design effect implies; None where the cell cannot tell."""
    rows = float(of.sizes[cell])
    excess = rows / float(of.kish[cell]) - 1
    if float(exact_shares(of)[cell]) in (0, 1) or excess <= 0:
        return None
    return float(np.clip((rows / effective_size(of, cell) - 1) / excess, 0, 1))


def _others(likeness: list[float | None], cell: int) -> float:
    """The mean likeness of the other cells; 1, the worst case, where none can tell."""
    known = [value for other, value in enumerate(likeness) if other != cell and value is not None]
    return sum(known) / len(known) if known else 1.0
