"""Means and shares of one group, with intervals that account for clusters."""

from __future__ import annotations

import math
from collections.abc import Callable
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
    check_level,
    check_values,
    encode_clusters,
)
from evenhand.stats._moments import CellMoments, compute_moments
from evenhand.stats.quantiles import normal_quantile, t_lower_tails, t_quantile, t_quantiles
from evenhand.stats.results import NEAR_ZERO, NO_VALUES, NO_VARIATION, NOT_POSITIVE, ONE_CLUSTER

SHARE = "cluster-robust Wilson"
_SMALLEST = 1e-100
"""A mean below this would overflow the square of its inverse."""
_ROUNDED_EXCESS = 1e-9
"""Excess rows per cluster at or below this are rounding."""
_UNBOUNDED = 50.0
"""Half width of a log ratio above which it is uninformative: a factor of 10^21 either way."""


def wilson(successes: int, n: int, *, level: float = 0.95, n_null: int = 0) -> Estimate:
    """A share with Wilson's score interval, for independent rows.

    The interval stays inside [0, 1] and has a positive width for 0 of n and n of n.

    >>> e = wilson(0, 10)
    >>> e.value, e.low, round(e.high, 4)
    (0.0, 0.0, 0.2775)
    """
    if not 0 <= successes <= n:
        raise InputError(f"{successes} successes of {n}", expected="successes from 0 to n")
    check_level(level)
    if n == 0:
        return Estimate(None, None, None, level, "Wilson", 0, n_null, 0, NO_VALUES)
    share = successes / n
    low, high = wilson_interval(share, n, normal_quantile((1 + level) / 2))
    return Estimate(share, float(low), float(high), level, "Wilson", n, n_null, n)


def clustered_proportion(
    y: npt.ArrayLike, clusters: Ids = None, *, level: float = 0.95, n_null: int = 0
) -> Estimate:
    """The share of ones in ``y`` with a cluster-robust Wilson interval.

    Wilson's interval at the effective sample size p(1 - p) / var(p), with the cluster-robust variance and
    its t quantile (Korn and Graubard 1998 adapt an interval in the same way). On the side of the rarer answer
    the quantile uses the degrees of freedom of the share's own variance, about twice the number of clusters
    with that answer. The effective size never exceeds the number of rows. A share of exactly 0 or 1 carries
    no information about correlation within clusters: the worst case is assumed, one independent observation
    per cluster.
    """
    values = check_binary(y)
    codes = encode_clusters(clusters, values.size)
    check_level(level)
    moments = compute_moments(values, np.zeros_like(codes), codes, n_cells=1)
    return share_estimates(moments, level, n_null=n_null)[0]


def clustered_mean(
    y: npt.ArrayLike, clusters: Ids = None, *, level: float = 0.95, n_null: int = 0
) -> Estimate:
    """The mean of ``y`` with a cluster-robust t interval.

    CR2 variance and Bell and McCaffrey's degrees of freedom. With every row its own cluster this is the
    classical t interval.
    """
    return estimate_mean(y, clusters, method="cluster-robust t", level=level, n_null=n_null)


def estimate_mean(
    y: npt.ArrayLike,
    clusters: Ids,
    interval: Callable[[Floats, Ints, float], tuple[float, float]] | None = None,
    *,
    method: str,
    level: float,
    n_null: int,
) -> Estimate:
    """The mean of ``y`` with an interval, except for a single cluster or equal values.

    ``interval`` computes the ends from values, clusters and the t interval's half width; default: t interval.
    """
    values = check_values(y)
    codes = encode_clusters(clusters, values.size)
    check_level(level)
    if not values.size:
        return Estimate(None, None, None, level, method, 0, n_null, 0, NO_VALUES)
    cell = compute_moments(values, np.zeros_like(codes), codes, n_cells=1)
    mean, variance, n_clusters = float(cell.means[0]), float(cell.covariance[0, 0]), int(cell.n_clusters)
    estimate = partial(Estimate, level=level, method=method, n=values.size, n_null=n_null)
    if n_clusters < 2 or variance == 0:
        reason = ONE_CLUSTER if n_clusters < 2 else NO_VARIATION
        return estimate(mean, None, None, n_clusters=n_clusters, null_reason=reason)
    _, _, df = cell.contrast(np.ones(1))
    half = t_quantile((1 + level) / 2, float(df)) * math.sqrt(variance)
    ends = interval(values, codes, half) if interval else (mean - half, mean + half)
    return estimate(mean, *ends, n_clusters=n_clusters)


def estimate_ratio(cells: CellMoments, level: float) -> Estimate:
    """Mean of a over mean of b (above 1: a is higher), with a cluster-robust interval on the log scale.

    The delta method on log mean a - log mean b; a cluster that spans both cells is counted once. Null where
    a mean is not positive, or a cell is empty.
    """
    n, n_clusters = (int(cells.sizes.sum()), int(cells.n_clusters)) if cells.sizes.all() else (0, 0)
    estimate = partial(
        Estimate, level=level, method="cluster-robust log ratio", n=n, n_null=0, n_clusters=n_clusters
    )
    if not n:
        return estimate(None, None, None, null_reason=NO_VALUES)
    mean_a, mean_b = (float(mean) for mean in cells.means)
    if min(mean_a, mean_b) < _SMALLEST:
        reason = NOT_POSITIVE if min(mean_a, mean_b) <= 0 else NEAR_ZERO
        return estimate(None, None, None, null_reason=reason)
    ratio = mean_a / mean_b
    if cells.clusters.min() < 2:
        return estimate(ratio, None, None, null_reason=ONE_CLUSTER)
    _, variance, df = cells.contrast(np.array([1 / mean_a, -1 / mean_b]))
    half = t_quantile((1 + level) / 2, float(df)) * math.sqrt(variance)
    if not 0 < half <= _UNBOUNDED:
        return estimate(ratio, None, None, null_reason=NEAR_ZERO if variance else NO_VARIATION)
    factor = math.exp(half)
    return estimate(ratio, ratio / factor, ratio * factor)


def share_estimates(cells: CellMoments, level: float, *, n_null: int = 0) -> list[Estimate]:
    """The share of the first cell of each set with `clustered_proportion`'s interval.

    A cell with a single cluster has no interval.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        known = effective_sizes(cells.shares, cells.sizes, cells.kish, cells.variances)
        share, size = cells.shares[..., 0], np.where(cells.shares % 1 == 0, cells.kish, known)[..., 0]
        df = np.broadcast_to(1 / cells.sizes[..., 0] ** 2 / cells.design[..., 0, 0], share.shape)
        plain, own = (t_quantiles((1 + level) / 2, known) for known in (df, cells.own_df(df)[..., 0]))
        lows, _ = wilson_interval(share, size, np.where(share <= 0.5, own, plain))
        _, highs = wilson_interval(share, size, np.where(share >= 0.5, own, plain))
    columns = (share, lows, highs, cells.sizes[..., 0].astype(int), cells.clusters[..., 0])
    estimates = []
    for row in zip(*(np.atleast_1d(one).tolist() for one in columns), strict=True):
        value, low, high, n, n_clusters = row
        reason = NO_VALUES if not n else ONE_CLUSTER if n_clusters < 2 else None
        if reason:
            value, low, high = value if n else None, None, None
        estimates.append(Estimate(value, low, high, level, SHARE, n, n_null, n_clusters, reason))
    return estimates


def wilson_interval(share: float | Floats, n: float | Floats, z: float | Floats) -> tuple[Floats, Floats]:
    """The ends of Wilson's intervals for shares of ``n`` (effective) observations at the quantile ``z``."""
    spread = z * z / n
    centre = (share + spread / 2) / (1 + spread)
    half = np.sqrt(spread * share * (1 - share) + spread * spread / 4) / (1 + spread)
    # Rounding must not push the ends past the share itself, as it would at 0 and 1.
    low, high = np.maximum(centre - half, 0), np.minimum(centre + half, 1)
    return np.minimum(low, share), np.maximum(high, share)


def effective_sizes(shares: Floats, rows: Floats, kish: Floats, variances: Floats) -> Floats:
    """The effective sample size of each cell's share: the number of equally informative independent rows.

    A share of exactly 0 or 1 has no design effect of its own: it takes the mean intraclass correlation that
    the other cells' design effects imply, or the worst case, 1, where no other cell has one.
    """
    is_inner, excess = (shares > 0) & (shares < 1), rows / kish - 1
    known = np.where(variances > 0, np.minimum(rows, shares * (1 - shares) / variances), rows)
    is_informative = is_inner & (excess > _ROUNDED_EXCESS)
    correlation = np.where(is_informative, np.clip((rows / known - 1) / excess, 0, 1), 0.0)
    others = is_informative.sum(axis=-1, keepdims=True) - is_informative
    mean = (correlation.sum(axis=-1, keepdims=True) - correlation) / others
    sizes: Floats = np.where(is_inner, known, rows / (1 + np.where(others > 0, mean, 1.0) * excess))
    return sizes


_LARGEST_QUANTILE = 1e6
"""Limit of the search for the quantile at which an interval touches 0; there p is practically 0."""
_HALVINGS = 36
"""Steps of the bisection, for eleven digits."""
_LEAST_TAIL = 1e-290
"""Smallest tail probability for which a quantile is computed."""
_ROUNDING = 1e-14
"""An estimate at most this far from 0 counts as 0."""


class NewcombeIntervals(NamedTuple):
    """Weighted sums of shares (on the last axis), with the inputs of their intervals."""

    shares: Floats
    sizes: Floats
    weights: Floats
    shared: float | Floats = 1.0
    """The variance of the sum divided by its variance if the shares were independent."""
    df: float | Floats = math.inf
    """Degrees of freedom of the design."""
    own: Floats | None = None
    """Degrees of freedom of each share's own variance, at most ``df``; None means ``df``."""

    @property
    def estimate(self) -> Floats:
        """The weighted sums."""
        total = (self.weights * self.shares).sum(axis=-1)
        return np.where(np.abs(total) > _ROUNDING, total, 0.0)

    def interval(self, z: float | Floats) -> tuple[Floats, Floats]:
        """The intervals at the quantile ``z`` of the design's reference distribution."""
        low, high = (self._reach(np.asarray(z), np.array(side)) for side in (1.0, -1.0))
        return self.estimate - low, self.estimate + high

    def touching_quantile(self) -> Floats:
        """The quantiles at which the intervals touch 0, by bisection: their reach grows with the quantile."""
        estimate = self.estimate
        away, side = np.abs(estimate), np.where(estimate < 0, -1.0, 1.0)
        below, above = np.zeros_like(away), np.ones_like(away)
        while (grows := (self._reach(above, side) < away) & (above < _LARGEST_QUANTILE)).any():
            below, above = np.where(grows, above, below), np.where(grows, above * 2, above)
        for _ in range(_HALVINGS):
            middle = (below + above) / 2
            excludes_0 = self._reach(middle, side) < away
            below, above = np.where(excludes_0, middle, below), np.where(excludes_0, above, middle)
        return np.where(away > 0, above, 0.0)

    def _reach(self, z: Floats, side: Floats) -> Floats:
        """Distance from the sums to the lower ends of the intervals at ``z``; upper where ``side`` is -1."""
        weights = side[..., None] * self.weights
        # An added share lowers the sum by its lower end, a subtracted share by its upper end.
        low, high = wilson_interval(self.shares, self.sizes, self._own_quantile(z[..., None], weights > 0))
        pulls = weights * (self.shares - np.where(weights > 0, low, high))
        reach: Floats = np.sqrt(self.shared * (pulls * pulls).sum(axis=-1))
        return reach

    def _own_quantile(self, z: Floats, is_added: Bools) -> Floats:
        """Towards the rarer answer, the quantile of a share's own reference with the same tail."""
        if self.own is None:
            return z
        df = np.asarray(self.df)[..., None]
        is_rarer = np.where(is_added, self.shares <= 0.5, self.shares >= 0.5)
        tail = np.maximum(t_lower_tails(-z, df), _LEAST_TAIL)
        return np.where(is_rarer & (self.own < df), -t_quantiles(tail, self.own), z)
