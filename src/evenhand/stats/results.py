"""What the functions of `stats` give back: small, frozen, and never a bare NaN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

NO_VALUES = "no values"
"""A group is empty."""
ONE_CLUSTER = "one cluster"
"""A group's texts all belong together, so nothing tells how it would vary."""
TOO_MANY_GROUPS = "too many groups"
"""Every group is held against every other one, which takes memory and time by their square."""
NO_VARIATION = "no variation"
"""Every cluster says the same: there is no yardstick for a difference."""
SAME_DIFFERENCE = "every difference is the same and not 0, so that t is infinite"
"""All pairs differ by as much: there is a difference, and no spread to measure it by."""
NOT_POSITIVE = "a mean is not positive"
"""A ratio needs two positive means."""
NEAR_ZERO = "a mean is too near 0"
"""A ratio whose interval would have no bounds."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Mean of a minus mean of b (positive: a is higher), or the reason a part of it is missing."""

    estimate: float | None
    low: float | None
    high: float | None
    se: float | None
    df: float | None
    """Degrees of freedom of the t reference; null where the normal is used."""
    p: float | None
    """Two-sided."""
    level: float
    n_a: int
    n_b: int
    n_clusters: int
    """Distinct clusters in a and b together."""
    min_detectable: float | None
    """The smallest true gap that such data would have shown with 80 % power at 1 - level."""
    method: str
    null_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Omnibus:
    """Whether all groups share one mean: an F statistic and its p-value."""

    statistic: float | None
    df_between: float | None
    df_error: float | None
    p: float | None
    n: int
    n_clusters: int
    n_groups: int
    """Groups that entered the test."""
    groups_left_out: int
    """Groups of fewer than two clusters, whose variation cannot be known."""
    method: str
    null_reason: str | None = None


@dataclass(frozen=True, slots=True)
class TestResult:
    """A named test without a cluster correction, as the papers print it."""

    __test__ = False  # pytest must not collect it

    statistic: float | None
    df: float | None
    p: float | None
    """Two-sided."""
    estimate: float | None
    """The difference the test is about, where it has one."""
    n: int
    method: str
    warning: str | None = None
    null_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Permutation:
    """A p-value from exchanging group labels."""

    estimate: float | None
    """Mean of the group minus mean of the others."""
    p: float | None
    """Two-sided. Never below 1 / (arrangements + 1) unless exact."""
    arrangements: int
    """Label arrangements looked at."""
    is_exact: bool
    """True where every possible arrangement was looked at."""
    n: int
    n_clusters: int
    method: str
    null_reason: str | None = None


@dataclass(frozen=True, slots=True)
class StratumGap:
    """The gap inside one stratum: mean of the group minus mean of the others."""

    stratum: str
    estimate: float
    n_group: int
    n_others: int


@dataclass(frozen=True, slots=True)
class Stratified:
    """A gap over all rows beside the same gap inside strata."""

    crude: Difference
    """Group minus others, strata ignored."""
    adjusted: Difference
    """The mean of the gaps inside strata, weighted by the rows of a stratum."""
    gaps: tuple[StratumGap, ...]
    """The strata that enter ``adjusted``."""
    strata_left_out: int
    """Strata in which either side has fewer than two clusters."""
    disagrees: bool
    """True where crude and adjusted point in opposite directions and one of the intervals excludes 0."""


@dataclass(frozen=True, slots=True)
class Pilot:
    """What a first run says about the spread of a value: enough to plan the next one."""

    mean: float | None
    sd: float | None
    icc: float | None
    """Likeness of rows in a cluster, from 0 to 1; null where no cluster holds two rows."""
    n: int
    n_clusters: int
    null_reason: str | None = None


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """How many clusters (prompts) a group needs, and the gap they would show."""

    gap: float
    clusters: int | None
    """Clusters a group."""
    samples: int
    """Rows a cluster."""
    level: float
    power: float
    null_reason: str | None = None


class GapVariance(NamedTuple):
    """The variance of a gap, and the part of it that more samples of the same clusters would shrink."""

    total: float
    within: float | None
    """Null where no cluster holds two rows."""


class Growth(NamedTuple):
    """How many times as much a run needs; null where no amount is enough, or none is known."""

    clusters: float | None
    """Times the clusters, with as many samples of each as now."""
    samples: float | None
    """Times the samples, of the same clusters."""


class PointEstimate(NamedTuple):
    """A number that has no interval of its own (an effect size, a distance), or the reason there is none."""

    value: float | None
    null_reason: str | None = None
