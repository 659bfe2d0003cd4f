"""Everything a run says about its groups, as tables: estimates, gaps, omnibus answers, pairs, strata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from evenhand.audits.analysis.base_rate_distances import DistanceRequest, distance_table
from evenhand.audits.analysis.cut_sensitivity import cut_table, distribution_table
from evenhand.audits.analysis.example_texts import example_table, explanation_table
from evenhand.audits.analysis.gaps import NOT_CLUSTERED
from evenhand.audits.analysis.group_comparison import GroupComparer, omnibus_table, to_table
from evenhand.audits.analysis.permutation_checks import CheckMode, PermutationChecker, describe_unconfirmed
from evenhand.audits.analysis.quantities import Axis, Quantity, read_axes
from evenhand.audits.analysis.strata import StratumComparer, cross_axes, describe_reversals, find_strata
from evenhand.core.protocols import Metric
from evenhand.core.records import MetricInfo, Prompt
from evenhand.text.rendering import MaskOption


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
        plain = read_axes(prompt_ids, prompts)
        comparer, found, notes = self._cross_axes(plain, quantities)
        compared = PermutationChecker(comparer, self.check).run(
            comparer.comparisons(found, quantities), found, quantities
        )
        strata = find_strata(prompt_ids, prompts, self.strata)
        inside = StratumComparer(comparer)
        gaps = inside.comparisons(plain, quantities, strata)
        tables = {
            "groups": comparer.groups(found, quantities),
            "comparisons": to_table(compared),
            "omnibus": omnibus_table(comparer, found, quantities),
            "pairs": to_table(comparer.pairs(plain, quantities) if self.pairs else ()),
            "strata": gaps,
            "strata_groups": inside.groups(plain, quantities, strata),
        }
        if self.distances:
            tables["distances"] = self._distances(prompt_ids, prompts, quantities)
        test = comparer.test
        named = [f"--test {test}: {NOT_CLUSTERED[test]}"] if test in NOT_CLUSTERED else []
        return AnalysisResult(
            tables, (*notes, *named, *describe_unconfirmed(compared), *describe_reversals(gaps)), tuple(found)
        )

    def _distances(
        self, prompt_ids: Sequence[str], prompts: Mapping[str, Prompt], quantities: Sequence[Quantity]
    ) -> pl.DataFrame:
        seed, level = self.comparer.seed, self.comparer.level
        return distance_table(
            self.comparer.model, self.distances, prompt_ids, prompts, quantities, seed=seed, level=level
        )

    def _cross_axes(
        self, plain: Sequence[Axis], quantities: Sequence[Quantity]
    ) -> tuple[GroupComparer, Sequence[Axis], tuple[str, ...]]:
        """The axes with their crossings, which are exploratory on every metric."""
        if not self.intersections:
            return self.comparer, plain, ()
        crossed = cross_axes(plain, self.comparer.baselines)
        metrics = tuple(dict.fromkeys(quantity.metric for quantity in quantities))
        comparer = replace(
            self.comparer,
            baselines={**self.comparer.baselines, **crossed.baselines},
            exploratory={**self.comparer.exploratory, **dict.fromkeys(crossed.baselines, metrics)},
        )
        return comparer, [*plain, *crossed.axes], crossed.left_out


@dataclass(frozen=True, slots=True)
class ReportTables:
    """How the findings of a run are illustrated."""

    infos: Mapping[str, MetricInfo]
    explaining: Mapping[str, Metric]
    """The metrics that may explain a score; others of the run may be missing."""
    comparer: GroupComparer
    mask: MaskOption = "paper"

    def build(
        self,
        found: AnalysisResult,
        measured: Sequence[Quantity],
        texts: tuple[pl.DataFrame, Mapping[str, Prompt]],
        scores: pl.LazyFrame,
    ) -> dict[str, pl.DataFrame]:
        """The tables ``examples``, ``explanations``, ``distributions`` and ``cuts``.

        ``texts`` are the generations and the prompts they belong to.
        """
        generations, prompts = texts
        infos = self.infos
        model, axes = self.comparer.model, found.axes
        chosen = example_table(model, axes, infos, scores, generations, prompts, seed=self.comparer.seed)
        return {
            "examples": chosen,
            "explanations": explanation_table(self.explaining, chosen, generations, prompts, mask=self.mask),
            "distributions": distribution_table(model, axes, infos, measured),
            "cuts": cut_table(self.comparer, axes, infos, measured, found.tables["comparisons"]),
        }
