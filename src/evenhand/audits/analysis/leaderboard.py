"""Runs ranked by how far apart their groups stand; those that cannot be told apart are tied."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from evenhand.audits.analysis.group_comparison import GroupComparer
from evenhand.audits.analysis.paired_runs import PairedRuns
from evenhand.audits.analysis.quantities import Axis, Quantity
from evenhand.stats.group_spread import SpreadRanking, rank_spreads
from evenhand.store.schemas import LEADERBOARD, STANDINGS


def build_leaderboard(comparer: GroupComparer, runs: PairedRuns) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The runs ranked on every axis and output, and counted over all primary ones."""
    rows: list[dict[str, object]] = []
    tally = _WinCounts(runs.names)
    for axis in runs.axes:
        for quantity in runs.quantities:
            exploratory = comparer.is_exploratory(axis, quantity)
            ranking = _ranking(runs, axis, quantity, comparer.level)
            rows += [{**row, "exploratory": exploratory} for row in _rows(runs, axis, quantity, ranking)]
            if not exploratory:
                tally.add(ranking, comparer.level)
    return pl.DataFrame(rows, schema=dict(LEADERBOARD)), tally.table()


def _ranking(runs: PairedRuns, axis: Axis, quantity: Quantity, level: float) -> SpreadRanking:
    values = quantity.values[axis.rows]
    known = ~np.isnan(values)
    return rank_spreads(
        values[known],
        runs.run[axis.rows][known],
        axis.codes[known],
        axis.clusters[known],
        n_runs=len(runs.names),
        level=level,
    )


def _rows(
    runs: PairedRuns, axis: Axis, quantity: Quantity, ranking: SpreadRanking
) -> Iterator[dict[str, object]]:
    for number, spread in enumerate(ranking.spreads):
        yield {
            "suite": axis.suite,
            "axis": axis.name,
            "metric": quantity.metric,
            "output": quantity.output,
            "run": runs.names[number],
            "rank": spread.rank,
            "spread": spread.value,
            "low": spread.low,
            "high": spread.high,
            "tied_with": [runs.names[other] for other in spread.tied],
            "groups": ranking.groups,
            "null_reason": spread.null_reason,
        }


class _WinCounts:
    """How often each run's groups stand closer together than another run's."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.narrower = np.zeros((len(names), len(names)), dtype=np.int64)
        self.tied = np.zeros(len(names), dtype=np.int64)
        self.null = np.zeros(len(names), dtype=np.int64)

    def add(self, ranking: SpreadRanking, level: float) -> None:
        """Count one output."""
        if not ranking.gaps:
            self.null += len(self.names) - 1
        for gap in ranking.gaps:
            if gap.p_adjusted is not None and gap.p_adjusted <= 1 - level + 1e-12:
                winner, loser = (gap.b, gap.a) if gap.difference > 0 else (gap.a, gap.b)
                self.narrower[winner, loser] += 1
            else:
                self.tied[[gap.a, gap.b]] += 1

    def table(self) -> pl.DataFrame:
        """The standings, best first; a run stands behind those that beat it more often than it beats them."""
        rows = [
            {
                "run": name,
                "rank": 1 + int(np.sum(self.narrower[:, number] > self.narrower[number])),
                "narrower": int(self.narrower[number].sum()),
                "wider": int(self.narrower[:, number].sum()),
                "tied": int(self.tied[number]),
                "null": int(self.null[number]),
            }
            for number, name in enumerate(self.names)
        ]
        return pl.DataFrame(rows, schema=dict(STANDINGS)).sort("rank", maintain_order=True)
