"""Result types of `stats`: small, frozen, and never a bare NaN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from evenhand.stats.power_analysis import GapSpread

NO_VALUES = "no values"
"""A group is empty."""
ONE_CLUSTER = "one cluster"
"""A group's texts are all in one cluster, so its variation cannot be estimated."""
TOO_MANY_GROUPS = "too many groups"
"""All pairs of groups are compared, at quadratic cost in memory and time."""
NO_VARIATION = "no variation"
"""All clusters have the same value: there is no standard error for a difference."""
SAME_DIFFERENCE = "every difference is the same and not 0, so that t is infinite"
"""All pairs differ by the same amount: the standard error of the difference is 0."""
NOT_POSITIVE = "a mean is not positive"
"""A ratio needs two positive means."""
NEAR_ZERO = "a mean is too near 0"
"""The ratio's interval would be unbounded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Mean of a minus mean of b (positive: a is higher), or the reason why a field is missing."""

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
    spread: GapSpread | None = None
    """What the power of the test follows from."""
    method: str
    null_reason: str | None = None

    @property
    def min_detectable(self) -> float | None:
        """The smallest true gap that a test at 1 - level would detect with 80 % power in such data."""
        return None if self.spread is None else self.spread.detectable(1 - self.level)


@dataclass(frozen=True, slots=True, kw_only=True)
class Omnibus:
    """A test that all groups have the same mean: an F statistic and its p-value."""

    statistic: float | None = None
    df_between: float | None = None
    df_error: float | None = None
    p: float | None = None
    n: int
    n_clusters: int
    n_groups: int
    """Groups included in the test."""
    groups_left_out: int
    """Groups with fewer than two clusters, whose variation cannot be estimated."""
    method: str
    null_reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TestResult:
    """A named test without cluster correction, as the papers report it."""

    __test__ = False  # pytest must not collect it

    statistic: float | None = None
    df: float | None = None
    p: float | None = None
    """Two-sided."""
    estimate: float | None = None
    """The tested difference, where there is one."""
    n: int
    method: str
    warning: str | None = None
    null_reason: str | None = None


class PointEstimate(NamedTuple):
    """A number without an interval (an effect size, a distance), or the reason why it is missing."""

    value: float | None
    null_reason: str | None = None
