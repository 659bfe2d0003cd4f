"""Everything a run says about its groups, as tables: estimates, gaps, omnibus answers, pairs, strata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from evenhand.core.records import Prompt
from evenhand.pipeline.checks import Check, Checker, unconfirmed
from evenhand.pipeline.comparison import Comparer, as_table
from evenhand.pipeline.distances import Wanted, distances
from evenhand.pipeline.gaps import NOT_CLUSTERED
from evenhand.pipeline.intersections import cross
from evenhand.pipeline.omnibus import omnibus
from evenhand.pipeline.quantities import Axis, Quantity, axes
from evenhand.pipeline.strata import StrataComparer, find_strata, reversals


@dataclass(frozen=True, slots=True)
class Findings:
    """The tables of an analysis, by name, and what a reader must know of them."""

    tables: Mapping[str, pl.DataFrame]
    warnings: tuple[str, ...]
    axes: tuple[Axis, ...]


@dataclass(frozen=True, slots=True)
class Analysis:
    """How a run is analysed."""

    comparer: Comparer
    strata: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """For each suite the properties of its prompts inside which gaps are looked at again."""
    pairs: bool = False
    """Compare every group with every other one too."""
    intersections: bool = True
    """Cross axes where texts speak of both."""
    check: Check = "auto"
    distances: Mapping[str, Wanted] = field(default_factory=dict)
    """For each suite that asks for them, the outputs whose distributions are compared."""

    def findings(
        self, prompt_ids: Sequence[str], prompts: Mapping[str, Prompt], quantities: Sequence[Quantity]
    ) -> Findings:
        """The tables ``groups``, ``comparisons``, ``omnibus``, ``pairs``, ``strata``, ``strata_groups``."""
        plain = axes(prompt_ids, prompts)
        comparer, found, notes = self._crossed(plain, quantities)
        compared = Checker(comparer, self.check).checked(
            comparer.comparisons(found, quantities), found, quantities
        )
        strata = find_strata(prompt_ids, prompts, self.strata)
        inside = StrataComparer(comparer)
        gaps = inside.comparisons(plain, quantities, strata)
        tables = {
            "groups": comparer.groups(found, quantities),
            "comparisons": as_table(compared),
            "omnibus": omnibus(comparer, found, quantities),
            "pairs": as_table(comparer.pairs(plain, quantities) if self.pairs else ()),
            "strata": gaps,
            "strata_groups": inside.groups(plain, quantities, strata),
        }
        if self.distances:
            tables["distances"] = self._distances(prompt_ids, prompts, quantities)
        test = comparer.test
        named = [f"--test {test}: {NOT_CLUSTERED[test]}"] if test in NOT_CLUSTERED else []
        return Findings(tables, (*notes, *named, *unconfirmed(compared), *reversals(gaps)), tuple(found))

    def _distances(
        self, prompt_ids: Sequence[str], prompts: Mapping[str, Prompt], quantities: Sequence[Quantity]
    ) -> pl.DataFrame:
        seed, level = self.comparer.seed, self.comparer.level
        return distances(
            self.comparer.model, self.distances, prompt_ids, prompts, quantities, seed=seed, level=level
        )

    def _crossed(
        self, plain: Sequence[Axis], quantities: Sequence[Quantity]
    ) -> tuple[Comparer, Sequence[Axis], tuple[str, ...]]:
        """The axes with their crossings, which are exploratory on every metric."""
        if not self.intersections:
            return self.comparer, plain, ()
        crossed = cross(plain, self.comparer.baselines)
        metrics = tuple(dict.fromkeys(quantity.metric for quantity in quantities))
        comparer = replace(
            self.comparer,
            baselines={**self.comparer.baselines, **crossed.baselines},
            exploratory={**self.comparer.exploratory, **dict.fromkeys(crossed.baselines, metrics)},
        )
        return comparer, [*plain, *crossed.axes], crossed.left_out
