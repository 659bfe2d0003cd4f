"""Everything a run says about its groups, as tables: estimates, gaps, omnibus answers, pairs, strata."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
    correct_rows,
    omnibus_table,
    rescale_to_all,
    split_sides,
)
from evenhand.audits.analysis.quantities import Axis, Flags, Ints, Quantity, Row, cross_axes, read_axes
from evenhand.audits.parallel import map_threads
from evenhand.config import SettingsOptions
from evenhand.core.records import ALL, Prompt
from evenhand.core.seeds import make_generator
from evenhand.stats.contrasts import cluster_permutation, stratified_difference
from evenhand.stats.corrections import ALPHA
from evenhand.store.schemas import ADJUSTED, COMPARISONS, STRATA, STRATA_GROUPS, empty_table

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
_UNCHECKED_WORDS = {
    TOO_MANY: "so many comparisons are corrected together that permuting their clusters cannot reach the "
    "p-value that decides; compare fewer outputs or groups, or add prompts"
}
"""Where a warning says more than the table."""
_TEMPLATE = "template"


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
    plain = axes = read_axes(prompt_ids, prompts, suites, options["baseline"])
    warnings: list[str] = []
    if options["intersections"]:
        crossed, warnings = cross_axes(plain, {quantity.metric for quantity in quantities})
        axes = [*plain, *crossed]
    if comparer.test in NOT_CLUSTERED:
        warnings.append(f"--test {comparer.test}: {NOT_CLUSTERED[comparer.test]}")
    comparisons = comparer.comparisons(axes, quantities)
    supported = [
        row
        for row in comparisons
        if not row["exploratory"] and row["p_adjusted"] is not None and row["p_adjusted"] <= ALPHA
    ]
    if supported and options["check"] != "none" and comparer.test == "cluster":
        check_by_permutation(comparer, supported, axes, quantities, options["check"])
        warnings += describe_unconfirmed(supported)
    pairs = comparer.pairs(plain, quantities) if options["pairs"] else []
    tables = {
        "groups": comparer.groups(axes, quantities),
        "comparisons": pl.DataFrame(comparisons, schema=dict(COMPARISONS)),
        "omnibus": omnibus_table(comparer, axes, quantities),
        "pairs": pl.DataFrame(pairs, schema=dict(COMPARISONS)),
        "strata": empty_table("strata"),
        "strata_groups": empty_table("strata_groups"),
    }
    if any(properties.values()):
        strata = find_strata(prompt_ids, prompts, properties)
        tables |= compare_strata(comparer, plain, quantities, strata)
        warnings += describe_reversals(tables["strata"])
    if requests:
        tables["distances"] = distance_table(comparer, requests, prompt_ids, prompts, quantities)
    return AnalysisResult(tables, tuple(warnings), tuple(axes))


def check_by_permutation(
    comparer: GroupComparer,
    supported: Sequence[Row],
    axes: Sequence[Axis],
    quantities: Sequence[Quantity],
    mode: Literal["auto", "all"] = "auto",
    *,
    budget: int = ARRANGEMENT_BUDGET,
) -> None:
    """Give the supported primary comparisons the p-value and the verdict of a permutation check.

    It is a second opinion that assumes nothing but that labels can be exchanged. A test of B arrangements has
    no p-value below 1 / (B + 1), so that it can speak for a family only where B is large enough: to call one
    gap of a thousand supported takes more than 20,000. So the family decides how many arrangements are drawn.
    Where there are fewer, or they take too long, the table gives the reason.
    """
    rejected = Counter(row["family"] for row in supported)
    by_axis = {(axis.suite, axis.name): axis for axis in axes}
    by_output = {(quantity.metric, quantity.output): quantity for quantity in quantities}
    # What is drawn is decided first, one after the other; the draws then share the cores there are.
    draws: list[Callable[[], None]] = []
    for row in supported:
        # The raw p-value at which the last supported gap of the family still is one.
        bar = ALPHA * rejected[row["family"]] / row["family_size"]
        if comparer.correction == "holm":
            bar = ALPHA / (row["family_size"] - rejected[row["family"]] + 1)
        resamples = max(LEAST, math.ceil(MIN_TAIL_ARRANGEMENTS / bar))
        work = resamples * row["n_clusters"]
        if resamples > MOST or (mode == "auto" and work > budget):
            row["check"] = TOO_MANY if resamples > MOST else TOO_LONG
            continue
        budget -= work
        axis, quantity = by_axis[row["suite"], row["axis"]], by_output[row["metric"], row["output"]]
        draws.append(partial(_permute, comparer.seed, row, axis, quantity, bar, resamples))
    map_threads(lambda draw: draw(), draws)


def _permute(seed: int, row: Row, axis: Axis, quantity: Quantity, bar: float, resamples: int) -> None:
    """Check a gap against a raw p-value by so many arrangements."""
    inside, other = split_sides(axis, row["group"], row["baseline"])
    values = quantity.values[axis.rows]
    used = (inside | other) & ~np.isnan(values)
    names = ("suite", "axis", "group", "metric", "output")
    rng, is_share = make_generator(seed, "check", *(row[name] for name in names)), quantity.kind == "share"
    rows = (values[used], inside[used], axis.clusters[used])
    result = cluster_permutation(*rows, rng=rng, is_share=is_share, resamples=resamples)
    row["p_permutation"] = result.p
    if result.p is None or (result.is_exact and 2 / result.arrangements > bar):
        row["check"] = TOO_MANY
    else:
        row["check"] = AGREES if result.p <= bar else DISAGREES


def describe_unconfirmed(rows: Sequence[Row]) -> list[str]:
    """Warnings where supported gaps do not stand up to the check, or could not be checked."""
    counts = Counter(row["check"] for row in rows)
    against = [f"{row['group']} {row['metric']} {row['output']}" for row in rows if row["check"] == DISAGREES]
    warnings = []
    if against:
        names = f"{', '.join(against[:3])}{' ...' if len(against) > 3 else ''}"
        warnings.append(
            f"{len(against):,} of {counts[AGREES] + len(against):,} gaps larger than chance are "
            f"contradicted by the permutation check ({names}): treat them with caution"
        )
    return warnings + [
        f"{count:,} gaps larger than chance have no permutation check: "
        f"{_UNCHECKED_WORDS.get(reason, reason.removeprefix(_UNCHECKED))}"
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
    labels: pl.Series
    """For each text of the run its stratum; null where it has none."""

    def parts(self, axis: Axis) -> Iterator[tuple[str, Axis]]:
        """Each stratum with the rows of the axis that lie in it; strata without any are left out."""
        labels = self.labels.gather(axis.rows)
        for name in labels.drop_nulls().unique().sort():
            yield name, axis.select(labels.eq_missing(name).to_numpy())


def find_strata(
    prompt_ids: Sequence[str], prompts: Mapping[str, Prompt], wanted: Mapping[str, Iterable[str]]
) -> list[PromptStrata]:
    """The strata of the texts, for each suite by each property it names; fewer than two are none."""
    listed = []
    for suite, by in [(suite, by) for suite, properties in wanted.items() for by in properties]:
        of_prompt = {
            key: read_stratum(prompt, by) for key, prompt in prompts.items() if prompt.suite == suite
        }
        labels = pl.Series([of_prompt.get(prompt_id) for prompt_id in prompt_ids], dtype=pl.String)
        if labels.drop_nulls().n_unique() > 1:
            listed.append(PromptStrata(suite, by, labels))
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
    groups = [pl.DataFrame(schema=dict(STRATA_GROUPS))]
    rows: list[Row] = []
    for strata, axis in product(properties, axes):
        if axis.suite != strata.suite:
            continue
        inside = {"by": strata.by, "disagrees": False, **comparer.family(axis, f"inside {strata.by}")}
        # Numbered once for all gaps, in the order of their names, from 1.
        codes = strata.labels.gather(axis.rows).rank("dense").fill_null(0).to_numpy()
        parts = dict(strata.parts(axis))
        gaps = {name: comparer.compare_outputs(part, quantities) for name, part in parts.items()}
        for name, part in parts.items():
            estimates = comparer.groups([part], quantities)
            groups.append(estimates.with_columns(by=pl.lit(strata.by), stratum=pl.lit(name)))
        for place, wholes in enumerate(comparer.compare_outputs(axis, quantities)):
            rows += [_adjust(comparer, axis, quantities[place], codes, strata.by, whole) for whole in wholes]
            rows += [row | inside | {"stratum": name} for name in parts for row in gaps[name][place]]
    corrected = pl.DataFrame(correct_rows(rows, comparer.correction), schema=dict(STRATA))
    return {"strata": corrected, "strata_groups": pl.concat(groups)}


def _adjust(comparer: GroupComparer, axis: Axis, quantity: Quantity, codes: Ints, by: str, whole: Row) -> Row:
    """The gap with the same mix of strata on both sides, and whether it contradicts the whole gap.

    ``codes`` number the strata of the rows of the axis; 0 is none.
    """
    inside, other = split_sides(axis, whole["group"], whole["baseline"])
    values = quantity.values[axis.rows]
    used: Flags = (inside | other) & ~np.isnan(values) & (codes > 0)
    rows, is_share = (values[used], inside[used], codes[used], axis.clusters[used]), quantity.kind == "share"
    contrast = stratified_difference(*rows, is_share=is_share, level=comparer.level)
    gap = rescale_to_all(contrast.adjusted) if whole["baseline"] == ALL else contrast.adjusted
    sides = ("group_value", "baseline_value", "effect_size", "cliffs_delta")
    return {
        **whole,
        **dict.fromkeys((*sides, "ratio", "ratio_low", "ratio_high")),
        **{name: getattr(gap, name) for name in GAP_FIELDS},
        **comparer.family(axis, f"adjusted for {by}"),
        "n": gap.n_a,
        "n_baseline": gap.n_b,
        "method": f"{gap.method}, same mix of strata",
        "by": by,
        "stratum": ADJUSTED,
        "disagrees": contrast.disagrees,
    }


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
