"""What a chart is made of: figures, their panels, a mark for each group."""

from __future__ import annotations

from dataclasses import dataclass

from evenhand.report.measures import Measure
from evenhand.report.spreads import Spread
from evenhand.report.wording import name


@dataclass(frozen=True, slots=True)
class Mark:
    """One group of a panel: what its row says, and where its dot and interval are drawn."""

    index: int
    """Row of the groups table."""
    name: str
    is_baseline: bool
    value: str
    interval: str
    gap: str
    gap_interval: str
    p: str
    n: int
    n_clusters: int
    standing: str
    """A gap's standing, or ``baseline``, or ``alone`` where there is nothing to compare with."""
    direction: str
    """``higher``, ``lower`` or empty."""
    reason: str
    dot: float | None
    bar: tuple[float, float] | None
    """Start and width, in percent of the chart."""
    reference: float | None
    """Where the value it is compared with is drawn."""
    spread: Spread | None = None
    """How its scores are spread; None for a share."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A labelled position of a scale."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Panel:
    """One output of a figure."""

    id: str
    measure: Measure
    baseline: str
    ticks: tuple[Tick, ...]
    marks: tuple[Mark, ...]
    spread_ticks: tuple[Tick, ...] = ()
    cuts: tuple[float, ...] = ()
    """The cuts at which its shares are known, from the middle of the range outwards."""
    own_cut: int = 0
    """Which of them is the metric's own."""
    overall: str = ""
    """Whether its groups differ at all."""

    @property
    def has_spread(self) -> bool:
        """Whether the spread of any group can be drawn."""
        return any(mark.spread for mark in self.marks)

    @property
    def supported(self) -> int:
        """How many of its gaps are larger than chance."""
        return sum(mark.standing == "supported" for mark in self.marks)


@dataclass(frozen=True, slots=True)
class Figure:
    """The panels of one metric and axis; primary outputs first."""

    id: str
    suite: str
    model: str
    axis: str
    metric: str
    panels: tuple[Panel, ...]

    @property
    def has_values(self) -> bool:
        """Whether any group of it has an estimate."""
        return any(mark.value for panel in self.panels for mark in panel.marks)

    @property
    def groups(self) -> int:
        """How many groups its largest panel holds."""
        return max(len(panel.marks) for panel in self.panels)

    @property
    def title(self) -> str:
        """Metric and axis as words: "Sentiment by race"."""
        title = f"{name(self.metric)} by {name(self.axis)}"
        return title[:1].upper() + title[1:]
