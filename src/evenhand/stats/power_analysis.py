"""Planning: how many prompts show a gap, and which gap a number of prompts can show."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from evenhand.core.errors import InputError
from evenhand.stats._arrays import (
    Floats,
    Ids,
    Ints,
    check_level,
    check_values,
    encode_clusters,
    weighted_counts,
)
from evenhand.stats.quantiles import t_quantile
from evenhand.stats.results import (
    NO_VARIATION,
    ClusterPlan,
    GapVariance,
    Growth,
    Pilot,
)

_MOST_CLUSTERS = 10**9


def clusters_needed(
    gap: float, a: Pilot, b: Pilot, *, samples: int = 1, level: float = 0.95, power: float = 0.8
) -> ClusterPlan:
    """The clusters each group needs so that a true gap of this size is found with the wanted power.

    For a two-sided test at 1 - level between groups of as many clusters each, of ``samples`` rows a
    cluster. A design in which clusters reach over both groups (templates) needs fewer.
    """
    if not gap > 0:
        raise InputError(f"a gap of {gap}", expected="a gap above 0, in the unit of the values")
    reason = _unknown_spread(a, b)
    if reason:
        return ClusterPlan(gap, None, samples, level, power, reason)
    variance = _cluster_variance(a, samples) + _cluster_variance(b, samples)
    low, high = 1, 2
    while _detectable(variance, high, level, power) > gap and high < _MOST_CLUSTERS:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _detectable(variance, middle, level, power) > gap else (low, middle)
    return ClusterPlan(gap, high, samples, level, power)


def gap_variance(
    a: npt.ArrayLike, clusters_a: Ids, b: npt.ArrayLike, clusters_b: Ids, *, variance: float
) -> GapVariance:
    """The variance of a gap, split into what more samples of the same clusters would shrink, and the rest.

    The first part is s^2 / n on either side, with s^2 the pooled variance of rows inside a cluster of that
    side. It is null where no cluster holds two rows: then nothing is known of more samples. ``variance`` is
    the whole, as the test that judged the gap has it.
    """
    sides = [(check_values(a, "a"), clusters_a), (check_values(b, "b"), clusters_b)]
    parts = [_within(y, encode_clusters(ids, y.size)) for y, ids in sides]
    known = [part for part in parts if part is not None]
    if len(known) < 2:
        return GapVariance(variance, None)
    return GapVariance(variance, min(sum(known), variance))


def required_growth(of: GapVariance, *, wanted: float) -> Growth:
    """How much a run must grow until the variance of its gap is ``wanted``.

    Clusters: the variance falls with their number. Samples: only the part inside clusters falls; where the
    rest alone exceeds ``wanted``, no number of samples is enough.
    """
    if not wanted > 0:
        return Growth(None, None)
    between = of.total - (of.within or 0.0)
    samples = None
    if of.within is not None and wanted > between:
        samples = max(1.0, of.within / (wanted - between)) if of.within > 0 else 1.0
    return Growth(max(1.0, of.total / wanted), samples)


def _within(y: Floats, codes: Ints) -> float | None:
    """The variance of a mean that comes from rows inside clusters."""
    sizes = np.bincount(codes)
    free = y.size - np.count_nonzero(sizes)
    if free < 1:
        return None
    sums = weighted_counts(codes, y)
    means = np.divide(sums, sizes, out=np.zeros_like(sums), where=sizes > 0)
    return float(np.sum((y - means[codes]) ** 2)) / free / y.size


def _detectable(variance: float, clusters: int, level: float, power: float) -> float:
    if clusters < 2:
        return math.inf
    df = 2 * (clusters - 1)
    quantiles = t_quantile((1 + check_level(level)) / 2, df) + t_quantile(check_level(power), df)
    return quantiles * math.sqrt(variance / clusters)


def _cluster_variance(of: Pilot, samples: int) -> float:
    """The variance of the mean of one cluster of ``samples`` rows.

    An unknown correlation is taken for 1: more samples of one prompt then promise nothing.
    """
    if samples < 1:
        raise InputError(f"{samples} samples a cluster", expected="1 or more")
    return (of.sd or 0.0) ** 2 * (1 + (samples - 1) * (1.0 if of.icc is None else of.icc)) / samples


def _unknown_spread(a: Pilot, b: Pilot) -> str | None:
    if a.sd is None or b.sd is None:
        return a.null_reason or b.null_reason
    return NO_VARIATION if a.sd == 0 and b.sd == 0 else None
