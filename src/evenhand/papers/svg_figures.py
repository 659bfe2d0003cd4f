"""The papers' kinds of figure, drawn with matplotlib as SVG with text that stays text."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from evenhand.core.errors import MissingLibraryError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

COLOURS = ("#1d5bb8", "#ad4706", "#0a6a70", "#7a3b9a", "#8a6d00", "#575d67", "#b3284a", "#3f7d20")
"""Distinct also for readers who do not see all colours; the same order in every figure."""
POLARITY = {"negative": "#ad4706", "neutral": "#c9ccd1", "positive": "#0a6a70"}
SERIES = ("#1d5bb8", "#d0679a", "#3c414a", "#3d93d0", "#a67f00", "#5b2a86", "#3f7d20", "#6b3f1d")
"""Of bars side by side, such as sources: none of them means anything in `POLARITY`."""
_ROOM = 4.0
"""How many times the tallest bar an interval may reach before it is cut, with an arrow."""
_Place = Literal["outside lower left", "outside upper left"]
NARROW = 3.7
"""Inches that a telephone held upright shows at the size they were drawn."""


@dataclass(frozen=True, slots=True)
class FigureBar:
    """One bar: its value and, where there is one, its interval."""

    label: str
    series: str
    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class StackedBar:
    """One bar cut in parts that sum to one."""

    label: str
    parts: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class FigurePanel:
    """One panel of a figure that mixes bars and stacks."""

    title: str
    bars: Sequence[FigureBar] = ()
    stacks: Sequence[StackedBar] = ()


def bars_and_stacks(panels: Sequence[FigurePanel], *, narrow: bool = False) -> str:
    """An SVG with a panel each for stacked shares or for bars with intervals.

    The key of the shares stands above, that of the bars below: two keys, no colour in both. ``narrow`` puts
    the panels under each other, and the parts of a stack's label.
    """
    longest = max((len(panel.stacks) for panel in panels if panel.stacks), default=4)
    height = max(2.6, 0.6 + (0.36 if narrow else 0.26) * longest)
    columns, width = (1, NARROW) if narrow else (2, 5.0)
    with open_canvas(len(panels), columns=columns, width=width, height=height) as (canvas, axes):
        for axis, panel in zip(axes, panels, strict=False):
            if panel.stacks:
                _draw_stacks(axis, panel.stacks, separator="\n" if narrow else ", ")
            else:
                _draw_bars(axis, panel.bars)
            axis.set_title(panel.title, loc="left", fontsize=10)
        if any(panel.stacks for panel in panels):
            _key(canvas, POLARITY, place="outside upper left")
        _key(canvas, _series([bar for panel in panels for bar in panel.bars]), across=2 if narrow else 6)
        return to_svg(canvas)


def grouped_bars(
    panels: Mapping[str, Sequence[FigureBar]],
    *,
    unit: str,
    columns: int = 2,
    width: float = 5.0,
    top: float | None = None,
) -> str:
    """An SVG with a panel for each key: bars side by side for each series, with intervals.

    ``width`` is that of one panel, in inches; ``top`` is where every panel's scale ends, above 0.
    """
    with open_canvas(len(panels), columns=columns, width=width, height=3.2) as (canvas, axes):
        for axis, (title, bars) in zip(axes, panels.items(), strict=False):
            _draw_bars(axis, bars)
            axis.set_title(title, loc="left", fontsize=10)
            axis.set_ylabel(unit, fontsize=8)
            if top is not None:
                axis.set_ylim(0, top)
        _key(canvas, _series([bar for bars in panels.values() for bar in bars]))
        return to_svg(canvas)


def horizontal_bars(bars: Sequence[FigureBar], *, unit: str) -> str:
    """An SVG for a narrow screen: labels under each other, a bar to the right or left for each series."""
    height = 0.8 + 0.13 * len(bars) + 0.08 * len({bar.label for bar in bars})
    with open_canvas(1, width=NARROW, height=height) as (canvas, axes):
        _draw_bars(axes[0], bars, lying=True)
        axes[0].set_xlabel(unit, fontsize=8)
        _key(canvas, _series(bars), across=2)
        return to_svg(canvas)


@contextmanager
def open_canvas(
    panels: int, *, columns: int = 1, width: float, height: float
) -> Iterator[tuple[Canvas, list[Axes]]]:
    """A canvas in our style with panels of that size, in inches, in rows of at most ``columns``."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure as Canvas
    except ImportError as error:
        raise MissingLibraryError(
            "figures are drawn with matplotlib, which is not installed", fix="pip install 'evenhand[viz]'"
        ) from error
    # A fixed salt and no date: the same numbers give the same file.
    style: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "evenhand", "font.size": 9}
    style |= {"font.family": "sans-serif", "legend.frameon": False}
    style |= {"axes.spines.top": False, "axes.spines.right": False}
    columns = min(columns, max(1, panels))
    rows = max(1, -(-panels // columns))
    with rc_context(style):
        canvas = Canvas(figsize=(width * columns, height * rows), layout="constrained")
        axes = list(canvas.subplots(rows, columns, squeeze=False).flat)
        for spare in axes[panels:]:
            spare.set_visible(False)
        yield canvas, axes


def to_svg(canvas: Canvas) -> str:
    """The canvas as the text of an SVG file."""
    buffer = io.StringIO()
    canvas.savefig(buffer, format="svg", metadata={"Date": None, "Creator": "evenhand"})
    return buffer.getvalue()


def _draw_bars(axis: Axes, bars: Sequence[FigureBar], *, lying: bool = False) -> None:
    labels = list(dict.fromkeys(bar.label for bar in bars))
    names = list(dict.fromkeys(bar.series for bar in bars))
    width = min(0.8 / max(1, len(names)), 0.4)
    roof = math.inf if lying else _upper_limit(bars)
    for bar in bars:
        if bar.value is None:
            continue
        at = labels.index(bar.label) + (names.index(bar.series) - (len(names) - 1) / 2) * width
        colour = SERIES[names.index(bar.series) % len(SERIES)]
        draw = axis.barh if lying else axis.bar
        draw(at, bar.value, width * 0.92, color=colour)
        if bar.low is not None and bar.high is not None:
            line = ([at, at], [bar.low, bar.high])
            axis.plot(*(reversed(line) if lying else line), color="#17191d", linewidth=1)
        if bar.high is not None and bar.high > roof:
            axis.plot([at], [roof], color="#17191d", marker="^", markersize=5, clip_on=False)
    if lying:
        axis.set_yticks(range(len(labels)), labels)
        axis.set_ylim(len(labels) - 0.4, -0.6)
        axis.axvline(0, color="#17191d", linewidth=0.6)
        return
    if roof < math.inf:
        axis.set_ylim(top=roof)
    is_tight = max((len(label) for label in labels), default=0) * len(labels) > 40
    rotation, side = (35, "right") if is_tight else (0, "center")
    axis.set_xticks(range(len(labels)), labels, rotation=rotation, ha=side)
    axis.axhline(0, color="#17191d", linewidth=0.6)


def _upper_limit(bars: Sequence[FigureBar]) -> float:
    """Where the scale ends: intervals far above every bar would leave no room to see the bars."""
    tallest = max((bar.value for bar in bars if bar.value is not None), default=0.0)
    longest = max((bar.high for bar in bars if bar.high is not None), default=0.0)
    return _ROOM * tallest if 0 < _ROOM * tallest < longest else math.inf


def _draw_stacks(axis: Axes, stacks: Sequence[StackedBar], *, separator: str) -> None:
    for row, stack in enumerate(reversed(stacks)):
        left = 0.0
        for part, share in stack.parts.items():
            axis.barh(row, share, left=left, color=POLARITY[part], height=0.72)
            if share >= 0.08:
                colour = "#17191d" if part == "neutral" else "#fff"
                words, place = f"{share:.0%}".replace("%", " %"), (left + share / 2, row)
                axis.annotate(words, place, ha="center", va="center", fontsize=7, color=colour)
            left += share
    labels = [stack.label.replace(", ", separator) for stack in reversed(stacks)]
    axis.set_yticks(range(len(stacks)), labels)
    axis.set_xlim(0, 1)
    axis.set_ylim(-0.6, len(stacks) - 0.4)
    axis.set_xticks([0, 0.5, 1], ["0", "50 %", "100 %"])


def _series(bars: Sequence[FigureBar]) -> dict[str, str]:
    """The colour of every series; none where there is only one."""
    names = dict.fromkeys(bar.series for bar in bars)
    return {name: SERIES[at % len(SERIES)] for at, name in enumerate(names)} if len(names) > 1 else {}


def _key(
    canvas: Canvas, colours: Mapping[str, str], *, place: _Place = "outside lower left", across: int = 6
) -> None:
    from matplotlib.patches import Patch

    if colours:
        swatches = [Patch(color=colour) for colour in colours.values()]
        canvas.legend(swatches, list(colours), loc=place, ncols=min(across, len(colours)), fontsize=9)
