"""Gaps inside strata: does a gap hold in every context, or did the mix of contexts make it?

A stratum is any property of a prompt that is not a group: the context of a regard template, the template
itself, a column of a file. Each gap is looked at again inside every stratum, and once with the same mix of
strata on both sides. Where that adjusted gap points the other way, the gap over all texts says more about the
mix than about the groups (Simpson's paradox), and the run warns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import polars as pl

from evenhand.core.records import ALL, Comparison, Prompt
from evenhand.pipeline.comparison import Comparer, against_all, baseline_rows
from evenhand.pipeline.quantities import Axis, Flags, Ints, Quantity
from evenhand.stats.results import Difference
from evenhand.stats.strata import stratified_difference
from evenhand.store.schemas import ADJUSTED, STRATA, STRATA_GROUPS

_TEMPLATE = "template"
_NONE = -1


@dataclass(frozen=True, slots=True)
class Strata:
    """The strata of the texts of one suite, by one property."""

    suite: str
    by: str
    names: tuple[str, ...]
    codes: Ints
    """For each text of the run the number of its stratum, or -1."""

    def parts(self, axis: Axis) -> Iterator[tuple[str, Axis]]:
        """Each stratum with the rows of the axis that lie in it; strata without any are left out."""
        codes = self.codes[axis.rows]
        for code, name in enumerate(self.names):
            part = axis.where(codes == code)
            if axis.suite == self.suite and part.rows.size:
                yield name, part


def find_strata(
    prompt_ids: Sequence[str], prompts: Mapping[str, Prompt], wanted: Mapping[str, Sequence[str]]
) -> list[Strata]:
    """The strata of the texts, for each suite by each property it names; fewer than two are none."""
    found = [
        _strata(suite, by, [prompts[prompt_id] for prompt_id in prompt_ids])
        for suite, properties in wanted.items()
        for by in properties
    ]
    return [strata for strata in found if len(strata.names) > 1]


def stratum_of(prompt: Prompt, by: str) -> str | None:
    """The stratum of a prompt: from ``meta``, its template, or ``fills``; None where it has none."""
    if by in prompt.meta:
        return prompt.meta[by]
    return prompt.template_id if by == _TEMPLATE else prompt.fills.get(by)


@dataclass(frozen=True, slots=True)
class StrataComparer:
    """How the groups of a run are looked at inside strata."""

    comparer: Comparer

    def groups(
        self, axes: Sequence[Axis], quantities: Sequence[Quantity], found: Sequence[Strata]
    ) -> pl.DataFrame:
        """The table of per-group estimates inside strata."""
        tables = [
            self.comparer.groups([part], quantities).with_columns(by=pl.lit(strata.by), stratum=pl.lit(name))
            for strata in found
            for axis in axes
            for name, part in strata.parts(axis)
        ]
        return pl.concat([pl.DataFrame(schema=dict(STRATA_GROUPS)), *tables])

    def comparisons(
        self, axes: Sequence[Axis], quantities: Sequence[Quantity], found: Sequence[Strata]
    ) -> pl.DataFrame:
        """The table of gaps inside strata, each property corrected as families of its own."""
        rows = [
            row
            for strata in found
            for axis in axes
            if axis.suite == strata.suite
            for quantity in quantities
            for row in self._of_axis(axis, quantity, strata)
        ]
        roles = [f"{'adjusted for' if row.stratum == ADJUSTED else 'inside'} {row.by}" for row in rows]
        corrected = self.comparer.corrected([row.comparison for row in rows], roles)
        full = [replace(row, comparison=item).record() for row, item in zip(rows, corrected, strict=True)]
        return pl.DataFrame(full, schema=dict(STRATA))

    def _of_axis(self, axis: Axis, quantity: Quantity, strata: Strata) -> Iterator[_Row]:
        for comparison in self.comparer.compared(axis, quantity):
            yield self._adjusted(axis, quantity, strata, comparison)
        for name, part in strata.parts(axis):
            for comparison in self.comparer.compared(part, quantity):
                yield _Row(replace(comparison, exploratory=True), strata.by, name)

    def _adjusted(self, axis: Axis, quantity: Quantity, strata: Strata, whole: Comparison) -> _Row:
        inside = axis.codes == axis.groups.index(whole.group)
        values, codes = quantity.values[axis.rows], strata.codes[axis.rows]
        used: Flags = (
            (inside | baseline_rows(axis, whole.group, whole.baseline)) & ~np.isnan(values) & (codes != _NONE)
        )
        found = stratified_difference(
            values[used],
            inside[used],
            codes[used],
            axis.clusters[used],
            is_share=quantity.kind == "share",
            level=self.comparer.level,
        )
        gap = against_all(found.adjusted) if whole.baseline == ALL else found.adjusted
        return _Row(_with_gap(whole, gap), strata.by, ADJUSTED, found.disagrees)


def reversals(table: pl.DataFrame) -> list[str]:
    """A warning for each gap that its strata contradict, the clearest first, ten at most."""
    found = table.filter("disagrees").sort("p", nulls_last=True)
    warnings = [
        f"{row['group']} against {row['baseline']}, {row['metric']} {row['output']}: inside {row['by']} the "
        f"gap points the other way than over all texts: the mix of {row['by']} makes it (see strata.parquet)"
        for row in found.head(10).iter_rows(named=True)
    ]
    left = found.height - len(warnings)
    return [*warnings, *([f"{left:,} more gaps are contradicted by their strata"] if left else [])]


@dataclass(frozen=True, slots=True)
class _Row:
    comparison: Comparison
    by: str
    stratum: str
    disagrees: bool = False

    def record(self) -> dict[str, object]:
        rest = {"by": self.by, "stratum": self.stratum, "disagrees": self.disagrees}
        return {**asdict(self.comparison), **rest}


def _strata(suite: str, by: str, prompts: Sequence[Prompt]) -> Strata:
    labels = [stratum_of(prompt, by) if prompt.suite == suite else None for prompt in prompts]
    names = tuple(sorted({label for label in labels if label is not None}))
    number = {name: code for code, name in enumerate(names)}
    codes = np.array([_NONE if label is None else number[label] for label in labels], dtype=np.int64)
    return Strata(suite, by, names, codes)


def _with_gap(whole: Comparison, gap: Difference) -> Comparison:
    return replace(
        whole,
        estimate=gap.estimate,
        low=gap.low,
        high=gap.high,
        p=gap.p,
        n=gap.n_a,
        n_baseline=gap.n_b,
        n_clusters=gap.n_clusters,
        min_detectable=gap.min_detectable,
        group_value=None,
        baseline_value=None,
        effect_size=None,
        cliffs_delta=None,
        ratio=None,
        ratio_low=None,
        ratio_high=None,
        method=f"{gap.method}, same mix of strata",
        null_reason=gap.null_reason,
        exploratory=True,
    )
