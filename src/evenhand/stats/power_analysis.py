"""Sample-size planning: clusters needed to detect a gap, and how much a run must grow."""

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
    """Growth factors for a run; null where no amount is enough, or where it is unknown."""

    clusters: float | None
    """Factor for the number of clusters, with the current number of samples each."""
    samples: float | None
    """Factor for the number of samples, with the same clusters."""


def clusters_needed(
    gap: float, *, sd: float, icc: float = 1.0, samples: int = 1, level: float = 0.95, power: float = 0.8
) -> int:
    """The number of clusters each of two groups needs to detect a true gap of this size with this power.

    For a two-sided test at 1 - level between groups with equal numbers of clusters, ``samples`` rows per
    cluster, standard deviation ``sd`` and intraclass correlation ``icc`` (from 0 to 1; at 1, more samples of
    one prompt do not help). A design in which clusters span both groups (templates) needs fewer.
    """
    if not gap > 0:
        raise InputError(f"a gap of {gap}", expected="a gap above 0, in the unit of the values")
    if samples < 1:
        raise InputError(f"{samples} samples per cluster", expected="1 or more")
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

    It is s^2 / n on either side, where s^2 is that side's pooled within-cluster variance. Null where no
    cluster has two rows: then the effect of more samples is unknown.
    """
    sides = [(check_values(a, "a"), clusters_a), (check_values(b, "b"), clusters_b)]
    parts = [_within(y, encode_clusters(ids, y.size)) for y, ids in sides]
    return None if None in parts else sum(part for part in parts if part is not None)


def required_growth(variance: float, within: float | None, *, wanted: float) -> Growth:
    """How much a run must grow to reduce the ``variance`` of its gap to ``wanted``.

    With more clusters the whole variance falls. With more samples only the part ``within`` clusters falls;
    where the rest alone exceeds ``wanted``, no number of samples is enough.
    """
    if not wanted > 0:
        return Growth(None, None)
    samples, shrinking = None, min(within or 0.0, variance)
    between = variance - shrinking
    if within is not None and wanted > between:
        samples = max(1.0, shrinking / (wanted - between))
    return Growth(max(1.0, variance / wanted), samples)


def _within(y: Floats, codes: Ints) -> float | None:
    """The part of a mean's variance that comes from rows within clusters."""
    sizes = np.bincount(codes)
    df = y.size - np.count_nonzero(sizes)
    if df < 1:
        return None
    sums = weighted_counts(codes, y)
    means = np.divide(sums, sizes, out=np.zeros_like(sums), where=sizes > 0)
    return float(np.sum((y - means[codes]) ** 2)) / df / y.size
