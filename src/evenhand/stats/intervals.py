"""Means and shares of one group, with intervals that respect clusters."""

from __future__ import annotations

import math
from collections.abc import Callable
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
"""Rows for each cluster above 1 up to which there is only rounding."""
_UNBOUNDED = 50.0
"""Half width of a log ratio beyond which it says nothing: a factor of 10^21 either way."""


class Interval(NamedTuple):
    """Two ends."""

    low: Floats
    high: Floats


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
    the quantile has the degrees of freedom of the share's own variance, about twice the clusters that have
    that answer. The effective size never exceeds the number of rows. A share of exactly 0 or 1 tells nothing
    about how alike the rows of a cluster are: then the worst case is taken, one independent observation a
    cluster.
    """
    values = check_binary(y)
    codes = encode_clusters(clusters, values.size)
    check_level(level)
    of = compute_moments(values, np.zeros_like(codes), codes, n_cells=1)
    return share_estimates(of, level, n_null=n_null)[0]


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
    """The mean of ``y`` with an interval, which one cluster or equal values do not have.

    ``interval`` gives the ends from values, clusters and half the width of the t interval, the default.
    """
    values = check_values(y)
    codes = encode_clusters(clusters, values.size)
    check_level(level)
    if not values.size:
        return Estimate(None, None, None, level, method, 0, n_null, 0, NO_VALUES)
    of = compute_moments(values, np.zeros_like(codes), codes, n_cells=1)
    mean, variance, n_clusters = float(of.means[0]), float(of.covariance[0, 0]), int(of.n_clusters)
    estimate = partial(Estimate, level=level, method=method, n=values.size, n_null=n_null)
    if n_clusters < 2 or variance == 0:
        reason = ONE_CLUSTER if n_clusters < 2 else NO_VARIATION
        return estimate(mean, None, None, n_clusters=n_clusters, null_reason=reason)
    half = t_quantile((1 + level) / 2, float(of.contrast(np.ones(1)).df)) * math.sqrt(variance)
    ends = interval(values, codes, half) if interval else (mean - half, mean + half)
    return estimate(mean, *ends, n_clusters=n_clusters)


def estimate_ratio(of: CellMoments, level: float) -> Estimate:
    """Mean of a over mean of b (above 1: a is higher), with a cluster-robust interval on the log scale.

    The delta method on log mean a - log mean b; a cluster that reaches over both cells is counted once. Null
    where a mean is not positive, and where a cell is empty.
    """
    n, n_clusters = (int(of.sizes.sum()), int(of.n_clusters)) if of.sizes.all() else (0, 0)
    estimate = partial(
        Estimate, level=level, method="cluster-robust log ratio", n=n, n_null=0, n_clusters=n_clusters
    )
    if not n:
        return estimate(None, None, None, null_reason=NO_VALUES)
    mean_a, mean_b = (float(mean) for mean in of.means)
    if min(mean_a, mean_b) < _SMALLEST:
        reason = NOT_POSITIVE if min(mean_a, mean_b) <= 0 else NEAR_ZERO
        return estimate(None, None, None, null_reason=reason)
    ratio = mean_a / mean_b
    if of.clusters.min() < 2:
        return estimate(ratio, None, None, null_reason=ONE_CLUSTER)
    _, variance, df = of.contrast(np.array([1 / mean_a, -1 / mean_b]))
    reach = t_quantile((1 + level) / 2, float(df)) * math.sqrt(variance)
    if not 0 < reach <= _UNBOUNDED:
        return estimate(ratio, None, None, null_reason=NEAR_ZERO if variance else NO_VARIATION)
    factor = math.exp(reach)
    return estimate(ratio, ratio / factor, ratio * factor)


def share_estimates(of: CellMoments, level: float, *, n_null: int = 0) -> list[Estimate]:
    """The share of the first cell of every set with `clustered_proportion`'s interval.

    One cluster has no interval.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        known = effective_sizes(of.shares, of.sizes, of.kish, of.variances)
        share, size = of.shares[..., 0], np.where(of.shares % 1 == 0, of.kish, known)[..., 0]
        df = np.broadcast_to(1 / of.sizes[..., 0] ** 2 / of.design[..., 0, 0], share.shape)
        plain, own = (t_quantiles((1 + level) / 2, known) for known in (df, of.own_df(df)[..., 0]))
        lows = wilson_interval(share, size, np.where(share <= 0.5, own, plain)).low
        highs = wilson_interval(share, size, np.where(share >= 0.5, own, plain)).high
    columns = (share, lows, highs, of.sizes[..., 0].astype(int), of.clusters[..., 0])
    estimates = []
    for value, low, high, n, n_clusters in zip(
        *(np.atleast_1d(one).tolist() for one in columns), strict=True
    ):
        reason = NO_VALUES if not n else ONE_CLUSTER if n_clusters < 2 else None
        estimate = Estimate(value if n else None, low, high, level, SHARE, n, n_null, n_clusters, reason)
        estimates.append(replace(estimate, low=None, high=None) if reason else estimate)
    return estimates


def wilson_interval(share: float | Floats, n: float | Floats, z: float | Floats) -> Interval:
    """Wilson's intervals for shares of ``n`` (effective) observations at the quantile ``z``."""
    spread = z * z / n
    centre = (share + spread / 2) / (1 + spread)
    half = np.sqrt(spread * share * (1 - share) + spread * spread / 4) / (1 + spread)
    # Rounding must not push the ends past the share itself, as it would at 0 and 1.
    low, high = np.maximum(centre - half, 0), np.minimum(centre + half, 1)
    return Interval(np.minimum(low, share), np.maximum(high, share))


def effective_sizes(shares: Floats, rows: Floats, kish: Floats, variances: Floats) -> Floats:
    """How many independent rows say as much about each cell's share as its clustered rows do.

    A share of exactly 0 or 1 tells nothing: it takes the other cells' mean likeness within clusters, the
    intraclass correlation that their design effect implies, and where no other can tell the worst case, 1.
    """
    is_inner, excess = (shares > 0) & (shares < 1), rows / kish - 1
    known = np.where(variances > 0, np.minimum(rows, shares * (1 - shares) / variances), rows)
    is_telling = is_inner & (excess > _ROUNDED_EXCESS)
    likeness = np.where(is_telling, np.clip((rows / known - 1) / excess, 0, 1), 0.0)
    others = is_telling.sum(axis=-1, keepdims=True) - is_telling
    mean = (likeness.sum(axis=-1, keepdims=True) - likeness) / others
    sizes: Floats = np.where(is_inner, known, rows / (1 + np.where(others > 0, mean, 1.0) * excess))
    return sizes


_LARGEST_QUANTILE = 1e6
"""Where the search for the quantile that touches 0 gives up; p is 0 for any purpose."""
_HALVINGS = 36
"""Steps of the bisection: to eleven digits."""
_LEAST_TAIL = 1e-290
"""Below this no quantile is looked up."""
_ROUNDING = 1e-14
"""An estimate this near 0 is 0."""


class NewcombeIntervals(NamedTuple):
    """Weighted sums of shares, which are on the last axis, and what their intervals follow from."""

    shares: Floats
    sizes: Floats
    weights: Floats
    shared: float | Floats = 1.0
    """The variance of the sum over that of as many independent shares."""
    df: float | Floats = math.inf
    """Degrees of freedom of the design."""
    own: Floats | None = None
    """Those of each share's own variance, at most ``df``; None is ``df``."""

    @classmethod
    def of(cls, of: CellMoments, weights: Floats) -> NewcombeIntervals:
        """The contrasts of shares."""
        _, variance, df = of.contrast(weights)
        apart = (weights**2 * of.variances).sum(axis=-1)
        return cls(
            shares=of.shares,
            sizes=effective_sizes(of.shares, of.sizes, of.kish, of.variances),
            weights=weights,
            shared=np.where(apart > 0, variance / apart, 1.0),
            df=df,
            own=of.own_df(df),
        )

    @property
    def estimate(self) -> Floats:
        """The weighted sums."""
        total = (self.weights * self.shares).sum(axis=-1)
        return np.where(np.abs(total) > _ROUNDING, total, 0.0)

    def interval(self, z: float | Floats) -> Interval:
        """The intervals at the quantile ``z`` of the design's reference."""
        low, high = (self._reach(np.asarray(z), np.array(side)) for side in (1.0, -1.0))
        return Interval(self.estimate - low, self.estimate + high)

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
        """How far the intervals at the quantile ``z`` reach below the sums, or above where ``side`` is -1."""
        weights = side[..., None] * self.weights
        # A share pulls a sum down by its lower end if added, by its upper end if subtracted.
        ends = wilson_interval(self.shares, self.sizes, self._own_quantile(z[..., None], weights > 0))
        pulls = weights * (self.shares - np.where(weights > 0, ends.low, ends.high))
        reach: Floats = np.sqrt(self.shared * (pulls * pulls).sum(axis=-1))
        return reach

    def _own_quantile(self, z: Floats, is_added: Bools) -> Floats:
        """Towards the rarer answer, the quantile of a share's own reference that leaves the same tail."""
        if self.own is None:
            return z
        df = np.asarray(self.df)[..., None]
        is_rarer = np.where(is_added, self.shares <= 0.5, self.shares >= 0.5)
        tail = np.maximum(t_lower_tails(-z, df), _LEAST_TAIL)
        return np.where(is_rarer & (self.own < df), -t_quantiles(tail, self.own), z)
