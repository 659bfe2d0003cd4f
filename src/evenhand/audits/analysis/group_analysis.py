"""Everything a run says about its groups, as tables: estimates, gaps, omnibus answers, pairs, strata."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, Literal

import numpy as np
import polars as pl

from evenhand.audits.analysis.base_rate_distances import DistanceRequest, distance_table
from evenhand.audits.analysis.group_comparison import (
    GAP_FIELDS,
    NOT_CLUSTERED,
    GroupComparer,
    omnibus_table,
    rescale_to_all,
    split_sides,
    to_table,
)
from evenhand.audits.analysis.quantities import Axis, Flags, Ints, Quantity, cross_axes, read_axes
from evenhand.audits.parallel import map_threads
from evenhand.config import SettingsOptions
from evenhand.core.records import ALL, Comparison, Prompt
from evenhand.core.seeds import make_generator
from evenhand.stats.contrasts import cluster_permutation, stratified_difference
from evenhand.store.schemas import ADJUSTED, COMPARISONS, STRATA, STRATA_GROUPS, empty_table

ALPHA = 0.05
LEAST, MOST = 2_000, 1_000_000
"""Arrangements drawn for one gap."""
MIN_TAIL_ARRANGEMENTS = 5
"""Arrangements at the bar: with fewer, the luck of the draw would decide."""
ARRANGEMENT_BUDGET = 500_000_000
"""Clusters x arrangements of all checks of a run in ``auto``: some seconds."""
AGREES, DISAGREES = "agrees", "disagrees"
_UNCHECKED = "not checked: "
TOO_MANY = f"{_UNCHECKED}the family is too large for the arrangements there are"
TOO_LONG = f"{_UNCHECKED}a family of this size takes many arrangements; --check all draws them"
_TEMPLATE = "template"
_NONE = -1


@dataclass(frozen=True, slots=True)
class AnalysisResult:
    """The tables of an analysis, by name, and what a reader must know of them."""

    tables: Mapping[str, pl.DataFrame]
    warnings: tuple[str, ...]
    axes: tuple[Axis, ...]


def analyse_groups(
    comparer: GroupComparer,
    prompt_ids: Sequence[str],
    prompts: Mapping[str, Prompt],
    quantities: Sequence[Quantity],
    *,
    suites: Mapping[str, Mapping[str, Any]],
    options: SettingsOptions,
) -> AnalysisResult:
    """The tables ``groups``, ``comparisons``, ``omnibus``, ``pairs``, ``strata``, ``strata_groups``.

    ``suites`` are described as a manifest does; what they declare and the options ask for is looked at.
    """
    # For each suite the properties of its prompts inside which gaps are looked at again.
    properties = {
        suite: dict.fromkeys((*card.get("strata", ()), *options["strata"])) for suite, card in suites.items()
    }
    requests = {
        suite: DistanceRequest(card["distances"], card.get("sides", ()))
        for suite, card in suites.items()
        if card.get("distances")
    }
    plain = axes = read_axes(prompt_ids, prompts)
    warnings: list[str] = []
    unconfirmed, reversals = list[str](), list[str]()
    if options["intersections"]:
        # Crossings are exploratory on every metric.
        crossed = cross_axes(plain, comparer.baselines)
        metrics = tuple(dict.fromkeys(quantity.metric for quantity in quantities))
        comparer = replace(
            comparer,
            baselines={**comparer.baselines, **crossed.baselines},
            exploratory={**comparer.exploratory, **dict.fromkeys(crossed.baselines, metrics)},
        )
        axes = [*plain, *crossed.axes]
        warnings += crossed.left_out
    strata = {name: empty_table(name) for name in ("strata", "strata_groups")}
    if any(properties.values()):
        listed = find_strata(prompt_ids, prompts, properties)
        strata = compare_strata(comparer, plain, quantities, listed)
        reversals = describe_reversals(strata["strata"])
    comparisons = comparer.comparisons(axes, quantities)
    supported = [
        place
        for place, item in enumerate(comparisons)
        if not item.exploratory and item.p_adjusted is not None and item.p_adjusted <= ALPHA
    ]
    if supported and options["check"] != "none" and comparer.test == "cluster":
        items = [comparisons[place] for place in supported]
        checked = check_by_permutation(comparer, items, axes, quantities, options["check"])
        unconfirmed = describe_unconfirmed(checked)
        for place, item in zip(supported, checked, strict=True):
            comparisons[place] = item
    tables = {
        "groups": comparer.groups(axes, quantities),
        "comparisons": to_table(comparisons),
        "omnibus": omnibus_table(comparer, axes, quantities),
        "pairs": to_table(comparer.pairs(plain, quantities) if options["pairs"] else ()),
        **strata,
    }
    if requests:
        tables["distances"] = distance_table(
            comparer.model,
            requests,
            prompt_ids,
            prompts,
            quantities,
            seed=comparer.seed,
            level=comparer.level,
        )
    if comparer.test in NOT_CLUSTERED:
        warnings.append(f"--test {comparer.test}: {NOT_CLUSTERED[comparer.test]}")
    warnings += unconfirmed + reversals
    return AnalysisResult(tables, tuple(warnings), tuple(axes))


def check_by_permutation(
    comparer: GroupComparer,
    supported: Sequence[Comparison],
    axes: Sequence[Axis],
    quantities: Sequence[Quantity],
    mode: Literal["auto", "all"] = "auto",
    *,
    budget: int = ARRANGEMENT_BUDGET,
) -> list[Comparison]:
    """The supported primary comparisons with the p-value and the verdict of a permutation check.

    It is a second opinion that assumes nothing but that labels can be exchanged. A test of B arrangements has
    no p-value below 1 / (B + 1), so that it can speak for a family only where B is large enough: to call one
    gap of a thousand supported takes more than 20,000. So the family decides how many arrangements are drawn.
    Where there are fewer, or they take too long, the table gives the reason.
    """
    rejected = Counter(item.family for item in supported)
    by_axis = {(axis.suite, axis.name): axis for axis in axes}
    by_output = {(quantity.metric, quantity.output): quantity for quantity in quantities}
    # What is drawn is decided first, one after the other; the draws then share the cores there are.
    draws: list[Callable[[], Comparison]] = []
    for item in supported:
        # The raw p-value at which the last supported gap of the family still is one.
        bar = ALPHA * rejected[item.family] / item.family_size
        if comparer.correction == "holm":
            bar = ALPHA / (item.family_size - rejected[item.family] + 1)
        resamples = max(LEAST, math.ceil(MIN_TAIL_ARRANGEMENTS / bar))
        work = resamples * item.n_clusters
        if resamples > MOST or (mode == "auto" and work > budget):
            draws.append(partial(replace, item, check=TOO_MANY if resamples > MOST else TOO_LONG))
            continue
        budget -= work
        axis, quantity = by_axis[item.suite, item.axis], by_output[item.metric, item.output]
        draws.append(partial(_permute, comparer.seed, item, axis, quantity, bar, resamples))
    return map_threads(lambda draw: draw(), draws)


def _permute(
    seed: int, item: Comparison, axis: Axis, quantity: Quantity, bar: float, resamples: int
) -> Comparison:
    """A gap checked against a raw p-value by so many arrangements."""
    inside, other = split_sides(axis, item.group, item.baseline)
    values = quantity.values[axis.rows]
    used = (inside | other) & ~np.isnan(values)
    result = cluster_permutation(
        values[used],
        inside[used],
        axis.clusters[used],
        rng=make_generator(seed, "check", item.suite, item.axis, item.group, item.metric, item.output),
        is_share=quantity.kind == "share",
        resamples=resamples,
    )
    if result.p is None or (result.is_exact and 2 / result.arrangements > bar):
        return replace(item, p_permutation=result.p, check=TOO_MANY)
    return replace(item, p_permutation=result.p, check=AGREES if result.p <= bar else DISAGREES)


def describe_unconfirmed(items: Sequence[Comparison]) -> list[str]:
    """Warnings where supported gaps do not stand up to the check, or could not be checked."""
    counts = Counter(item.check for item in items if item.check)
    against = [f"{item.group} {item.metric} {item.output}" for item in items if item.check == DISAGREES]
    warnings = []
    if against:
        names = f"{', '.join(against[:3])}{' ...' if len(against) > 3 else ''}"
        warnings.append(
            f"{len(against):,} of {counts[AGREES] + len(against):,} gaps larger than chance are "
            f"contradicted by the permutation check ({names}): treat them with caution"
        )
    return warnings + [
        f"{count:,} gaps larger than chance have no permutation check: {reason.removeprefix(_UNCHECKED)}"
        for reason, count in sorted(counts.items())
        if reason.startswith(_UNCHECKED)
    ]


@dataclass(frozen=True, slots=True)
class PromptStrata:
    """The strata of the texts of one suite, by one property: does a gap hold in every context?

    A stratum is any property of a prompt that is not a group: the context of a regard template, the template
    itself, a column of a file. Each gap is looked at again inside every stratum, and once with the same mix
    of strata on both sides. Where that adjusted gap points the other way, the gap over all texts says more
    about the mix than about the groups (Simpson's paradox), and the run warns.
    """

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
    prompt_ids: Sequence[str], prompts: Mapping[str, Prompt], wanted: Mapping[str, Iterable[str]]
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


def compare_strata(
    comparer: GroupComparer,
    axes: Sequence[Axis],
    quantities: Sequence[Quantity],
    properties: Sequence[PromptStrata],
) -> dict[str, pl.DataFrame]:
    """The tables of groups and of gaps inside strata; gaps of each property are families of their own."""
    groups = [
        comparer.groups([part], quantities).with_columns(by=pl.lit(strata.by), stratum=pl.lit(name))
        for strata, axis in product(properties, axes)
        for name, part in strata.parts(axis)
    ]
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
    rows = [
        {name: getattr(comparison, name) for name in COMPARISONS} | row
        for comparison, row in zip(corrected, known, strict=True)
    ]
    return {
        "strata": pl.DataFrame(rows, schema=dict(STRATA)),
        "strata_groups": pl.concat([pl.DataFrame(schema=dict(STRATA_GROUPS)), *groups]),
    }


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
    known: dict[str, Any] = {name: getattr(gap, name) for name in GAP_FIELDS}
    known |= {"n": gap.n_a, "n_baseline": gap.n_b, "method": f"{gap.method}, same mix of strata"}
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
