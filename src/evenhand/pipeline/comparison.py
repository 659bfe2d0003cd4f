"""Scores to comparisons: every group with its interval, every gap with its test and correction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations

import numpy as np
import polars as pl

from evenhand.core.errors import InputError
from evenhand.core.records import ALL, REST, Comparison, Estimate
from evenhand.core.seeds import generator
from evenhand.pipeline.families import Correction, by_family
from evenhand.pipeline.gaps import Side, Test, counted, judged, sizes
from evenhand.pipeline.quantities import Axis, Flags, Quantity
from evenhand.stats.bootstrap import cluster_bootstrap_mean
from evenhand.stats.intervals import clustered_mean, clustered_proportion
from evenhand.stats.results import Difference
from evenhand.store.schemas import COMPARISONS, GROUPS

Baselines = Mapping[tuple[str, str], str]
"""(suite, axis) to a group's name, ``(rest)`` or ``(all)``."""

_MANY_CLUSTERS = 20_000
"""From here on a bootstrap and a t interval of a mean agree in every digit that is shown."""


@dataclass(frozen=True, slots=True)
class Comparer:
    """How the groups of a run are compared."""

    model: str
    baselines: Baselines
    level: float = 0.95
    correction: Correction = "bh"
    seed: int = 0
    exploratory: Mapping[tuple[str, str], Collection[str]] = field(default_factory=dict)
    """(suite, axis) to the metrics that are exploratory there."""
    test: Test = "cluster"

    def groups(self, axes: Iterable[Axis], quantities: Sequence[Quantity]) -> pl.DataFrame:
        """The table of per-group estimates."""
        rows = [
            self._group_row(axis, code, quantity)
            for axis in axes
            for quantity in quantities
            for code in range(len(axis.groups))
        ]
        return pl.DataFrame(rows, schema=dict(GROUPS))

    def comparisons(self, axes: Iterable[Axis], quantities: Sequence[Quantity]) -> list[Comparison]:
        """The comparisons with the declared baselines, corrected by family."""
        found = [item for axis in axes for quantity in quantities for item in self.compared(axis, quantity)]
        return self.corrected(found, ["exploratory" if item.exploratory else "primary" for item in found])

    def pairs(self, axes: Iterable[Axis], quantities: Sequence[Quantity]) -> list[Comparison]:
        """Every group against every other one on the primary outputs: exploratory, one family a suite."""
        found = [
            replace(self._compare(axis, first, axis.groups[second], quantity), exploratory=True)
            for axis in axes
            for quantity in quantities
            if quantity.is_primary
            for first, second in combinations(range(len(axis.groups)), 2)
        ]
        return self.corrected(found, ["pairs"] * len(found))

    def compared(self, axis: Axis, quantity: Quantity) -> list[Comparison]:
        """The groups of an axis against its declared baseline, not yet corrected."""
        if len(axis.groups) < 2:
            return []
        baseline = self.baseline(axis)
        return [self._compare(axis, code, baseline, quantity) for code in _compared(axis, baseline)]

    def baseline(self, axis: Axis) -> str:
        """The declared baseline of an axis; an error if no text belongs to it."""
        name = self.baselines.get((axis.suite, axis.name), REST)
        if name in (REST, ALL) or name in axis.groups:
            return name
        raise InputError(
            f"the baseline {name!r} of axis {axis.name!r} has no texts",
            accepted=", ".join((*axis.groups[:20], REST, ALL)),
            todo=f"name a baseline with --baseline {axis.name}=GROUP",
        )

    def is_exploratory(self, axis: Axis, quantity: Quantity) -> bool:
        """Whether comparisons of this output on this axis stand outside the primary family."""
        return not quantity.is_primary or quantity.metric in self.exploratory.get((axis.suite, axis.name), ())

    def corrected(self, found: Sequence[Comparison], roles: Sequence[str]) -> list[Comparison]:
        """The comparisons with corrected p-values, one family a suite, model and role, in their order."""
        names = [f"{item.suite} / {item.model} / {role}" for item, role in zip(found, roles, strict=True)]
        adjusted = by_family([item.p for item in found], names, self.correction)
        return [
            replace(item, p_adjusted=p.adjusted, family=p.family, family_size=p.size)
            for item, p in zip(found, adjusted, strict=True)
        ]

    def _group_row(self, axis: Axis, code: int, quantity: Quantity) -> dict[str, object]:
        side = Side.of(quantity, axis, axis.codes == code)
        estimate = self._estimate(quantity, axis, code, side)
        return {
            "suite": axis.suite,
            "model": self.model,
            "axis": axis.name,
            "group": axis.groups[code],
            "metric": quantity.metric,
            "output": quantity.output,
            "kind": quantity.kind,
            **asdict(replace(estimate, n_null=side.nulls.total())),
            "nulls": counted(side.nulls),
        }

    def _estimate(self, quantity: Quantity, axis: Axis, code: int, side: Side) -> Estimate:
        if quantity.kind == "share":
            return clustered_proportion(side.values, side.clusters, level=self.level)
        if side.values.size >= _MANY_CLUSTERS and np.unique(side.clusters).size >= _MANY_CLUSTERS:
            return clustered_mean(side.values, side.clusters, level=self.level)
        rng = generator(
            self.seed, "group", axis.suite, axis.name, axis.groups[code], quantity.metric, quantity.output
        )
        return cluster_bootstrap_mean(side.values, side.clusters, rng=rng, level=self.level)

    def _compare(self, axis: Axis, code: int, baseline: str, quantity: Quantity) -> Comparison:
        group = Side.of(quantity, axis, axis.codes == code)
        other = Side.of(quantity, axis, _rows_of(axis, code, baseline))
        gap, ratio = judged(quantity, group, other, level=self.level, test=self.test)
        if baseline == ALL:
            # No ratio: its interval would count the group on both sides.
            everybody = group, _joined(group, other)
            return self._comparison(axis, code, baseline, quantity, against_all(gap), everybody)
        found = self._comparison(axis, code, baseline, quantity, gap, (group, other))
        return replace(found, ratio=ratio.value, ratio_low=ratio.low, ratio_high=ratio.high)

    def _comparison(
        self,
        axis: Axis,
        code: int,
        baseline: str,
        quantity: Quantity,
        gap: Difference,
        sides: tuple[Side, Side],
    ) -> Comparison:
        group, other = sides
        nulls = group.nulls + other.nulls if baseline != ALL else other.nulls
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
            n_baseline=other.values.size,
            n_null=nulls.total(),
            group_value=group.mean,
            baseline_value=other.mean,
            exploratory=self.is_exploratory(axis, quantity),
            family="",
            family_size=0,
            correction=self.correction,
            method=gap.method,
            null_reason=gap.null_reason,
            nulls=counted(nulls),
            **sizes(quantity, group, other)._asdict(),
        )


def as_table(found: Iterable[Comparison]) -> pl.DataFrame:
    """Comparisons as a table."""
    return pl.DataFrame([asdict(item) for item in found], schema=dict(COMPARISONS))


def baseline_rows(axis: Axis, group: str, baseline: str) -> Flags:
    """Which rows of an axis stand against a group; ``(all)`` means the rest, as in its test."""
    return _rows_of(axis, axis.groups.index(group), baseline)


def against_all(gap: Difference) -> Difference:
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


def _compared(axis: Axis, baseline: str) -> range | list[int]:
    """The groups that are compared: of two groups each against the other, one says it all."""
    if baseline in (REST, ALL) and len(axis.groups) == 2:
        return range(1)
    return [code for code, group in enumerate(axis.groups) if group != baseline]


def _rows_of(axis: Axis, code: int, baseline: str) -> Flags:
    apart = axis.codes != code if baseline in (REST, ALL) else axis.codes == axis.groups.index(baseline)
    chosen: Flags = apart
    return chosen


def _joined(group: Side, rest: Side) -> Side:
    return Side(
        np.concatenate([group.values, rest.values]),
        np.concatenate([group.clusters, rest.clusters]),
        Counter(group.nulls + rest.nulls),
    )
