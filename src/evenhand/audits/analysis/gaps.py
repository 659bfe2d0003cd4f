"""One gap: the values of two sides, the test that judges it, and how large it is."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Literal, NamedTuple, get_args

import numpy as np

from evenhand.audits.analysis.quantities import Axis, Flags, Floats, Ints, Quantity
from evenhand.core.records import ALL, REST, Estimate
from evenhand.stats.contrasts import ContrastTests, GapLayout, clustered_gap, compare_many_gaps
from evenhand.stats.hypothesis_tests import (
    cliffs_delta,
    cohens_h,
    hedges_g,
    paired_difference,
    two_proportions,
    wilcoxon,
)
from evenhand.stats.results import Difference

GapTest = Literal["cluster", "binomial", "chi-square", "paired-t", "wilcoxon"]
TESTS: tuple[GapTest, ...] = get_args(GapTest)
"""``cluster`` is the default; the others are the papers' own, which take texts or pairs for independent."""
NOT_CLUSTERED: Mapping[GapTest, str] = {
    "binomial": "the binomial proportion test of shares takes every text for independent",
    "chi-square": "the chi-square test of shares takes every text for independent",
    "paired-t": "the paired t test compares the means of clusters that both groups have, and no others",
    "wilcoxon": "Wilcoxon's test compares the means of clusters that both groups have, and no others",
}
"""What a reader must know of a named test."""


@dataclass(frozen=True, slots=True)
class GapSide:
    """What one side of a comparison has on one output: known values only."""

    values: Floats
    clusters: Ints
    nulls: Counter[str]

    @classmethod
    def of(cls, quantity: Quantity, axis: Axis, chosen: Flags) -> GapSide:
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

    def merge(self, other: GapSide) -> GapSide:
        """Both sides as one."""
        return GapSide(
            np.concatenate([self.values, other.values]),
            np.concatenate([self.clusters, other.clusters]),
            Counter(self.nulls + other.nulls),
        )


class ShareSide(NamedTuple):
    """What one side has on a share: all that is told of it."""

    n: int
    yes: int
    nulls: Counter[str]

    @property
    def mean(self) -> float | None:
        """The share; null without values."""
        return self.yes / self.n if self.n else None

    def merge(self, other: ShareSide) -> ShareSide:
        """Both sides as one."""
        return ShareSide(self.n + other.n, self.yes + other.yes, self.nulls + other.nulls)


class EffectSizes(NamedTuple):
    """How large a gap is, whatever the number of texts."""

    effect_size: float | None = None
    """Cohen's h for shares, Hedges' g for means."""
    cliffs_delta: float | None = None


def estimate_gap(
    quantity: Quantity, a: GapSide, b: GapSide, *, level: float, test: GapTest = "cluster"
) -> tuple[Difference, Estimate]:
    """Side a minus side b, judged by the test, and their ratio.

    A test that does not fit the output gives way to ``cluster``, which the ratio always comes from.
    """
    is_share = quantity.kind == "share"
    gap, ratio = clustered_gap(a.values, a.clusters, b.values, b.clusters, is_share=is_share, level=level)
    return retest_gap(gap, a, b, is_share=is_share, level=level, test=test), ratio


def retest_gap(
    gap: Difference, a: GapSide, b: GapSide, *, is_share: bool, level: float, test: GapTest
) -> Difference:
    """The gap judged by a named test instead, where that fits the output."""
    if test in ("binomial", "chi-square") and is_share:
        gap = _test_unclustered(a, b, level, test)
    if test in ("paired-t", "wilcoxon"):
        gap = _test_paired(a, b, level, test)
    return gap


def effect_sizes(quantity: Quantity, a: GapSide | ShareSide, b: GapSide | ShareSide) -> EffectSizes:
    """The effect sizes of two sides; null where a side is empty."""
    mean_a, mean_b = a.mean, b.mean
    if mean_a is None or mean_b is None:
        return EffectSizes()
    if quantity.kind == "share" or isinstance(a, ShareSide) or isinstance(b, ShareSide):
        # Of yes and no, P(a > b) - P(a < b) = a (1 - b) - b (1 - a): the difference itself.
        return EffectSizes(cohens_h(mean_a, mean_b), mean_a - mean_b)
    return EffectSizes(hedges_g(a.values, b.values).value, cliffs_delta(a.values, b.values).value)


def nulls_to_json(nulls: Counter[str]) -> str:
    """Null reasons as a JSON object, in the order of their names."""
    return json.dumps(dict(sorted(nulls.items())), ensure_ascii=False)


def _test_unclustered(a: GapSide, b: GapSide, level: float, test: GapTest) -> Difference:
    successes = int(a.values.sum()), int(b.values.sum())
    found = two_proportions(successes[0], a.values.size, successes[1], b.values.size, level=level)
    # Of a table of two rows and two columns, chi-square is the square of z: one p-value.
    return replace(found, method="chi-square") if test == "chi-square" else found


def _test_paired(a: GapSide, b: GapSide, level: float, test: GapTest) -> Difference:
    shared = np.intersect1d(a.clusters, b.clusters)
    means = [_means(side, shared) for side in (a, b)]
    found = replace(paired_difference(*means, level=level), n_a=a.values.size, n_b=b.values.size)
    if test == "paired-t":
        return found
    ranked = wilcoxon(*means)
    return replace(found, p=ranked.p, method=ranked.method, null_reason=ranked.null_reason)


def _means(side: GapSide, shared: Ints) -> Floats:
    """The mean of each shared cluster on one side."""
    place = np.searchsorted(shared, side.clusters)
    inside = np.isin(side.clusters, shared)
    count = np.bincount(place[inside], minlength=shared.size)
    total = np.bincount(place[inside], weights=side.values[inside], minlength=shared.size)
    means: Floats = total / count
    return means


_CELLS = 20_000_000
"""Values stacked at a time."""


@dataclass(frozen=True, slots=True)
class OutputGaps:
    """The gaps of one output: of every group of an axis."""

    gaps: ContrastTests
    place: int

    def difference(self, code: int) -> Difference:
        """The gap of a group to its baseline."""
        return self.gaps.difference(self.place, code)

    def ratio(self, code: int) -> Estimate:
        """The group's value over that of its baseline."""
        return self.gaps.ratio(self.place, code)

    def sides(self, code: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """Of a share: texts and how many of them have it, in the group and in its baseline."""
        sizes = self.gaps.moments.sizes[code]
        yes = np.rint(self.gaps.moments.means[self.place, code] * sizes)
        (n_a, n_b), (yes_a, yes_b) = sizes.astype(int).tolist(), yes.astype(int).tolist()
        return (n_a, yes_a), (n_b, yes_b)

    def shares(self) -> list[Estimate]:
        """The share of each group, with its interval."""
        return self.gaps.shares(self.place)


def compare_axis(
    axis: Axis, quantities: Sequence[Quantity], baseline: str, *, level: float
) -> list[OutputGaps]:
    """The gaps of every output of an axis, in their order; ``(all)`` is judged as ``(rest)``."""
    found: list[OutputGaps | None] = [None] * len(quantities)
    against = None if baseline in (REST, ALL) else axis.groups.index(baseline)
    layouts: dict[bytes, GapLayout] = {}
    for known, kind, places in _group_outputs(axis, quantities):
        mark = blake2b(known.tobytes()).digest()
        if mark not in layouts:
            layouts[mark] = GapLayout(axis.codes[known], axis.clusters[known], len(axis.groups), against)
        rows = axis.rows[known]
        values = np.stack([quantities[place].values[rows] for place in places])
        gaps = compare_many_gaps(layouts[mark], values, is_share=kind == "share", level=level)
        for number, place in enumerate(places):
            found[place] = OutputGaps(gaps, number)
    return [item for item in found if item is not None]


def count_nulls(axis: Axis, quantity: Quantity) -> list[Counter[str]]:
    """For each group why its texts have no value."""
    empty = np.flatnonzero(np.isnan(quantity.values[axis.rows]))
    of_empty = axis.codes[empty]
    return [
        quantity.nulls(axis.rows[empty[of_empty == code]]) if empty.size else Counter[str]()
        for code in range(len(axis.groups))
    ]


def _group_outputs(axis: Axis, quantities: Sequence[Quantity]) -> Iterator[tuple[Flags, str, list[int]]]:
    """Outputs of one kind that the same texts have, so many that they fit in memory together."""
    most = max(1, _CELLS // max(1, axis.rows.size))
    members: dict[tuple[str, bytes], list[int]] = {}
    for place, quantity in enumerate(quantities):
        known = ~np.isnan(quantity.values[axis.rows])
        key = quantity.kind, blake2b(known.tobytes()).digest()
        members.setdefault(key, []).append(place)
    for (kind, _), places in members.items():
        flags: Flags = ~np.isnan(quantities[places[0]].values[axis.rows])
        for start in range(0, len(places), most):
            yield flags, kind, places[start : start + most]
