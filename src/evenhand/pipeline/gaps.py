"""One gap: the values of two sides, the test that judges it, and how large it is."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, get_args

import numpy as np

from evenhand.core.records import Estimate
from evenhand.pipeline.quantities import Axis, Flags, Floats, Ints, Quantity
from evenhand.stats.contrasts import clustered_gap
from evenhand.stats.effects import cliffs_delta, cohens_h, hedges_g
from evenhand.stats.hypothesis_tests import paired_difference, two_proportions, wilcoxon
from evenhand.stats.results import Difference

Test = Literal["cluster", "binomial", "chi-square", "paired-t", "wilcoxon"]
TESTS: tuple[Test, ...] = get_args(Test)
"""``cluster`` is the default; the others are the papers' own, which take texts or pairs for independent."""
NOT_CLUSTERED: Mapping[Test, str] = {
    "binomial": "the binomial proportion test of shares takes every text for independent",
    "chi-square": "the chi-square test of shares takes every text for independent",
    "paired-t": "the paired t test compares the means of clusters that both groups have, and no others",
    "wilcoxon": "Wilcoxon's test compares the means of clusters that both groups have, and no others",
}
"""What a reader must know of a named test."""


@dataclass(frozen=True, slots=True)
class Side:
    """What one side of a comparison has on one output: known values only."""

    values: Floats
    clusters: Ints
    nulls: Counter[str]

    @classmethod
    def of(cls, quantity: Quantity, axis: Axis, chosen: Flags) -> Side:
        """The chosen rows of an axis."""
        rows = axis.rows[chosen]
        values = quantity.values[rows]
        known = ~np.isnan(values)
        return cls(values[known], axis.clusters[chosen][known], quantity.nulls(rows))

    @property
    def n(self) -> int:
        """How many values there are."""
        return int(self.values.size)

    @property
    def mean(self) -> float | None:
        """The mean, or share; null without values."""
        return float(self.values.mean()) if self.values.size else None

    def joined(self, other: Side) -> Side:
        """Both sides as one."""
        return Side(
            np.concatenate([self.values, other.values]),
            np.concatenate([self.clusters, other.clusters]),
            Counter(self.nulls + other.nulls),
        )


class Yeses(NamedTuple):
    """What one side has on a share: all that is told of it."""

    n: int
    yes: int
    nulls: Counter[str]

    @property
    def mean(self) -> float | None:
        """The share; null without values."""
        return self.yes / self.n if self.n else None

    def joined(self, other: Yeses) -> Yeses:
        """Both sides as one."""
        return Yeses(self.n + other.n, self.yes + other.yes, self.nulls + other.nulls)


class Sizes(NamedTuple):
    """How large a gap is, whatever the number of texts."""

    effect_size: float | None = None
    """Cohen's h for shares, Hedges' g for means."""
    cliffs_delta: float | None = None


def judged(
    quantity: Quantity, a: Side, b: Side, *, level: float, test: Test = "cluster"
) -> tuple[Difference, Estimate]:
    """Side a minus side b, judged by the test, and their ratio.

    A test that does not fit the output gives way to ``cluster``, which the ratio always comes from.
    """
    is_share = quantity.kind == "share"
    gap, ratio = clustered_gap(a.values, a.clusters, b.values, b.clusters, is_share=is_share, level=level)
    return retested(gap, a, b, is_share=is_share, level=level, test=test), ratio


def retested(gap: Difference, a: Side, b: Side, *, is_share: bool, level: float, test: Test) -> Difference:
    """The gap judged by a named test instead, where that fits the output."""
    if test in ("binomial", "chi-square") and is_share:
        gap = _unclustered(a, b, level, test)
    if test in ("paired-t", "wilcoxon"):
        gap = _paired(a, b, level, test)
    return gap


def sizes(quantity: Quantity, a: Side | Yeses, b: Side | Yeses) -> Sizes:
    """The effect sizes of two sides; null where a side is empty."""
    mean_a, mean_b = a.mean, b.mean
    if mean_a is None or mean_b is None:
        return Sizes()
    if quantity.kind == "share" or isinstance(a, Yeses) or isinstance(b, Yeses):
        # Of yes and no, P(a > b) - P(a < b) = a (1 - b) - b (1 - a): the difference itself.
        return Sizes(cohens_h(mean_a, mean_b), mean_a - mean_b)
    return Sizes(hedges_g(a.values, b.values).value, cliffs_delta(a.values, b.values).value)


def counted(nulls: Counter[str]) -> str:
    """Null reasons as a JSON object, in the order of their names."""
    return json.dumps(dict(sorted(nulls.items())), ensure_ascii=False)


def _unclustered(a: Side, b: Side, level: float, test: Test) -> Difference:
    successes = int(a.values.sum()), int(b.values.sum())
    found = two_proportions(successes[0], a.values.size, successes[1], b.values.size, level=level)
    # Of a table of two rows and two columns, chi-square is the square of z: one p-value.
    return replace(found, method="chi-square") if test == "chi-square" else found


def _paired(a: Side, b: Side, level: float, test: Test) -> Difference:
    shared = np.intersect1d(a.clusters, b.clusters)
    means = [_means(side, shared) for side in (a, b)]
    found = replace(paired_difference(*means, level=level), n_a=a.values.size, n_b=b.values.size)
    if test == "paired-t":
        return found
    ranked = wilcoxon(*means)
    return replace(found, p=ranked.p, method=ranked.method, null_reason=ranked.null_reason)


def _means(side: Side, shared: Ints) -> Floats:
    """The mean of each shared cluster on one side."""
    place = np.searchsorted(shared, side.clusters)
    inside = np.isin(side.clusters, shared)
    count = np.bincount(place[inside], minlength=shared.size)
    total = np.bincount(place[inside], weights=side.values[inside], minlength=shared.size)
    means: Floats = total / count
    return means
