"""Intensity plots: both sides of each pair, the means marked (affective paper, Figures 2 and 3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from evenhand.probes.report.matrix_cells import ProbeCell
from evenhand.report.wording import format_count, format_number

MOST_POINTS: Final = 240
"""Pairs drawn in a plot; of more, evenly spaced ones are."""
WIDTH, HEIGHT, EDGE = 600.0, 190.0, 10.0


@dataclass(frozen=True, slots=True)
class PairPoint:
    """A pair: where it stands, and how high its two sides are, in units of the drawing."""

    x: float
    a: float
    b: float


@dataclass(frozen=True, slots=True)
class IntensityPlot:
    """The intensities of one cell."""

    cell: ProbeCell
    points: tuple[PairPoint, ...]
    left_out: int
    mean_a: float
    mean_b: float
    label_a: str
    label_b: str

    @property
    def caption(self) -> str:
        """What the plot shows, for readers who do not see it."""
        verb = "is" if self.left_out == 1 else "are"
        thinned = f" {format_count(self.left_out, 'further pair')} {verb} not drawn." if self.left_out else ""
        return (
            f"{self.cell.text('emotion').capitalize()} in {format_count(len(self.points), 'pair')} "
            f"of sentences, sorted: mean {self.label_a} for {self.cell.text('group_a')}, {self.label_b} for "
            f"{self.cell.text('group_b')}.{thinned}"
        )


def build_plots(
    cells: Sequence[ProbeCell], pairs: pl.DataFrame, view: Mapping[str, str]
) -> Iterator[IntensityPlot]:
    """A plot for each cell that has intensities."""
    kind = "predicted" if view["score"] == "predicted" else "intensity"
    counts = "agreeing" if view["pairs"] == "agreeing" else f"all_{view['score']}"
    columns = (f"{kind}_a", f"{kind}_b")
    for cell in cells:
        corpus, axis, first, second, emotion = cell.key
        own = pairs.filter(
            pl.col("corpus") == corpus,
            pl.col("axis") == axis,
            pl.col("group_a") == first,
            pl.col("group_b") == second,
            pl.col("emotion") == emotion,
            pl.col(counts),
        )
        values = sorted(own.select(columns).drop_nulls().iter_rows(), key=sum)
        if values:
            yield _plot(cell, values)


def _plot(cell: ProbeCell, values: Sequence[tuple[float, float]]) -> IntensityPlot:
    step = max(1, -(-len(values) // MOST_POINTS))
    drawn = values[::step]
    wide = (WIDTH - 2 * EDGE) / max(1, len(drawn) - 1)
    points = tuple(
        PairPoint(round(EDGE + place * wide, 1), _y(first), _y(second))
        for place, (first, second) in enumerate(drawn)
    )
    mean_a, mean_b = cell.value("mean_a") or 0.0, cell.value("mean_b") or 0.0
    return IntensityPlot(
        cell,
        points,
        len(values) - len(drawn),
        _y(mean_a),
        _y(mean_b),
        format_number(mean_a),
        format_number(mean_b),
    )


def _y(value: float) -> float:
    return round(HEIGHT - EDGE - value * (HEIGHT - 2 * EDGE), 1)
