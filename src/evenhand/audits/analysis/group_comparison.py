"""Scores to comparisons: every group with its interval, every gap with its test and correction."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations, product
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl

from evenhand.audits.analysis.quantities import Axis, Flags, Floats, Ints, Quantity, Row, name_columns
from evenhand.audits.parallel import map_threads
from evenhand.core.errors import InputError
from evenhand.core.records import ALL, REST, Estimate
from evenhand.core.seeds import make_generator
from evenhand.stats.bootstrap import cluster_bootstrap_mean
from evenhand.stats.contrasts import (
    ContrastTests,
    GapLayout,
    clustered_gap,
    clustered_omnibus,
    compare_many_gaps,
)
from evenhand.stats.corrections import Correction, correct_by_family
from evenhand.stats.hypothesis_tests import (
    chi_square,
    cliffs_delta,
    cohens_h,
    hedges_g,
    paired_difference,
    two_proportions,
    wilcoxon,
)
from evenhand.stats.intervals import clustered_mean
from evenhand.stats.results import Difference, Omnibus
from evenhand.store.schemas import GROUPS, OMNIBUS

GapTest = Literal["cluster", "binomial", "chi-square", "paired-t", "wilcoxon"]
"""``cluster`` is the default; those of the papers assume that texts or pairs are independent."""
NOT_CLUSTERED: Mapping[GapTest, str] = {
    "binomial": "the binomial proportion test of shares takes every text for independent",
    "chi-square": "the chi-square test of shares takes every text for independent",
    "paired-t": "the paired t test compares the means of clusters that both groups have, and no others",
    "wilcoxon": "Wilcoxon's test compares the means of clusters that both groups have, and no others",
}
"""What a reader must know of a named test."""
_MOST_PAIRS = 100_000
"""Comparisons of two groups at most: minutes of work, and a table nobody reads."""
_MANY_CLUSTERS = 20_000
"""From here on a bootstrap and a t interval of a mean agree in every digit that is shown."""
_CELLS = 20_000_000
"""Values stacked at a time."""
GAP_FIELDS = ("estimate", "low", "high", "p", "n_clusters", "spread", "method", "null_reason")
"""What a comparison has from its gap, besides ``n``; `correct_rows` replaces its spread."""
_JSON = json.JSONEncoder(sort_keys=True, ensure_ascii=False)


class GapSide(NamedTuple):
    """What one side of a comparison has on one output: known values only."""

    n: int
    """How many values there are."""
    mean: float | None
    """The mean, or share; null without values."""
    values: Floats = np.empty(0)
    """Left out for a share of which the counts are enough; so are the clusters."""
    clusters: Ints = np.empty(0, dtype=np.int64)

    @classmethod
    def of(cls, quantity: Quantity, axis: Axis, chosen: Flags) -> GapSide:
        """The chosen rows of an axis."""
        values = quantity.values[axis.rows[chosen]]
        known = ~np.isnan(values)
        values = values[known]
        mean = float(values.mean()) if values.size else None
        return cls(values.size, mean, values, axis.clusters[chosen][known])

    def merge(self, other: GapSide) -> GapSide:
        """Both sides as one, without clusters."""
        n, values = self.n + other.n, np.concatenate([self.values, other.values])
        if values.size < n:
            return GapSide(n, sum(round(side.n * (side.mean or 0)) for side in (self, other)) / n)
        return GapSide(n, float(values.mean()) if n else None, values)


def retest_gap(
    gap: Difference, a: GapSide, b: GapSide, *, is_share: bool, level: float, test: GapTest
) -> Difference:
    """The gap judged by a named test instead; one that does not fit the output gives way to ``cluster``."""
    if test in ("binomial", "chi-square") and is_share:
        result = two_proportions(int(a.values.sum()), a.n, int(b.values.sum()), b.n, level=level)
        # Of a table of two rows and two columns, chi-square is the square of z: one p-value.
        return replace(result, method="chi-square") if test == "chi-square" else result
    if test not in ("paired-t", "wilcoxon"):
        return gap
    shared = np.intersect1d(a.clusters, b.clusters)
    means = []
    for side in (a, b):
        inside = np.isin(side.clusters, shared)
        place = np.searchsorted(shared, side.clusters[inside])
        total = np.bincount(place, weights=side.values[inside], minlength=shared.size)
        means.append(total / np.bincount(place, minlength=shared.size))
    result = replace(paired_difference(*means, level=level), n_a=a.n, n_b=b.n)
    if test == "paired-t":
        return result
    ranked = wilcoxon(*means)
    return replace(result, p=ranked.p, method=ranked.method, null_reason=ranked.null_reason)


def missing_baseline_error(baseline: str, axis: str, groups: Sequence[str]) -> InputError:
    """The error for a baseline that no text of an axis belongs to; ``groups`` are those that have texts."""
    return InputError(
        f"the baseline {baseline!r} of axis {axis!r} has no texts",
        expected=", ".join((*groups[:20], REST, ALL)),
        fix=f"name a baseline with --baseline {axis}=GROUP",
    )


def compare_axis(
    axis: Axis, quantities: Sequence[Quantity], baseline: str, *, level: float
) -> list[tuple[ContrastTests, int]]:
    """The gaps of every output of an axis, each with its place in them; ``(all)`` is judged as ``(rest)``."""
    against = None if baseline in (REST, ALL) else axis.groups.index(baseline)
    alike: dict[tuple[str, bytes], list[int]] = {}
    for place, quantity in enumerate(quantities):
        known = ~np.isnan(quantity.values[axis.rows])
        alike.setdefault((quantity.kind, np.packbits(known).tobytes()), []).append(place)
    # Outputs of one kind that the same texts have, as many as fit in memory together.
    most = max(1, _CELLS // max(1, axis.rows.size))
    layouts: dict[bytes, GapLayout] = {}
    gaps: dict[int, tuple[ContrastTests, int]] = {}
    for (kind, mark), places in alike.items():
        known = ~np.isnan(quantities[places[0]].values[axis.rows])
        layout = GapLayout(axis.codes[known], axis.clusters[known], len(axis.groups), against)
        layout, rows = layouts.setdefault(mark, layout), axis.rows[known]
        for part in (places[start : start + most] for start in range(0, len(places), most)):
            values = np.stack([quantities[place].values[rows] for place in part])
            many = compare_many_gaps(layout, values, is_share=kind == "share", level=level)
            gaps |= {place: (many, number) for number, place in enumerate(part)}
    return [gaps[place] for place in range(len(quantities))]


def count_nulls(axis: Axis, quantity: Quantity) -> list[Counter[str]]:
    """For each group why its texts have no value."""
    empty = np.flatnonzero(np.isnan(quantity.values[axis.rows]))
    of_empty = axis.codes[empty]
    return [
        quantity.nulls(axis.rows[empty[of_empty == code]]) if empty.size else Counter[str]()
        for code in range(len(axis.groups))
    ]


@dataclass(frozen=True, slots=True)
class GroupComparer:
    """How the groups of a run are compared."""

    model: str
    level: float = 0.95
    correction: Correction = "bh"
    seed: int = 0
    test: GapTest = "cluster"

    def groups(self, axes: Iterable[Axis], quantities: Sequence[Quantity]) -> pl.DataFrame:
        """The table of per-group estimates."""
        rows: list[Row] = []
        for axis in axes:
            for quantity, estimates in zip(quantities, self.estimate_groups(axis, quantities), strict=True):
                place = {"model": self.model, "kind": quantity.kind, **name_columns(axis, quantity)}
                nulls = count_nulls(axis, quantity)
                for group, estimate, missing in zip(axis.groups, estimates, nulls, strict=True):
                    known = {"n_null": missing.total(), "nulls": _JSON.encode(missing)}
                    rows.append({"group": group, **place, **asdict(estimate), **known})
        return pl.DataFrame(rows, schema=dict(GROUPS))

    def estimate_groups(self, axis: Axis, quantities: Sequence[Quantity]) -> list[list[Estimate]]:
        """For each output the estimate of each group."""
        shares = [quantity for quantity in quantities if quantity.kind == "share"]
        means = [quantity for quantity in quantities if quantity.kind == "mean"]
        count = len(axis.groups)
        # Draws of a bootstrap, each with a generator of its own: threads change nothing but the time.
        drawn = map_threads(lambda item: self._mean(item[0], axis, item[1]), product(means, range(count)))
        of_means = (drawn[start : start + count] for start in range(0, len(drawn), count))
        tests = compare_axis(axis, shares, REST, level=self.level)
        of_shares = (gaps.shares(place) for gaps, place in tests)
        return [next(of_shares if quantity.kind == "share" else of_means) for quantity in quantities]

    def comparisons(self, axes: Iterable[Axis], quantities: Sequence[Quantity]) -> list[Row]:
        """The comparisons with the declared baselines, corrected by family."""
        rows = [row for axis in axes for part in self.compare_outputs(axis, quantities) for row in part]
        return correct_rows(rows, self.correction)

    def pairs(self, axes: Sequence[Axis], quantities: Sequence[Quantity]) -> list[Row]:
        """Every group against every other one on the primary outputs: exploratory, one family a suite."""
        primary = [quantity for quantity in quantities if quantity.is_primary]
        wanted = sum(math.comb(len(axis.groups), 2) for axis in axes) * len(primary)
        if wanted > _MOST_PAIRS:
            raise InputError(
                f"--pairs asks for {wanted:,} comparisons of two groups",
                expected=f"at most {_MOST_PAIRS:,}",
                fix="leave out --pairs, or compare fewer groups; what was scored is kept",
            )
        rows = []
        for axis, quantity in product(axes, primary):
            how: dict[str, Any] = {"is_share": quantity.kind == "share", "level": self.level}
            nulls = dict(zip(axis.groups, count_nulls(axis, quantity), strict=True))
            for group, other in combinations(axis.groups, 2):
                a, b = (GapSide.of(quantity, axis, side) for side in split_sides(axis, group, other))
                gap, ratio = clustered_gap(a.values, a.clusters, b.values, b.clusters, **how)
                gap = retest_gap(gap, a, b, test=self.test, **how)
                missing = nulls[group] + nulls[other]
                rows.append(self._comparison(axis, group, other, quantity, gap, (a, b), ratio, missing))
                rows[-1] |= self.family(axis, "pairs")
        return correct_rows(rows, self.correction)

    def compare_outputs(
        self, axis: Axis, quantities: Sequence[Quantity], *, ratios: bool = True
    ) -> list[list[Row]]:
        """For each output the groups of an axis against its declared baseline, not yet corrected.

        Without ratios where nobody reads them.
        """
        if len(axis.groups) < 2:
            return [[] for _ in quantities]
        baseline = axis.baseline
        if baseline not in (REST, ALL, *axis.groups):
            raise missing_baseline_error(baseline, axis.name, axis.groups)
        base = None if baseline in (REST, ALL) else axis.groups.index(baseline)
        # Of two groups each against the other, one says it all.
        groups = axis.groups[:1] if base is None and len(axis.groups) == 2 else axis.groups
        outputs = []
        tests = compare_axis(axis, quantities, baseline, level=self.level)
        for quantity, (gaps, place) in zip(quantities, tests, strict=True):
            nulls, is_share = count_nulls(axis, quantity), quantity.kind == "share"
            all_nulls = sum(nulls, Counter[str]())
            # Of a share the counts are enough.
            sizes = gaps.moments.sizes.astype(int)
            counts = np.rint(gaps.moments.means[place] * sizes)
            rows = []
            for code, group in enumerate(groups):
                if group == baseline:
                    continue
                gap = gaps.difference(place, code)
                if is_share and self.test == "cluster":
                    of_sides = zip(sizes[code].tolist(), counts[code].astype(int).tolist(), strict=True)
                    a, b = (GapSide(n, yes / n if n else None) for n, yes in of_sides)
                else:
                    a, b = (GapSide.of(quantity, axis, side) for side in split_sides(axis, group, baseline))
                    if self.test != "cluster":
                        gap = retest_gap(gap, a, b, is_share=is_share, level=self.level, test=self.test)
                ratio = gaps.ratio(place, code) if ratios and baseline != ALL else None
                missing = all_nulls if base is None else nulls[code] + nulls[base]
                rows.append(self._comparison(axis, group, baseline, quantity, gap, (a, b), ratio, missing))
            outputs.append(rows)
        return outputs

    def family(self, axis: Axis, role: str) -> Row:
        """The columns that make a comparison an exploratory one of a family of its own."""
        return {"exploratory": True, "family": f"{axis.suite} / {self.model} / {role}"}

    def _mean(self, quantity: Quantity, axis: Axis, code: int) -> Estimate:
        side = GapSide.of(quantity, axis, axis.codes == code)
        if side.values.size >= _MANY_CLUSTERS and np.unique(side.clusters).size >= _MANY_CLUSTERS:
            return clustered_mean(side.values, side.clusters, level=self.level)
        rng = make_generator(
            self.seed, "group", axis.suite, axis.name, axis.groups[code], quantity.metric, quantity.output
        )
        return cluster_bootstrap_mean(side.values, side.clusters, rng=rng, level=self.level)

    def _comparison(
        self,
        axis: Axis,
        group: str,
        baseline: str,
        quantity: Quantity,
        gap: Difference,
        sides: tuple[GapSide, GapSide],
        ratio: Estimate | None,
        nulls: Counter[str],
    ) -> Row:
        """The row of a comparison, with the family it is corrected in."""
        side, other = sides
        if baseline == ALL:
            # No ratio: its interval would count the group on both sides.
            gap, ratio, other = rescale_to_all(gap), None, side.merge(other)
        size = delta = None
        if side.mean is not None and other.mean is not None:
            if quantity.kind == "share":
                # Of yes and no, P(a > b) - P(a < b) = a (1 - b) - b (1 - a): the difference itself.
                size, delta = cohens_h(side.mean, other.mean), side.mean - other.mean
            else:
                size = hedges_g(side.values, other.values).value
                delta = cliffs_delta(side.values, other.values).value
        exploratory = axis.is_exploratory(quantity)
        return {
            **name_columns(axis, quantity),
            "model": self.model,
            "group": group,
            "baseline": baseline,
            "effect": "difference",
            "n": gap.n_a,
            **{name: getattr(gap, name) for name in GAP_FIELDS},
            "n_baseline": other.n,
            "group_value": side.mean,
            "baseline_value": other.mean,
            "exploratory": exploratory,
            "family": f"{axis.suite} / {self.model} / {'exploratory' if exploratory else 'primary'}",
            "n_null": nulls.total(),
            "nulls": _JSON.encode(nulls),
            "ratio": ratio and ratio.value,
            "ratio_low": ratio and ratio.low,
            "ratio_high": ratio and ratio.high,
            "effect_size": size,
            "cliffs_delta": delta,
        }


def correct_rows(rows: list[Row], correction: Correction) -> list[Row]:
    """The rows with their ``p`` corrected within their ``family``.

    ``min_detectable`` is the gap that the corrected test detects, given what the others of its family show.
    """
    adjusted = correct_by_family([row["p"] for row in rows], [row["family"] for row in rows], correction)
    for row, p in zip(rows, adjusted, strict=True):
        row |= {"p_adjusted": p.adjusted, "family_size": p.size, "correction": correction}
        if spread := row.pop("spread", None):
            row["min_detectable"] = spread.detectable(p.decision_level)
    return rows


def split_sides(axis: Axis, group: str, baseline: str) -> tuple[Flags, Flags]:
    """The rows of a group, and those it is compared with; ``(all)`` means the rest, as in its test."""
    inside: Flags = axis.codes == axis.groups.index(group)
    return inside, ~inside if baseline in (REST, ALL) else axis.codes == axis.groups.index(baseline)


def rescale_to_all(gap: Difference) -> Difference:
    """The gap to everybody from the gap to the rest: the same question, smaller by the group's own share."""
    rest = gap.n_b / (gap.n_a + gap.n_b) if gap.n_a + gap.n_b else 0.0
    values = {name: getattr(gap, name) for name in ("estimate", "low", "high", "se")}
    scaled: dict[str, Any] = {name: value and value * rest for name, value in values.items()}
    return replace(gap, **scaled, spread=gap.spread and replace(gap.spread, scale=rest))


def omnibus_table(
    comparer: GroupComparer, axes: Iterable[Axis], quantities: Sequence[Quantity]
) -> pl.DataFrame:
    """The table of omnibus tests, corrected as families apart from the single comparisons."""
    rows: list[Row] = []
    for axis, quantity in product((axis for axis in axes if len(axis.groups) > 1), quantities):
        values = quantity.values[axis.rows]
        known = ~np.isnan(values)
        is_chi = comparer.test == "chi-square" and quantity.kind == "share"
        test = _chi_square if is_chi else clustered_omnibus
        exploratory = axis.is_exploratory(quantity)
        role = "exploratory omnibus" if exploratory else "omnibus"
        family = f"{axis.suite} / {comparer.model} / {role}"
        row = {"model": comparer.model, "exploratory": exploratory, "family": family}
        row |= asdict(test(values[known], axis.codes[known], axis.clusters[known]))
        rows.append(row | name_columns(axis, quantity))
    return pl.DataFrame(correct_rows(rows, comparer.correction), schema=dict(OMNIBUS))


def _chi_square(values: np.ndarray, codes: np.ndarray, clusters: np.ndarray) -> Omnibus:
    """The papers' test of groups by label, which assumes that texts are independent."""
    size = int(codes.max(initial=-1)) + 1
    yes = np.bincount(codes, weights=values, minlength=size)
    counts = np.stack([yes, np.bincount(codes, minlength=size) - yes], axis=1)
    result = chi_square(counts)
    n_clusters, n_groups = np.unique(clusters).size, int(np.count_nonzero(counts.sum(axis=1)))
    method = result.method if result.warning is None else f"{result.method}; {result.warning}"
    sizes = {"n": result.n, "n_clusters": n_clusters, "n_groups": n_groups, "groups_left_out": 0}
    test: dict[str, Any] = {"statistic": result.statistic, "df_between": result.df, "p": result.p, **sizes}
    return Omnibus(**test, method=method, null_reason=result.null_reason)
