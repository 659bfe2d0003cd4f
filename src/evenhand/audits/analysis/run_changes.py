"""What changes from one run to another: gaps of gaps, the values of groups, and a ranking of the runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import polars as pl

from evenhand.audits.analysis.group_comparison import (
    GAP_FIELDS,
    GapSide,
    GroupComparer,
    correct_rows,
    split_sides,
)
from evenhand.audits.analysis.quantities import Axis, Flags, Quantity, Row
from evenhand.audits.loaded_run import PairedRuns
from evenhand.core.records import ALL
from evenhand.stats.contrasts import clustered_contrast
from evenhand.stats.corrections import Correction
from evenhand.stats.group_spread import rank_spreads
from evenhand.stats.results import Difference
from evenhand.store.schemas import CHANGES, COMPARISONS, LEADERBOARD, STANDINGS


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
            "comparisons": pl.DataFrame(gaps, schema=dict(COMPARISONS)),
            "changes": pl.DataFrame(self.list_changes(), schema=dict(CHANGES)),
            "leaderboard": leaderboard,
            "standings": standings,
        }

    def list_changes(self) -> list[Row]:
        """Gaps of gaps and changes of values against the reference, corrected by run, suite and role.

        ``run_low`` and ``run_high`` are the interval of the run's gap, and no columns of the table.
        """
        rows = [
            row
            for number in range(1, len(self.runs.names))
            for axis in self.runs.axes
            for row in self._compare_axis(number, axis)
        ]
        return correct_rows(rows, self.correction)

    def _comparer(self, number: int) -> GroupComparer:
        return GroupComparer(
            model=self.runs.names[number],
            baselines=self.runs.baselines,
            level=self.level,
            correction=self.correction,
            exploratory=self.runs.exploratory,
        )

    def _compare_axis(self, number: int, axis: Axis) -> Iterator[Row]:
        parts = [(self._comparer(run), self.runs.rows_of_run(axis, run)) for run in (number, 0)]
        gaps = [comparer.compare_outputs(part, self.runs.quantities) for comparer, part in parts]
        for quantity, new, old in zip(self.runs.quantities, *gaps, strict=True):
            for both in zip(new, old, strict=True):
                yield self._compare_gap(number, axis, quantity, *both)
            for code, group in enumerate(axis.groups):
                rows = axis.codes == code
                contrast = self._contrast(axis, quantity, [(number, rows, 1.0), (0, rows, -1.0)])
                values = [GapSide.of(quantity, part, part.codes == code).mean for _, part in parts]
                change = self._change(number, axis, quantity, "value", contrast)
                yield change | {"group": group, "run_value": values[0], "reference_value": values[1]}

    def _compare_gap(self, number: int, axis: Axis, quantity: Quantity, new: Row, old: Row) -> Row:
        group, other = split_sides(axis, new["group"], new["baseline"])
        scale = 1.0
        if new["baseline"] == ALL:
            scale = float(other.sum()) / max(float(group.sum() + other.sum()), 1.0)
        cells = [(number, group, scale), (number, other, -scale), (0, group, -scale), (0, other, scale)]
        contrast = self._contrast(axis, quantity, cells)
        signs = [-1.0 if (gap["estimate"] or 0) < 0 else 1.0 for gap in (new, old)]
        if signs[0] != signs[1]:
            signed = [(run, rows, weight * signs[0 if run else 1]) for run, rows, weight in cells]
            wider = self._contrast(axis, quantity, signed)
        elif signs[0] > 0:
            wider = contrast
        else:
            # The same gap of gaps from the other side.
            ends = (contrast.estimate, contrast.high, contrast.low)
            estimate, low, high = (None if end is None else -end for end in ends)
            wider = replace(contrast, estimate=estimate, low=low, high=high)
        return self._change(number, axis, quantity, "gap", contrast) | {
            "group": new["group"],
            "baseline": new["baseline"],
            "run_value": new["estimate"],
            "reference_value": old["estimate"],
            "run_low": new["low"],
            "run_high": new["high"],
            "n": new["n"] + new["n_baseline"],
            "n_reference": old["n"] + old["n_baseline"],
            "widens": wider.estimate,
            "widens_low": wider.low,
            "widens_high": wider.high,
        }

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

    def _change(self, number: int, axis: Axis, quantity: Quantity, effect: str, contrast: Difference) -> Row:
        run, reference = self.runs.names[number], self.runs.names[0]
        exploratory = self._comparer(0).is_exploratory(axis, quantity)
        role = f"{'exploratory ' if exploratory else ''}{effect}s"
        return {
            "suite": axis.suite,
            "run": run,
            "reference": reference,
            "axis": axis.name,
            "baseline": None,
            "metric": quantity.metric,
            "output": quantity.output,
            "effect": effect,
            "n": contrast.n_a,
            **{name: getattr(contrast, name) for name in GAP_FIELDS},
            "n_reference": contrast.n_b,
            "paired": self.runs.paired[axis.suite],
            "exploratory": exploratory,
            "family": f"{axis.suite} / {run} against {reference} / {role}",
            "correction": self.correction,
        }

    def _rank_runs(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The runs ranked on every axis and output, and counted over all primary ones, best first."""
        names, comparer = self.runs.names, self._comparer(0)
        rows: list[Row] = []
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
