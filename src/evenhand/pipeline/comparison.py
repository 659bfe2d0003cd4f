"""Scores to comparisons: every group with its interval, every gap with its test and correction."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Literal

import numpy as np
import polars as pl

from evenhand.core.errors import InputError
from evenhand.core.records import ALL, REST, Comparison, Estimate
from evenhand.core.seeds import generator
from evenhand.pipeline.quantities import Axis, Flags, Floats, Ints, Quantity
from evenhand.stats.bootstrap import cluster_bootstrap_mean
from evenhand.stats.contrasts import clustered_difference, clustered_proportion_difference
from evenhand.stats.corrections import benjamini_hochberg, holm
from evenhand.stats.effects import cohens_h, hedges_g
from evenhand.stats.intervals import clustered_proportion
from evenhand.stats.results import Difference
from evenhand.store.schemas import COMPARISONS, GROUPS

Correction = Literal["bh", "holm"]
Baselines = Mapping[tuple[str, str], str]
"""(suite, axis) to a group's name, ``(rest)`` or ``(all)``."""

_CORRECT = {"bh": benjamini_hochberg, "holm": holm}


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

    def groups(self, axes: Iterable[Axis], quantities: Sequence[Quantity]) -> pl.DataFrame:
        """The table of per-group estimates."""
        rows = [
            self._group_row(axis, code, quantity)
            for axis in axes
            for quantity in quantities
            for code in range(len(axis.groups))
        ]
        return pl.DataFrame(rows, schema=dict(GROUPS))

    def comparisons(self, axes: Iterable[Axis], quantities: Sequence[Quantity]) -> pl.DataFrame:
        """The table of comparisons with the declared baselines, corrected by family."""
        found = [item for axis in axes for quantity in quantities for item in self.compared(axis, quantity)]
        return pl.DataFrame([asdict(item) for item in self._corrected(found)], schema=dict(COMPARISONS))

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

    def _group_row(self, axis: Axis, code: int, quantity: Quantity) -> dict[str, object]:
        inside = axis.codes == code
        values, clusters, nulls = _known(quantity, axis, inside)
        estimate = self._estimate(quantity, axis, code, values, clusters)
        return {
            "suite": axis.suite,
            "model": self.model,
            "axis": axis.name,
            "group": axis.groups[code],
            "metric": quantity.metric,
            "output": quantity.output,
            "kind": quantity.kind,
            **asdict(replace(estimate, n_null=nulls)),
        }

    def _estimate(
        self, quantity: Quantity, axis: Axis, code: int, values: Floats, clusters: Ints
    ) -> Estimate:
        if quantity.kind == "share":
            return clustered_proportion(values, clusters, level=self.level)
        rng = generator(
            self.seed, "group", axis.suite, axis.name, axis.groups[code], quantity.metric, quantity.output
        )
        return cluster_bootstrap_mean(values, clusters, rng=rng, level=self.level)

    def _compare(self, axis: Axis, code: int, baseline: str, quantity: Quantity) -> Comparison:
        inside = axis.codes == code
        values, clusters, nulls = _known(quantity, axis, inside)
        others, other_clusters, other_nulls = _known(quantity, axis, _rows_of(axis, code, baseline))
        test = clustered_proportion_difference if quantity.kind == "share" else clustered_difference
        gap = test(values, clusters, others, other_clusters, level=self.level)
        if baseline == ALL:
            gap, others = against_all(gap), np.concatenate([values, others])
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
            n_baseline=others.size,
            n_null=nulls + other_nulls,
            group_value=_mean(values),
            baseline_value=_mean(others),
            effect_size=_effect_size(quantity, values, others),
            exploratory=not quantity.is_primary
            or quantity.metric in self.exploratory.get((axis.suite, axis.name), ()),
            family="",
            family_size=0,
            correction=self.correction,
            method=gap.method,
            null_reason=gap.null_reason,
        )

    def _corrected(self, found: Sequence[Comparison]) -> list[Comparison]:
        """The comparisons with corrected p-values, one family a suite and role, in their order."""
        roles = ["exploratory" if item.exploratory else "primary" for item in found]
        return self.corrected(found, roles)

    def corrected(self, found: Sequence[Comparison], roles: Sequence[str]) -> list[Comparison]:
        """The comparisons with corrected p-values, one family a suite, model and role, in their order."""
        families: dict[str, list[int]] = {}
        for place, (item, role) in enumerate(zip(found, roles, strict=True)):
            families.setdefault(f"{item.suite} / {item.model} / {role}", []).append(place)
        corrected = list(found)
        for family, places in families.items():
            adjusted = _CORRECT[self.correction]([found[place].p for place in places])
            size = sum(found[place].p is not None for place in places)
            for place, p in zip(places, adjusted, strict=True):
                corrected[place] = replace(found[place], p_adjusted=p, family=family, family_size=size)
        return corrected


def _compared(axis: Axis, baseline: str) -> range | list[int]:
    """The groups that are compared: of two groups each against the other, one says it all."""
    if baseline in (REST, ALL) and len(axis.groups) == 2:
        return range(1)
    return [code for code, group in enumerate(axis.groups) if group != baseline]


def _known(quantity: Quantity, axis: Axis, chosen: Flags) -> tuple[Floats, Ints, int]:
    """The values and clusters of the chosen rows that have a value, and how many have none."""
    values = quantity.values[axis.rows[chosen]]
    known = ~np.isnan(values)
    return values[known], axis.clusters[chosen][known], int((~known).sum())


def baseline_rows(axis: Axis, comparison: Comparison) -> Flags:
    """Which rows of an axis a comparison sets against its group; ``(all)`` means the rest, as in its test."""
    return _rows_of(axis, axis.groups.index(comparison.group), comparison.baseline)


def _rows_of(axis: Axis, code: int, baseline: str) -> Flags:
    apart = axis.codes != code if baseline in (REST, ALL) else axis.codes == axis.groups.index(baseline)
    chosen: Flags = apart
    return chosen


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


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if values.size else None


def _effect_size(quantity: Quantity, values: Floats, others: Floats) -> float | None:
    if not values.size or not others.size:
        return None
    if quantity.kind == "share":
        return cohens_h(float(values.mean()), float(others.mean()))
    return hedges_g(values, others).value
