"""One gap: the values of two sides, the test that judges it, and how large it is."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
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
"""``cluster`` is the default; those of the papers assume that texts or pairs are independent."""
NOT_CLUSTERED: Mapping[GapTest, str] = {
    "binomial": "the binomial proportion test of shares takes every text for independent",
    "chi-square": "the chi-square test of shares takes every text for independent",
    "paired-t": "the paired t test compares the means of clusters that both groups have, and no others",
    "wilcoxon": "Wilcoxon's test compares the means of clusters that both groups have, and no others",
}
"""What a reader must know of a named test."""


class GapSide(NamedTuple):
    """What one side of a comparison has on one output: known values only."""

    n: int
    """How many values there are."""
    mean: float | None
    """The mean, or share; null without values."""
    nulls: Counter[str]
    values: Floats = np.empty(0)
    """Left out for a share of which the counts are enough; so are the clusters."""
    clusters: Ints = np.empty(0, dtype=np.int64)

    @classmethod
    def of(cls, quantity: Quantity, axis: Axis, chosen: Flags) -> GapSide:
        """The chosen rows of an axis."""
        rows = axis.rows[chosen]
        values = quantity.values[rows]
        known = ~np.isnan(values)
        nulls = Counter[str]() if known.all() else quantity.nulls(rows)
        values = values[known]
        mean = float(values.mean()) if values.size else None
        return cls(values.size, mean, nulls, values, axis.clusters[chosen][known])

    def merge(self, other: GapSide) -> GapSide:
        """Both sides as one."""
        n, nulls = self.n + other.n, self.nulls + other.nulls
        values = np.concatenate([self.values, other.values])
        if values.size < n:
            yes = sum(round(side.n * side.mean) for side in (self, other) if side.mean is not None)
            return GapSide(n, yes / n, nulls)
        clusters = np.concatenate([self.clusters, other.clusters])
        return GapSide(n, float(values.mean()) if n else None, nulls, values, clusters)


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


def effect_sizes(quantity: Quantity, a: GapSide, b: GapSide) -> EffectSizes:
    """The effect sizes of two sides; null where a side is empty."""
    mean_a, mean_b = a.mean, b.mean
    if mean_a is None or mean_b is None:
        return EffectSizes()
    if quantity.kind == "share":
        # Of yes and no, P(a > b) - P(a < b) = a (1 - b) - b (1 - a): the difference itself.
        return EffectSizes(cohens_h(mean_a, mean_b), mean_a - mean_b)
    return EffectSizes(hedges_g(a.values, b.values).value, cliffs_delta(a.values, b.values).value)


def nulls_to_json(nulls: Counter[str]) -> str:
    """Null reasons as a JSON object, in the order of their names."""
    return json.dumps(dict(sorted(nulls.items())), ensure_ascii=False)


def _test_unclustered(a: GapSide, b: GapSide, level: float, test: GapTest) -> Difference:
    successes = int(a.values.sum()), int(b.values.sum())
    result = two_proportions(successes[0], a.values.size, successes[1], b.values.size, level=level)
    # Of a table of two rows and two columns, chi-square is the square of z: one p-value.
    return replace(result, method="chi-square") if test == "chi-square" else result


def _test_paired(a: GapSide, b: GapSide, level: float, test: GapTest) -> Difference:
    shared = np.intersect1d(a.clusters, b.clusters)
    means = []
    for side in (a, b):
        inside = np.isin(side.clusters, shared)
        place = np.searchsorted(shared, side.clusters[inside])
        total = np.bincount(place, weights=side.values[inside], minlength=shared.size)
        means.append(total / np.bincount(place, minlength=shared.size))
    result = replace(paired_difference(*means, level=level), n_a=a.values.size, n_b=b.values.size)
    if test == "paired-t":
        return result
    ranked = wilcoxon(*means)
    return replace(result, p=ranked.p, method=ranked.method, null_reason=ranked.null_reason)


_CELLS = 20_000_000
"""Values stacked at a time."""


class OutputGaps(NamedTuple):
    """The gaps of one output: of every group of an axis."""

    gaps: ContrastTests
    place: int

    def sides(self, code: int, nulls: tuple[Counter[str], Counter[str]]) -> tuple[GapSide, GapSide]:
        """Of a share: the group and its baseline, whose nulls are given."""
        sizes = self.gaps.moments.sizes[code]
        counts = np.rint(self.gaps.moments.means[self.place, code] * sizes).astype(int).tolist()
        a, b = (
            GapSide(n, yes / n if n else None, missing)
            for n, yes, missing in zip(sizes.astype(int).tolist(), counts, nulls, strict=True)
        )
        return a, b

    def shares(self) -> list[Estimate]:
        """The share of each group, with its interval."""
        return self.gaps.shares(self.place)


def compare_axis(
    axis: Axis, quantities: Sequence[Quantity], baseline: str, *, level: float
) -> list[OutputGaps]:
    """The gaps of every output of an axis, in their order; ``(all)`` is judged as ``(rest)``."""
    against = None if baseline in (REST, ALL) else axis.groups.index(baseline)
    layouts: dict[bytes, GapLayout] = {}
    alike: dict[tuple[str, bytes], list[int]] = {}
    for place, quantity in enumerate(quantities):
        known = ~np.isnan(quantity.values[axis.rows])
        mark = blake2b(known.tobytes()).digest()
        alike.setdefault((quantity.kind, mark), []).append(place)
        if mark not in layouts:
            layouts[mark] = GapLayout(axis.codes[known], axis.clusters[known], len(axis.groups), against)
    # Outputs of one kind that the same texts have, as many as fit in memory together.
    most = max(1, _CELLS // max(1, axis.rows.size))
    gaps: dict[int, OutputGaps] = {}
    for (kind, mark), places in alike.items():
        rows = axis.rows[~np.isnan(quantities[places[0]].values[axis.rows])]
        for part in (places[start : start + most] for start in range(0, len(places), most)):
            values = np.stack([quantities[place].values[rows] for place in part])
            many = compare_many_gaps(layouts[mark], values, is_share=kind == "share", level=level)
            gaps |= {place: OutputGaps(many, number) for number, place in enumerate(part)}
    return [gaps[place] for place in range(len(quantities))]


def count_nulls(axis: Axis, quantity: Quantity) -> list[Counter[str]]:
    """For each group why its texts have no value."""
    empty = np.flatnonzero(np.isnan(quantity.values[axis.rows]))
    of_empty = axis.codes[empty]
    return [
        quantity.nulls(axis.rows[empty[of_empty == code]]) if empty.size else Counter[str]()
        for code in range(len(axis.groups))
    ]
