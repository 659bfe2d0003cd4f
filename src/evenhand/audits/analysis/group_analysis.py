"""Everything a run says about its groups, as tables: estimates, gaps, omnibus answers, pairs, strata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from evenhand.audits.analysis.base_rate_distances import DistanceRequest, distance_table
from evenhand.audits.analysis.group_comparison import NOT_CLUSTERED, GroupComparer, omnibus_table, to_table
from evenhand.audits.analysis.permutation_checks import CheckMode, check_by_permutation, describe_unconfirmed
from evenhand.audits.analysis.quantities import Axis, Quantity, cross_axes, read_axes
from evenhand.audits.analysis.strata import compare_strata, describe_reversals, estimate_strata, find_strata
from evenhand.core.records import Prompt


@dataclass(frozen=True, slots=True)
class AnalysisResult:
    """The tables of an analysis, by name, and what a reader must know of them."""

    tables: Mapping[str, pl.DataFrame]
    warnings: tuple[str, ...]
    axes: tuple[Axis, ...]


@dataclass(frozen=True, slots=True)
class GroupAnalysis:
    """How a run is analysed."""

    comparer: GroupComparer
    strata: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """For each suite the properties of its prompts inside which gaps are looked at again."""
    pairs: bool = False
    """Compare every group with every other one too."""
    intersections: bool = True
    """Cross axes where texts speak of both."""
    check: CheckMode = "auto"
    distances: Mapping[str, DistanceRequest] = field(default_factory=dict)
    """For each suite that asks for them, the outputs whose distributions are compared."""

    def run(
        self, prompt_ids: Sequence[str], prompts: Mapping[str, Prompt], quantities: Sequence[Quantity]
    ) -> AnalysisResult:
        """The tables ``groups``, ``comparisons``, ``omnibus``, ``pairs``, ``strata``, ``strata_groups``."""
        comparer = self.comparer
        plain = axes = read_axes(prompt_ids, prompts)
        warnings: list[str] = []
        if self.intersections:
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
        compared = comparer.comparisons(axes, quantities)
        comparisons = check_by_permutation(comparer, compared, axes, quantities, self.check)
        strata = find_strata(prompt_ids, prompts, self.strata)
        tables = {
            "groups": comparer.groups(axes, quantities),
            "comparisons": to_table(comparisons),
            "omnibus": omnibus_table(comparer, axes, quantities),
            "pairs": to_table(comparer.pairs(plain, quantities) if self.pairs else ()),
            "strata": compare_strata(comparer, plain, quantities, strata),
            "strata_groups": estimate_strata(comparer, plain, quantities, strata),
        }
        if self.distances:
            tables["distances"] = distance_table(
                comparer.model,
                self.distances,
                prompt_ids,
                prompts,
                quantities,
                seed=comparer.seed,
                level=comparer.level,
            )
        if comparer.test in NOT_CLUSTERED:
            warnings.append(f"--test {comparer.test}: {NOT_CLUSTERED[comparer.test]}")
        warnings += describe_unconfirmed(comparisons)
        warnings += describe_reversals(tables["strata"])
        return AnalysisResult(tables, tuple(warnings), tuple(axes))
