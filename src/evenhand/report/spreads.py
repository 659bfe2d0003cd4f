"""How the scores of a group are spread: a small histogram, drawn from the distributions table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evenhand.report.measures import Measure
from evenhand.report.scale import Scale, scale
from evenhand.store.run import Run

HEIGHT = 20
"""Units of the tallest column."""

SpreadKey = tuple[str, str, str, str, str, str]
"""suite, model, axis, group, metric, output."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The counts of a group in equal bins, and its quantiles."""

    low: float
    high: float
    counts: tuple[int, ...]
    median: float
    quartiles: tuple[float, float]

    @property
    def tallest(self) -> float:
        """The share of texts in its fullest bin."""
        return max(self.counts) / sum(self.counts)


@dataclass(frozen=True, slots=True)
class Spread:
    """A histogram where it is drawn: an outline over ``bins`` columns, and its middle half."""

    bins: int
    outline: str
    """The path of the columns, bins wide and ``HEIGHT`` high."""
    middle: tuple[float, float]
    """Start and width of the middle half of the texts, in percent of the chart."""
    median: float
    value: str
    interval: str


def shapes(run: Run) -> dict[SpreadKey, Shape]:
    """The spread of every group and output that has one."""
    return {
        (row["suite"], row["model"], row["axis"], row["group"], row["metric"], row["output"]): Shape(
            low=row["low"],
            high=row["high"],
            counts=tuple(row["counts"]),
            median=row["q50"],
            quartiles=(row["q25"], row["q75"]),
        )
        for row in run.table("distributions").iter_rows(named=True)
        if sum(row["counts"] or ())
    }


def spread_scale(found: Sequence[Shape]) -> Scale | None:
    """The scale that all shapes of a panel are drawn on: exactly their bins, with round ticks inside."""
    if not found:
        return None
    low, high = found[0].low, found[0].high
    ticks = scale([low, high], share=False)
    return Scale(low, high, tuple(tick for tick in ticks.ticks if low <= tick <= high) if ticks else ())


def spread(shape: Shape, drawn: Scale, *, tallest: float, measure: Measure) -> Spread:
    """The histogram of one group; a column is as high as its share of the group's texts over ``tallest``."""
    total = sum(shape.counts)
    start, end = (drawn.at(value) for value in shape.quartiles)
    first, third = (measure.value(value) for value in shape.quartiles)
    return Spread(
        bins=len(shape.counts),
        outline=_outline(count / total / tallest for count in shape.counts),
        middle=(start, round(end - start, 2)),
        median=drawn.at(shape.median),
        value=measure.value(shape.median),
        interval=f"{first} to {third}",
    )


def _outline(shares: Iterable[float]) -> str:
    """Columns as one path from the ground, in whole units; what is there at all is at least one unit high."""
    path, at = f"M0 {HEIGHT}", HEIGHT
    for share in shares:
        top = HEIGHT - (max(1, round(share * HEIGHT)) if share > 0 else 0)
        path += f"v{top - at}h1" if top != at else "h1"
        at = top
    return f"{path}V{HEIGHT}z"
