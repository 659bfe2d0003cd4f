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


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Mean of a minus mean of b (positive: a is higher), or the reason a part of it is missing."""

    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    se: float | None = None
    df: float | None = None
    """Degrees of freedom of the t reference; null where the normal is used."""
    p: float | None = None
    """Two-sided."""
    level: float
    n_a: int
    n_b: int
    n_clusters: int
    """Distinct clusters in a and b together."""
    min_detectable: float | None = None
    """The smallest true gap that such data would have shown with 80 % power at 1 - level."""
    method: str
    null_reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Omnibus:
    """Whether all groups share one mean: an F statistic and its p-value."""

    statistic: float | None = None
    df_between: float | None = None
    df_error: float | None = None
    p: float | None = None
    n: int
    n_clusters: int
    n_groups: int
    """Groups that entered the test."""
    groups_left_out: int
    """Groups of fewer than two clusters, whose variation cannot be known."""
    method: str
    null_reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TestResult:
    """A named test without a cluster correction, as the papers print it."""

    __test__ = False  # pytest must not collect it

    statistic: float | None = None
    df: float | None = None
    p: float | None = None
    """Two-sided."""
    estimate: float | None = None
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


class PointEstimate(NamedTuple):
    """A number that has no interval of its own (an effect size, a distance), or the reason there is none."""

    value: float | None
    null_reason: str | None = None
