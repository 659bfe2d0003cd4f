"""Gaps inside strata: does a gap hold in every context, or did the mix of contexts make it?

A stratum is any property of a prompt that is not a group: the context of a regard template, the template
itself, a column of a file. Each gap is looked at again inside every stratum, and once with the same mix of
strata on both sides. Where that adjusted gap points the other way, the gap over all texts says more about the
mix than about the groups (Simpson's paradox), and the run warns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from evenhand.audits.analysis.group_comparison import (
    GroupComparer,
    gap_fields,
    rescale_to_all,
    split_sides,
    to_fields,
)
from evenhand.audits.analysis.quantities import Axis, Flags, Ints, Quantity
from evenhand.core.records import ALL, Comparison, Prompt
from evenhand.stats.contrasts import stratified_difference
from evenhand.store.schemas import ADJUSTED, STRATA, STRATA_GROUPS

_TEMPLATE = "template"
_NONE = -1


@dataclass(frozen=True, slots=True)
class PromptStrata:
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
            part = axis.select(codes == code)
            if axis.suite == self.suite and part.rows.size:
                yield name, part


def find_strata(
    prompt_ids: Sequence[str], prompts: Mapping[str, Prompt], wanted: Mapping[str, Sequence[str]]
) -> list[PromptStrata]:
    """The strata of the texts, for each suite by each property it names; fewer than two are none."""
    listed = []
    for suite, by in ((suite, by) for suite, properties in wanted.items() for by in properties):
        of_prompt = {
            key: read_stratum(prompt, by) for key, prompt in prompts.items() if prompt.suite == suite
        }
        labels = [of_prompt.get(prompt_id) for prompt_id in prompt_ids]
        names = tuple(sorted({label for label in labels if label is not None}))
        number = {name: code for code, name in enumerate(names)}
        codes = np.array([_NONE if label is None else number[label] for label in labels], dtype=np.int64)
        if len(names) > 1:
            listed.append(PromptStrata(suite, by, names, codes))
    return listed


def read_stratum(prompt: Prompt, by: str) -> str | None:
    """The stratum of a prompt: from ``meta``, its template, or ``fills``; None where it has none."""
    if by in prompt.meta:
        return prompt.meta[by]
    return prompt.template_id if by == _TEMPLATE else prompt.fills.get(by)


def estimate_strata(
    comparer: GroupComparer,
    axes: Sequence[Axis],
    quantities: Sequence[Quantity],
    properties: Sequence[PromptStrata],
) -> pl.DataFrame:
    """The table of per-group estimates inside strata."""
    tables = [
        comparer.groups([part], quantities).with_columns(by=pl.lit(strata.by), stratum=pl.lit(name))
        for strata, axis in product(properties, axes)
        for name, part in strata.parts(axis)
    ]
    return pl.concat([pl.DataFrame(schema=dict(STRATA_GROUPS)), *tables])


def compare_strata(
    comparer: GroupComparer,
    axes: Sequence[Axis],
    quantities: Sequence[Quantity],
    properties: Sequence[PromptStrata],
) -> pl.DataFrame:
    """The table of gaps inside strata, each property corrected as families of its own."""
    comparisons: list[Comparison] = []
    known: list[dict[str, object]] = []
    for strata, axis, quantity in product(properties, axes, quantities):
        if axis.suite != strata.suite:
            continue
        for whole in comparer.compare_axis(axis, quantity):
            adjusted, disagrees = _adjust(comparer, axis, quantity, strata, whole)
            comparisons.append(adjusted)
            known.append({"by": strata.by, "stratum": ADJUSTED, "disagrees": disagrees})
        for name, part in strata.parts(axis):
            inside = comparer.compare_axis(part, quantity)
            comparisons += [replace(comparison, exploratory=True) for comparison in inside]
            known += [{"by": strata.by, "stratum": name, "disagrees": False}] * len(inside)
    roles = [f"{'adjusted for' if row['stratum'] == ADJUSTED else 'inside'} {row['by']}" for row in known]
    corrected = comparer.correct(comparisons, roles)
    rows = [to_fields(comparison) | row for comparison, row in zip(corrected, known, strict=True)]
    return pl.DataFrame(rows, schema=dict(STRATA))


def _adjust(
    comparer: GroupComparer, axis: Axis, quantity: Quantity, strata: PromptStrata, whole: Comparison
) -> tuple[Comparison, bool]:
    """The gap with the same mix of strata on both sides, and whether it contradicts the whole gap."""
    inside, other = split_sides(axis, whole.group, whole.baseline)
    values, codes = quantity.values[axis.rows], strata.codes[axis.rows]
    used: Flags = (inside | other) & ~np.isnan(values) & (codes != _NONE)
    contrast = stratified_difference(
        values[used],
        inside[used],
        codes[used],
        axis.clusters[used],
        is_share=quantity.kind == "share",
        level=comparer.level,
    )
    gap = rescale_to_all(contrast.adjusted) if whole.baseline == ALL else contrast.adjusted
    sides = ("group_value", "baseline_value", "effect_size", "cliffs_delta")
    without: dict[str, Any] = dict.fromkeys((*sides, "ratio", "ratio_low", "ratio_high"))
    known = {**gap_fields(gap), "method": f"{gap.method}, same mix of strata", "n_baseline": gap.n_b}
    return replace(whole, **without, **known, exploratory=True), contrast.disagrees


def describe_reversals(table: pl.DataFrame) -> list[str]:
    """A warning for each gap that its strata contradict, the clearest first, ten at most."""
    reversed_gaps = table.filter("disagrees").sort("p", nulls_last=True)
    warnings = [
        f"{row['group']} against {row['baseline']}, {row['metric']} {row['output']}: inside {row['by']} the "
        f"gap points the other way than over all texts: the mix of {row['by']} makes it (see strata.parquet)"
        for row in reversed_gaps.head(10).iter_rows(named=True)
    ]
    left = reversed_gaps.height - len(warnings)
    return [*warnings, *([f"{left:,} more gaps are contradicted by their strata"] if left else [])]
