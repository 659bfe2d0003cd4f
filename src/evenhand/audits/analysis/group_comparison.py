"""Scores to comparisons: every group with its interval, every gap with its test and correction."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import combinations

import numpy as np
import polars as pl

from evenhand.audits.analysis.gaps import (
    GapSide,
    GapTest,
    OutputGaps,
    ShareSide,
    compare_axis,
    count_nulls,
    effect_sizes,
    estimate_gap,
    nulls_to_json,
    retest_gap,
)
from evenhand.audits.analysis.quantities import Axis, Flags, Quantity
from evenhand.audits.parallel import map_threads
from evenhand.core.errors import InputError
from evenhand.core.records import ALL, REST, Comparison, Estimate
from evenhand.core.seeds import make_generator
from evenhand.stats.bootstrap import cluster_bootstrap_mean
from evenhand.stats.contrasts import clustered_omnibus
from evenhand.stats.corrections import Correction, correct_by_family
from evenhand.stats.hypothesis_tests import chi_square
from evenhand.stats.intervals import clustered_mean
from evenhand.stats.results import Difference
from evenhand.store.schemas import COMPARISONS, GROUPS, OMNIBUS

Baselines = Mapping[tuple[str, str], str]
"""(suite, axis) to a group's name, ``(rest)`` or ``(all)``."""

_MOST_PAIRS = 100_000
"""Comparisons of two groups at most: minutes of work, and a table nobody reads."""
_MANY_CLUSTERS = 20_000
"""From here on a bootstrap and a t interval of a mean agree in every digit that is shown."""


@dataclass(frozen=True, slots=True)
class GroupComparer:
    """How the groups of a run are compared."""

    model: str
    baselines: Baselines
    level: float = 0.95
    correction: Correction = "bh"
    seed: int = 0
    exploratory: Mapping[tuple[str, str], Collection[str]] = field(default_factory=dict)
    """(suite, axis) to the metrics that are exploratory there."""
    test: GapTest = "cluster"

    def groups(self, axes: Iterable[Axis], quantities: Sequence[Quantity]) -> pl.DataFrame:
        """The table of per-group estimates."""
        rows = [row for axis in axes for part in self.group_rows(axis, quantities) for row in part]
        return pl.DataFrame(rows, schema=dict(GROUPS))

    def group_rows(self, axis: Axis, quantities: Sequence[Quantity]) -> list[list[dict[str, object]]]:
        """For each output one row a group: its estimate and where that comes from."""
        shares = [quantity for quantity in quantities if quantity.kind == "share"]
        gaps = iter(compare_axis(axis, shares, REST, level=self.level))
        codes = range(len(axis.groups))
        # Draws of a bootstrap, each with a generator of its own: threads change nothing but the time.
        means = iter(
            map_threads(
                lambda item: self._mean(item[0], axis, item[1]),
                [(quantity, code) for quantity in quantities if quantity.kind == "mean" for code in codes],
            )
        )
        rows = []
        for quantity in quantities:
            found = next(gaps).shares() if quantity.kind == "share" else [next(means) for _ in codes]
            missing = count_nulls(axis, quantity)
            rows.append([self._group_row(axis, code, quantity, found[code], missing[code]) for code in codes])
        return rows

    def comparisons(self, axes: Iterable[Axis], quantities: Sequence[Quantity]) -> list[Comparison]:
        """The comparisons with the declared baselines, corrected by family."""
        found = [item for axis in axes for part in self.compare_outputs(axis, quantities) for item in part]
        return self.correct(found, ["exploratory" if item.exploratory else "primary" for item in found])

    def pairs(self, axes: Sequence[Axis], quantities: Sequence[Quantity]) -> list[Comparison]:
        """Every group against every other one on the primary outputs: exploratory, one family a suite."""
        outputs = sum(quantity.is_primary for quantity in quantities)
        wanted = sum(math.comb(len(axis.groups), 2) for axis in axes) * outputs
        if wanted > _MOST_PAIRS:
            raise InputError(
                f"--pairs asks for {wanted:,} comparisons of two groups",
                expected=f"at most {_MOST_PAIRS:,}",
                fix="leave out --pairs, or compare fewer groups; what was scored is kept",
            )
        found = [
            replace(self._compare(axis, first, axis.groups[second], quantity), exploratory=True)
            for axis in axes
            for quantity in quantities
            if quantity.is_primary
            for first, second in combinations(range(len(axis.groups)), 2)
        ]
        return self.correct(found, ["pairs"] * len(found))

    def compare_axis(self, axis: Axis, quantity: Quantity) -> list[Comparison]:
        """The groups of an axis against its declared baseline, not yet corrected."""
        return self.compare_outputs(axis, [quantity])[0]

    def compare_outputs(
        self, axis: Axis, quantities: Sequence[Quantity], *, ratios: bool = True
    ) -> list[list[Comparison]]:
        """`compared` of each output, from one pass; without ratios where nobody reads them."""
        if len(axis.groups) < 2:
            return [[] for _ in quantities]
        baseline = self.baseline(axis)
        found = compare_axis(axis, quantities, baseline, level=self.level)
        return [
            list(self._of_output(axis, baseline, quantity, gaps, ratios=ratios))
            for quantity, gaps in zip(quantities, found, strict=True)
        ]

    def baseline(self, axis: Axis) -> str:
        """The declared baseline of an axis; an error if no text belongs to it."""
        name = self.baselines.get((axis.suite, axis.name), REST)
        if name in (REST, ALL) or name in axis.groups:
            return name
        raise InputError(
            f"the baseline {name!r} of axis {axis.name!r} has no texts",
            expected=", ".join((*axis.groups[:20], REST, ALL)),
            fix=f"name a baseline with --baseline {axis.name}=GROUP",
        )

    def is_exploratory(self, axis: Axis, quantity: Quantity) -> bool:
        """Whether comparisons of this output on this axis stand outside the primary family."""
        return not quantity.is_primary or quantity.metric in self.exploratory.get((axis.suite, axis.name), ())

    def correct(self, found: Sequence[Comparison], roles: Sequence[str]) -> list[Comparison]:
        """The comparisons with corrected p-values, one family a suite, model and role, in their order."""
        names = [f"{item.suite} / {item.model} / {role}" for item, role in zip(found, roles, strict=True)]
        adjusted = correct_by_family([item.p for item in found], names, self.correction)
        return [
            replace(item, p_adjusted=p.adjusted, family=p.family, family_size=p.size)
            for item, p in zip(found, adjusted, strict=True)
        ]

    def _group_row(
        self, axis: Axis, code: int, quantity: Quantity, estimate: Estimate, nulls: Counter[str]
    ) -> dict[str, object]:
        return {
            "suite": axis.suite,
            "model": self.model,
            "axis": axis.name,
            "group": axis.groups[code],
            "metric": quantity.metric,
            "output": quantity.output,
            "kind": quantity.kind,
            **to_fields(replace(estimate, n_null=nulls.total())),
            "nulls": nulls_to_json(nulls),
        }

    def _mean(self, quantity: Quantity, axis: Axis, code: int) -> Estimate:
        side = GapSide.of(quantity, axis, axis.codes == code)
        if side.values.size >= _MANY_CLUSTERS and np.unique(side.clusters).size >= _MANY_CLUSTERS:
            return clustered_mean(side.values, side.clusters, level=self.level)
        rng = make_generator(
            self.seed, "group", axis.suite, axis.name, axis.groups[code], quantity.metric, quantity.output
        )
        return cluster_bootstrap_mean(side.values, side.clusters, rng=rng, level=self.level)

    def _compare(self, axis: Axis, code: int, baseline: str, quantity: Quantity) -> Comparison:
        """One group against one other, on its own."""
        sides = (
            GapSide.of(quantity, axis, axis.codes == code),
            GapSide.of(quantity, axis, _rows_of(axis, code, baseline)),
        )
        gap, ratio = estimate_gap(quantity, *sides, level=self.level, test=self.test)
        return self._comparison(axis, code, baseline, quantity, gap, sides, ratio)

    def _of_output(
        self, axis: Axis, baseline: str, quantity: Quantity, gaps: OutputGaps, *, ratios: bool
    ) -> Iterator[Comparison]:
        """Every group of an axis on one output."""
        is_share = quantity.kind == "share"
        nulls = count_nulls(axis, quantity)
        every = sum(nulls, Counter[str]())
        for code in _compared_groups(axis, baseline):
            gap = gaps.difference(code)
            sides: tuple[GapSide, GapSide] | tuple[ShareSide, ShareSide]
            if is_share and self.test == "cluster":
                missing = (
                    every - nulls[code] if baseline in (REST, ALL) else nulls[axis.groups.index(baseline)]
                )
                inside, outside = gaps.sides(code)
                sides = ShareSide(*inside, nulls[code]), ShareSide(*outside, missing)
            else:
                sides = (
                    GapSide.of(quantity, axis, axis.codes == code),
                    GapSide.of(quantity, axis, _rows_of(axis, code, baseline)),
                )
                gap = retest_gap(gap, *sides, is_share=is_share, level=self.level, test=self.test)
            ratio = gaps.ratio(code) if ratios and baseline != ALL else None
            yield self._comparison(axis, code, baseline, quantity, gap, sides, ratio)

    def _comparison(
        self,
        axis: Axis,
        code: int,
        baseline: str,
        quantity: Quantity,
        gap: Difference,
        sides: tuple[GapSide, GapSide] | tuple[ShareSide, ShareSide],
        ratio: Estimate | None,
    ) -> Comparison:
        group, other = sides
        nulls = group.nulls + other.nulls
        if baseline == ALL:
            # No ratio: its interval would count the group on both sides.
            gap, ratio, other = rescale_to_all(gap), None, group.merge(other)  # type: ignore[arg-type]
        return Comparison(
            suite=axis.suite,
            model=self.model,
            axis=axis.name,
            group=axis.groups[code],
            baseline=baseline,
            metric=quantity.metric,
            output=quantity.output,
            effect="difference",
            estimate=gap.estimate,
            low=gap.low,
            high=gap.high,
            p=gap.p,
            p_adjusted=None,
            n=gap.n_a,
            n_clusters=gap.n_clusters,
            min_detectable=gap.min_detectable,
            n_baseline=other.n,
            n_null=nulls.total(),
            group_value=group.mean,
            baseline_value=other.mean,
            exploratory=self.is_exploratory(axis, quantity),
            family="",
            family_size=0,
            correction=self.correction,
            method=gap.method,
            null_reason=gap.null_reason,
            nulls=nulls_to_json(nulls),
            ratio=None if ratio is None else ratio.value,
            ratio_low=None if ratio is None else ratio.low,
            ratio_high=None if ratio is None else ratio.high,
            **effect_sizes(quantity, group, other)._asdict(),
        )


def to_table(found: Iterable[Comparison]) -> pl.DataFrame:
    """Comparisons as a table."""
    return pl.DataFrame([to_fields(item) for item in found], schema=dict(COMPARISONS))


def to_fields(record: Comparison | Estimate) -> dict[str, object]:
    """The fields of a flat record by name: `dataclasses.asdict` also looks into them, and takes longer."""
    return {field.name: getattr(record, field.name) for field in fields(record)}


def baseline_rows(axis: Axis, group: str, baseline: str) -> Flags:
    """Which rows of an axis stand against a group; ``(all)`` means the rest, as in its test."""
    return _rows_of(axis, axis.groups.index(group), baseline)


def rescale_to_all(gap: Difference) -> Difference:
    """The gap to everybody from the gap to the rest: the same question, smaller by the group's own share."""
    rest = gap.n_b / (gap.n_a + gap.n_b) if gap.n_a + gap.n_b else 0.0

    def scaled(value: float | None) -> float | None:
        return None if value is None else value * rest

    return replace(
        gap,
        estimate=scaled(gap.estimate),
        low=scaled(gap.low),
        high=scaled(gap.high),
        se=scaled(gap.se),
        min_detectable=scaled(gap.min_detectable),
    )


def _compared_groups(axis: Axis, baseline: str) -> range | list[int]:
    """The groups that are compared: of two groups each against the other, one says it all."""
    if baseline in (REST, ALL) and len(axis.groups) == 2:
        return range(1)
    return [code for code, group in enumerate(axis.groups) if group != baseline]


def _rows_of(axis: Axis, code: int, baseline: str) -> Flags:
    apart = axis.codes != code if baseline in (REST, ALL) else axis.codes == axis.groups.index(baseline)
    chosen: Flags = apart
    return chosen


def omnibus_table(
    comparer: GroupComparer, axes: Iterable[Axis], quantities: Sequence[Quantity]
) -> pl.DataFrame:
    """The table of omnibus tests, corrected as families apart from the single comparisons."""
    rows = [
        _row(comparer, axis, quantity) for axis in axes if len(axis.groups) > 1 for quantity in quantities
    ]
    families = [_family(row) for row in rows]
    p_values = [row["p"] if isinstance(row["p"], float) else None for row in rows]
    adjusted = correct_by_family(p_values, families, comparer.correction)
    for row, p in zip(rows, adjusted, strict=True):
        row.update(p_adjusted=p.adjusted, family=p.family, family_size=p.size)
    return pl.DataFrame(rows, schema=dict(OMNIBUS))


def _family(row: dict[str, object]) -> str:
    role = "exploratory omnibus" if row["exploratory"] else "omnibus"
    return f"{row['suite']} / {row['model']} / {role}"


def _row(comparer: GroupComparer, axis: Axis, quantity: Quantity) -> dict[str, object]:
    values = quantity.values[axis.rows]
    known = ~np.isnan(values)
    codes, clusters = axis.codes[known], axis.clusters[known]
    found = _chi_square if comparer.test == "chi-square" and quantity.kind == "share" else _clustered_test
    return {
        "suite": axis.suite,
        "model": comparer.model,
        "axis": axis.name,
        "metric": quantity.metric,
        "output": quantity.output,
        "exploratory": comparer.is_exploratory(axis, quantity),
        "correction": comparer.correction,
        **found(values[known], codes, clusters),
    }


def _clustered_test(values: np.ndarray, codes: np.ndarray, clusters: np.ndarray) -> dict[str, object]:
    found = clustered_omnibus(values, codes, clusters)
    return {
        "statistic": found.statistic,
        "df_between": found.df_between,
        "df_error": found.df_error,
        "p": found.p,
        "n": found.n,
        "n_clusters": found.n_clusters,
        "n_groups": found.n_groups,
        "groups_left_out": found.groups_left_out,
        "method": found.method,
        "null_reason": found.null_reason,
    }


def _chi_square(values: np.ndarray, codes: np.ndarray, clusters: np.ndarray) -> dict[str, object]:
    """The papers' test of groups by label: every text counts as independent."""
    size = int(codes.max(initial=-1)) + 1
    yes = np.bincount(codes, weights=values, minlength=size)
    counts = np.stack([yes, np.bincount(codes, minlength=size) - yes], axis=1)
    found = chi_square(counts)
    return {
        "statistic": found.statistic,
        "df_between": found.df,
        "df_error": None,
        "p": found.p,
        "n": found.n,
        "n_clusters": np.unique(clusters).size,
        "n_groups": int(np.count_nonzero(counts.sum(axis=1))),
        "groups_left_out": 0,
        "method": found.method if found.warning is None else f"{found.method}; {found.warning}",
        "null_reason": found.null_reason,
    }
