"""Planning: how many prompts show a gap, and which gap a number of prompts can show."""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import NamedTuple

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

_MOST_CLUSTERS = 10**9


class Growth(NamedTuple):
    """How many times as much a run needs; null where no amount is enough, or none is known."""

    clusters: float | None
    """Times the clusters, with as many samples of each as now."""
    samples: float | None
    """Times the samples, of the same clusters."""


def clusters_needed(
    gap: float, *, sd: float, icc: float = 1.0, samples: int = 1, level: float = 0.95, power: float = 0.8
) -> int:
    """The clusters each of two groups needs so that a true gap of this size is found with the wanted power.

    For a two-sided test at 1 - level between groups of as many clusters each, of ``samples`` rows a
    cluster, which vary by ``sd`` and are alike within a cluster by ``icc`` (from 0 to 1; with 1, more samples
    of one prompt promise nothing). A design in which clusters reach over both groups (templates) needs fewer.
    """
    if not gap > 0:
        raise InputError(f"a gap of {gap}", expected="a gap above 0, in the unit of the values")
    if samples < 1:
        raise InputError(f"{samples} samples a cluster", expected="1 or more")
    shares = (1 + check_level(level)) / 2, check_level(power)
    variance = 2 * sd**2 * (1 + (samples - 1) * icc) / samples

    def is_enough(clusters: int) -> bool:
        quantiles = sum(t_quantile(share, 2 * (clusters - 1)) for share in shares)
        return quantiles * math.sqrt(variance / clusters) <= gap

    most = 2
    while not is_enough(most) and most < _MOST_CLUSTERS:
        most *= 2
    return bisect_left(range(most), True, lo=2, key=is_enough)


def variance_within(a: npt.ArrayLike, clusters_a: Ids, b: npt.ArrayLike, clusters_b: Ids) -> float | None:
    """The part of a gap's variance that more samples of the same clusters would shrink.

    It is s^2 / n on either side, with s^2 the pooled variance of rows inside a cluster of that side. Null
    where no cluster holds two rows: then nothing is known of more samples.
    """
    sides = [(check_values(a, "a"), clusters_a), (check_values(b, "b"), clusters_b)]
    parts = [_within(y, encode_clusters(ids, y.size)) for y, ids in sides]
    return None if None in parts else sum(part for part in parts if part is not None)


def required_growth(variance: float, within: float | None, *, wanted: float) -> Growth:
    """How much a run must grow until the ``variance`` of its gap is ``wanted``.

    Clusters: the variance falls with their number. Samples: only the part ``within`` clusters falls; where
    the rest alone exceeds ``wanted``, no number of samples is enough.
    """
    if not wanted > 0:
        return Growth(None, None)
    samples, shrinking = None, min(within or 0.0, variance)
    between = variance - shrinking
    if within is not None and wanted > between:
        samples = max(1.0, shrinking / (wanted - between))
    return Growth(max(1.0, variance / wanted), samples)


def _within(y: Floats, codes: Ints) -> float | None:
    """The variance of a mean that comes from rows inside clusters."""
    sizes = np.bincount(codes)
    free = y.size - np.count_nonzero(sizes)
    if free < 1:
        return None
    sums = weighted_counts(codes, y)
    means = np.divide(sums, sizes, out=np.zeros_like(sums), where=sizes > 0)
    return float(np.sum((y - means[codes]) ** 2)) / free / y.size
