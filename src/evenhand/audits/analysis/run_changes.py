"""What changes from one run to another: gaps of gaps, and the values of groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import polars as pl

from evenhand.audits.analysis.group_comparison import GroupComparer, gap_fields, split_sides, to_table
from evenhand.audits.analysis.leaderboard import build_leaderboard
from evenhand.audits.analysis.paired_runs import PairedRuns
from evenhand.audits.analysis.quantities import Axis, Flags, Quantity
from evenhand.core.records import ALL, Comparison
from evenhand.stats.contrasts import clustered_contrast
from evenhand.stats.corrections import Correction, correct_by_family
from evenhand.stats.results import Difference
from evenhand.store.compare_schemas import CHANGES


@dataclass(frozen=True, slots=True)
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
    p_adjusted: float | None
    n: int
    n_reference: int
    n_clusters: int
    min_detectable: float | None
    run_value: float | None
    reference_value: float | None
    widens: float | None
    widens_low: float | None
    widens_high: float | None
    paired: bool
    exploratory: bool
    family: str
    family_size: int
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
    seed: int = 0

    def tables(self) -> dict[str, pl.DataFrame]:
        """``groups`` and ``comparisons`` of each run on what all share, then what is between them."""
        board, standings = build_leaderboard(self._comparer(0), self.runs)
        gaps = self.list_gaps()
        return {
            "groups": pl.concat(
                [
                    self._comparer(number).groups(self._axes(number), self.runs.quantities)
                    for number in range(len(self.runs.names))
                ]
            ),
            "comparisons": to_table(gaps),
            "changes": pl.DataFrame([asdict(item) for item in self.list_changes()], schema=dict(CHANGES)),
            "leaderboard": board,
            "standings": standings,
        }

    def list_gaps(self) -> list[Comparison]:
        """The gaps of each run, each a family of its own."""
        return [
            item
            for number in range(len(self.runs.names))
            for item in self._comparer(number).comparisons(self._axes(number), self.runs.quantities)
        ]

    def list_changes(self) -> list[RunChange]:
        """Gaps of gaps and changes of values against the reference, corrected by run, suite and role."""
        found = [
            item
            for number in range(1, len(self.runs.names))
            for axis in self.runs.axes
            for item in self._of_axis(number, axis)
        ]
        families = [
            f"{item.suite} / {item.run} against {item.reference} / "
            f"{'exploratory ' if item.exploratory else ''}{item.effect}s"
            for item in found
        ]
        adjusted = correct_by_family([item.p for item in found], families, self.correction)
        return [
            replace(item, p_adjusted=p.adjusted, family=p.family, family_size=p.size)
            for item, p in zip(found, adjusted, strict=True)
        ]

    def _axes(self, number: int) -> list[Axis]:
        return [self.runs.rows_of_run(axis, number) for axis in self.runs.axes]

    def _comparer(self, number: int) -> GroupComparer:
        return GroupComparer(
            model=self.runs.names[number],
            baselines=self.runs.baselines,
            level=self.level,
            correction=self.correction,
            seed=self.seed,
            exploratory=self.runs.exploratory,
        )

    def _of_axis(self, number: int, axis: Axis) -> Iterator[RunChange]:
        parts = [(self._comparer(run), self.runs.rows_of_run(axis, run)) for run in (number, 0)]
        gaps = [comparer.compare_outputs(part, self.runs.quantities) for comparer, part in parts]
        for quantity, new, old in zip(self.runs.quantities, *gaps, strict=True):
            for both in zip(new, old, strict=True):
                yield self._gap(number, axis, quantity, both)
            for code, group in enumerate(axis.groups):
                chosen = axis.codes == code
                found = self._contrast(axis, quantity, [(number, chosen, 1.0), (0, chosen, -1.0)])
                values = [_mean(quantity, part, code) for _, part in parts]
                change = self._change(number, axis, quantity, group, found)
                yield replace(change, run_value=values[0], reference_value=values[1])

    def _gap(
        self, number: int, axis: Axis, quantity: Quantity, gaps: tuple[Comparison, Comparison]
    ) -> RunChange:
        new, old = gaps
        group, other = split_sides(axis, new.group, new.baseline)
        scale = _share_of_rest(group, other) if new.baseline == ALL else 1.0
        signs = [-scale if (gap.estimate or 0) < 0 else scale for gap in (new, old)]
        cells = [(number, group, 1.0), (number, other, -1.0), (0, group, -1.0), (0, other, 1.0)]
        found = self._contrast(axis, quantity, [(run, rows, weight * scale) for run, rows, weight in cells])
        if signs[0] == signs[1]:
            wider = found if signs[0] > 0 else _negate(found)
        else:
            sizes = [signs[0], signs[0], signs[1], signs[1]]
            wider = self._contrast(
                axis, quantity, [(run, rows, w * s) for (run, rows, w), s in zip(cells, sizes, strict=True)]
            )
        change = self._change(number, axis, quantity, new.group, found)
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
        self, number: int, axis: Axis, quantity: Quantity, group: str, found: Difference
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
            **gap_fields(found),
            p_adjusted=None,
            n_reference=found.n_b,
            run_value=None,
            reference_value=None,
            widens=None,
            widens_low=None,
            widens_high=None,
            paired=self.runs.paired[axis.suite],
            exploratory=self._comparer(0).is_exploratory(axis, quantity),
            family="",
            family_size=0,
            correction=self.correction,
        )


def _negate(of: Difference) -> Difference:
    """The same gap of gaps from the other side."""
    low, high = (None if end is None else -end for end in (of.high, of.low))
    return replace(of, estimate=None if of.estimate is None else -of.estimate, low=low, high=high)


def _share_of_rest(group: Flags, other: Flags) -> float:
    return float(other.sum()) / max(float(group.sum() + other.sum()), 1.0)


def _mean(quantity: Quantity, axis: Axis, code: int) -> float | None:
    values = quantity.values[axis.rows[axis.codes == code]]
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else None
