"""Power: the smallest gap that a test detects, and how large a sample must be to detect one."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
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
from evenhand.stats.quantiles import normal_quantile, t_quantile

POWER = 0.8
"""The power at which a gap counts as detectable."""
_MOST_CLUSTERS = 10**9
_HALVINGS = 50


class SharePair(NamedTuple):
    """Two shares as Newcombe's interval sees them: the baseline's value, and both effective sample sizes."""

    baseline: float
    size: float
    baseline_size: float
    shared: float
    """The variance of their difference divided by that of independent shares."""
    is_few: bool
    """Whether so few clusters are behind them that the test is at least as wide as the t test."""

    @property
    def room(self) -> float:
        """The largest gap towards the side with more room."""
        return max(self.baseline, 1 - self.baseline)

    def variances(self, gap: float) -> tuple[float, float]:
        """The variance where the interval touches 0, and the estimate's own, at a true gap of this size.

        Towards 1/2 the variance of a share grows, so that this is the direction that needs the larger gap.
        Newcombe's interval touches 0 where the two shares moved towards each other, each by its own part.
        """
        sign = 1 if self.baseline <= 0.5 else -1
        parts = 1 / self.size, 1 / self.baseline_size
        moved = [sign * gap * math.sqrt(part / sum(parts)) for part in parts]
        group = self.baseline + sign * gap
        touching = self._variance(group - moved[0], self.baseline + moved[1])
        alternative = self._variance(group, self.baseline)
        return max(touching, alternative) if self.is_few else touching, alternative

    def _variance(self, group: float, baseline: float) -> float:
        sides = (group, self.size), (baseline, self.baseline_size)
        return self.shared * sum(max(share * (1 - share), 0.0) / size for share, size in sides)


@dataclass(frozen=True, slots=True)
class GapSpread:
    """How far the estimate of a gap scatters, and with it the smallest true gap that its test detects."""

    se: float
    df: float = math.inf
    shares: SharePair | None = None
    """For a gap of two shares, whose variance depends on the gap itself."""
    scale: float = 1.0
    """The reported gap divided by the tested one."""

    def detectable(self, alpha: float, power: float = POWER) -> float:
        """The smallest true gap that is detected with this power where p of at most ``alpha`` decides.

        From the noncentral t distribution in the approximation of Johnson and Welch (1940), whose power is at
        most 1.2 points from the exact one with 3 or more degrees of freedom.
        """
        quantile, beyond = t_quantile(1 - alpha / 2, self.df), normal_quantile(power)

        def reach(touching: float, alternative: float) -> float:
            scatter = alternative + quantile**2 / (2 * self.df) * touching
            return quantile * (1 - 1 / (4 * self.df)) * math.sqrt(touching) + beyond * math.sqrt(scatter)

        if self.shares is None:
            return self.scale * reach(self.se**2, self.se**2)
        low, high = 0.0, self.shares.room
        if reach(*self.shares.variances(high)) > high:
            # More than shares have room for.
            return self.scale * reach(*self.shares.variances(high))
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            is_enough = reach(*self.shares.variances(middle)) <= middle
            low, high = (low, middle) if is_enough else (middle, high)
        return self.scale * high


class Growth(NamedTuple):
    """Growth factors for a run; null where no amount is enough, or where it is unknown."""

    clusters: float | None
    """Factor for the number of clusters, with the current number of samples each."""
    samples: float | None
    """Factor for the number of samples, with the same clusters."""


def clusters_needed(
    gap: float,
    *,
    sd: float = 0.0,
    share: float | None = None,
    icc: float = 1.0,
    samples: int = 1,
    alpha: float = 0.05,
    power: float = POWER,
) -> int:
    """The number of clusters each of two groups needs to detect a true gap of this size with this power.

    For a two-sided test decided at ``alpha`` between groups with equal numbers of clusters, ``samples`` rows
    per cluster, and intraclass correlation ``icc`` (from 0 to 1; at 1, more samples of one prompt do not
    help): of means with standard deviation ``sd``, or of shares where the baseline's is ``share``. A design
    in which clusters span both groups (templates) needs fewer.
    """
    if not gap > 0:
        raise InputError(f"a gap of {gap}", expected="a gap above 0, in the unit of the values")
    if samples < 1:
        raise InputError(f"{samples} samples per cluster", expected="1 or more")
    check_level(power)
    per_cluster = samples / (1 + (samples - 1) * icc)

    def is_enough(clusters: int) -> bool:
        size = clusters * per_cluster
        pair = None if share is None else SharePair(share, size, size, shared=1.0, is_few=False)
        spread = GapSpread(sd * math.sqrt(2 / size), 2 * (clusters - 1), pair)
        return spread.detectable(alpha, power) <= gap

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
