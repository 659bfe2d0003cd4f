"""What changes from one run to another: gaps of gaps, the values of groups, and a ranking of the runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product

import numpy as np
import polars as pl

from evenhand.audits.analysis.group_comparison import (
    GAP_FIELDS,
    GapSide,
    GroupComparer,
    split_sides,
    to_table,
)
from evenhand.audits.analysis.quantities import Axis, Flags, Quantity
from evenhand.audits.loaded_run import PairedRuns
from evenhand.core.records import ALL, Comparison
from evenhand.stats.contrasts import clustered_contrast
from evenhand.stats.corrections import Correction, correct_by_family
from evenhand.stats.group_spread import rank_spreads
from evenhand.stats.results import Difference
from evenhand.store.schemas import CHANGES, LEADERBOARD, STANDINGS


@dataclass(frozen=True, slots=True, kw_only=True)
class RunChange:
    """A row of ``changes``; see the schema for what its columns mean."""

    suite: str
    run: str
    reference: str
    axis: str
    group: str
    baseline: str | None
    metric: str
    output: str
    effect: str
    estimate: float | None
    low: float | None
    high: float | None
    p: float | None
    p_adjusted: float | None = None
    n: int
    n_reference: int
    n_clusters: int
    min_detectable: float | None
    run_value: float | None = None
    reference_value: float | None = None
    widens: float | None = None
    widens_low: float | None = None
    widens_high: float | None = None
    paired: bool
    exploratory: bool
    family: str = ""
    family_size: int = 0
    correction: str
    method: str
    null_reason: str | None
    run_low: float | None = None
    run_high: float | None = None
    """The interval of ``run_value`` where that is a gap; no columns of the table."""


@dataclass(frozen=True, slots=True)
class RunComparer:
    """How runs are compared; the first one is the reference."""

    runs: PairedRuns
    level: float = 0.95
    correction: Correction = "bh"

    def tables(self) -> dict[str, pl.DataFrame]:
        """``groups`` and ``comparisons`` of each run on what all share, then what is between them."""
        leaderboard, standings = self._rank_runs()
        quantities = self.runs.quantities
        parts = [
            (self._comparer(run), [self.runs.rows_of_run(axis, run) for axis in self.runs.axes])
            for run in range(len(self.runs.names))
        ]
        # The gaps of each run are families of their own.
        gaps = [gap for comparer, axes in parts for gap in comparer.comparisons(axes, quantities)]
        return {
            "groups": pl.concat([comparer.groups(axes, quantities) for comparer, axes in parts]),
            "comparisons": to_table(gaps),
            "changes": pl.DataFrame([asdict(item) for item in self.list_changes()], schema=dict(CHANGES)),
            "leaderboard": leaderboard,
            "standings": standings,
        }

    def list_changes(self) -> list[RunChange]:
        """Gaps of gaps and changes of values against the reference, corrected by run, suite and role."""
        changes = [
            item
            for number in range(1, len(self.runs.names))
            for axis in self.runs.axes
            for item in self._compare_axis(number, axis)
        ]
        families = [
            f"{item.suite} / {item.run} against {item.reference} / "
            f"{'exploratory ' if item.exploratory else ''}{item.effect}s"
            for item in changes
        ]
        adjusted = correct_by_family([item.p for item in changes], families, self.correction)
        return [
            replace(item, p_adjusted=p.adjusted, family=p.family, family_size=p.size)
            for item, p in zip(changes, adjusted, strict=True)
        ]

    def _comparer(self, number: int) -> GroupComparer:
        return GroupComparer(
            model=self.runs.names[number],
            baselines=self.runs.baselines,
            level=self.level,
            correction=self.correction,
            exploratory=self.runs.exploratory,
        )

    def _compare_axis(self, number: int, axis: Axis) -> Iterator[RunChange]:
        parts = [(self._comparer(run), self.runs.rows_of_run(axis, run)) for run in (number, 0)]
        gaps = [comparer.compare_outputs(part, self.runs.quantities) for comparer, part in parts]
        for quantity, new, old in zip(self.runs.quantities, *gaps, strict=True):
            for both in zip(new, old, strict=True):
                yield self._compare_gap(number, axis, quantity, *both)
            for code, group in enumerate(axis.groups):
                rows = axis.codes == code
                contrast = self._contrast(axis, quantity, [(number, rows, 1.0), (0, rows, -1.0)])
                change = self._change(number, axis, quantity, group, contrast)
                values = [GapSide.of(quantity, part, part.codes == code).mean for _, part in parts]
                yield replace(change, run_value=values[0], reference_value=values[1])

    def _compare_gap(
        self, number: int, axis: Axis, quantity: Quantity, new: Comparison, old: Comparison
    ) -> RunChange:
        group, other = split_sides(axis, new.group, new.baseline)
        scale = 1.0
        if new.baseline == ALL:
            scale = float(other.sum()) / max(float(group.sum() + other.sum()), 1.0)
        signs = [-scale if (gap.estimate or 0) < 0 else scale for gap in (new, old)]
        cells = [(number, group, 1.0), (number, other, -1.0), (0, group, -1.0), (0, other, 1.0)]
        contrast = self._contrast(
            axis, quantity, [(run, rows, weight * scale) for run, rows, weight in cells]
        )
        if signs[0] != signs[1]:
            sizes = [signs[0], signs[0], signs[1], signs[1]]
            weighted = [(run, rows, w * s) for (run, rows, w), s in zip(cells, sizes, strict=True)]
            wider = self._contrast(axis, quantity, weighted)
        elif signs[0] > 0:
            wider = contrast
        else:
            # The same gap of gaps from the other side.
            ends = (contrast.estimate, contrast.high, contrast.low)
            estimate, low, high = (None if end is None else -end for end in ends)
            wider = replace(contrast, estimate=estimate, low=low, high=high)
        change = self._change(number, axis, quantity, new.group, contrast)
        return replace(
            change,
            baseline=new.baseline,
            effect="gap",
            run_value=new.estimate,
            reference_value=old.estimate,
            run_low=new.low,
            run_high=new.high,
            n=new.n + new.n_baseline,
            n_reference=old.n + old.n_baseline,
            widens=wider.estimate,
            widens_low=wider.low,
            widens_high=wider.high,
        )

    def _contrast(
        self, axis: Axis, quantity: Quantity, cells: Sequence[tuple[int, Flags, float]]
    ) -> Difference:
        """The weighted sum of cell means; a cell is some rows of an axis under one run."""
        values, run = quantity.values[axis.rows], self.runs.run[axis.rows]
        known = ~np.isnan(values)
        chosen = [np.flatnonzero(known & (run == number) & rows) for number, rows, _ in cells]
        rows = np.concatenate(chosen)
        return clustered_contrast(
            values[rows],
            np.repeat(np.arange(len(cells)), [part.size for part in chosen]),
            axis.clusters[rows],
            weights=[weight for _, _, weight in cells],
            is_share=quantity.kind == "share",
            level=self.level,
        )

    def _change(
        self, number: int, axis: Axis, quantity: Quantity, group: str, contrast: Difference
    ) -> RunChange:
        return RunChange(
            suite=axis.suite,
            run=self.runs.names[number],
            reference=self.runs.names[0],
            axis=axis.name,
            group=group,
            baseline=None,
            metric=quantity.metric,
            output=quantity.output,
            effect="value",
            n=contrast.n_a,
            **{name: getattr(contrast, name) for name in GAP_FIELDS},
            n_reference=contrast.n_b,
            paired=self.runs.paired[axis.suite],
            exploratory=self._comparer(0).is_exploratory(axis, quantity),
            correction=self.correction,
        )

    def _rank_runs(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The runs ranked on every axis and output, and counted over all primary ones, best first."""
        names, comparer = self.runs.names, self._comparer(0)
        rows: list[dict[str, object]] = []
        # How often each run's groups stand closer together than another run's; its ties; its unknown outputs.
        narrower = np.zeros((len(names), len(names)), dtype=np.int64)
        tied, null = np.zeros((2, len(names)), dtype=np.int64)
        for axis, quantity in product(self.runs.axes, self.runs.quantities):
            values = quantity.values[axis.rows]
            known = ~np.isnan(values)
            ranking = rank_spreads(
                values[known],
                self.runs.run[axis.rows][known],
                axis.codes[known],
                axis.clusters[known],
                n_runs=len(names),
                level=self.level,
            )
            exploratory = comparer.is_exploratory(axis, quantity)
            rows += [
                {
                    "suite": axis.suite,
                    "axis": axis.name,
                    "metric": quantity.metric,
                    "output": quantity.output,
                    "run": name,
                    "rank": spread.rank,
                    "spread": spread.value,
                    "low": spread.low,
                    "high": spread.high,
                    "tied_with": [names[other] for other in spread.tied],
                    "groups": ranking.groups,
                    "null_reason": spread.null_reason,
                    "exploratory": exploratory,
                }
                for name, spread in zip(names, ranking.spreads, strict=True)
            ]
            if exploratory:
                continue
            if not ranking.gaps:
                null += len(names) - 1
            for gap in ranking.gaps:
                if gap.p_adjusted is not None and gap.p_adjusted <= 1 - self.level + 1e-12:
                    winner, loser = (gap.b, gap.a) if gap.difference > 0 else (gap.a, gap.b)
                    narrower[winner, loser] += 1
                else:
                    tied[[gap.a, gap.b]] += 1
        standings = {
            "run": list(names),
            # A run is behind those that beat it more often than it beats them.
            "rank": 1 + (narrower < narrower.T).sum(axis=1),
            "narrower": narrower.sum(axis=1),
            "wider": narrower.sum(axis=0),
            "tied": tied,
            "null": null,
        }
        ranked = pl.DataFrame(standings, schema=dict(STANDINGS)).sort("rank", maintain_order=True)
        return pl.DataFrame(rows, schema=dict(LEADERBOARD)), ranked
