"""Means and shares of one group, with intervals that respect clusters."""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.core.errors import InputError
from evenhand.core.records import Estimate
from evenhand.stats._arrays import (
    Floats,
    Ids,
    checked_binary,
    checked_level,
    checked_values,
    cluster_codes,
    joint_codes,
)
from evenhand.stats._moments import Moments, moments
from evenhand.stats._quantiles import normal_quantile, t_quantile
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
        raise InputError(f"{successes} successes of {n}", accepted="successes from 0 to n")
    checked_level(level)
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
    values = checked_binary(y)
    codes = cluster_codes(clusters, values.size)
    checked_level(level)
    if not values.size:
        return _no_values(SHARE, level, n_null)
    of = moments(values, np.zeros_like(codes), codes, n_cells=1)
    share = float(shares(of)[0])
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
    values = checked_values(y)
    codes = cluster_codes(clusters, values.size)
    method = "cluster-robust t"
    checked_level(level)
    if not values.size:
        return _no_values(method, level, n_null)
    of = moments(values, np.zeros_like(codes), codes, n_cells=1)
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
    a, b = checked_values(y_a, "y_a"), checked_values(y_b, "y_b")
    codes = joint_codes(clusters_a, a.size, clusters_b, b.size)
    checked_level(level)
    if not a.size or not b.size:
        return ratio_of(None, level)
    of = moments(np.concatenate([a, b]), np.repeat([0, 1], [a.size, b.size]), codes, n_cells=2)
    return ratio_of(of, level)


def ratio_of(of: Moments | None, level: float) -> Estimate:
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


def effective_size(of: Moments, cell: int, *, icc: float = 1.0) -> float:
    """How many independent rows say as much about the share of a cell as its clustered rows do.

    At a share of 0 or 1, where the data cannot tell, ``icc`` is taken for the likeness of rows in a cluster.
    """
    share, rows = float(shares(of)[cell]), float(of.sizes[cell])
    variance = float(of.covariance[cell, cell])
    if share in (0, 1):
        return rows / (1 + icc * (rows / float(of.kish[cell]) - 1))
    return min(rows, share * (1 - share) / variance) if variance > 0 else rows


def shares(of: Moments) -> Floats:
    """The means of 0/1 values without rounding: successes over rows."""
    exact: Floats = np.rint(of.means * of.sizes) / of.sizes
    return exact


def _ratio(of: Moments, level: float) -> tuple[float | None, tuple[float | None, float | None], str | None]:
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
