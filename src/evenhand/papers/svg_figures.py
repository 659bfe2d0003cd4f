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
    from matplotlib.patches import Patch

COLOURS = ("#1d5bb8", "#ad4706", "#0a6a70", "#7a3b9a", "#8a6d00", "#575d67", "#b3284a", "#3f7d20")
"""Told apart also by readers who do not see all colours; the same order in every figure."""
POLARITY = {"negative": "#ad4706", "neutral": "#c9ccd1", "positive": "#0a6a70"}
SERIES = ("#1d5bb8", "#d0679a", "#3c414a", "#3d93d0", "#a67f00", "#5b2a86", "#3f7d20", "#6b3f1d")
"""Of bars side by side, such as sources: none of them means anything in `POLARITY`."""
_ROOM = 4.0
"""How many times the tallest bar an interval may reach before it is cut, with an arrow."""
_Place = Literal["outside lower left", "outside upper left"]
NARROW = 3.7
"""Inches: a telephone held upright shows so much at the size it was drawn."""


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
    marks: Sequence[FigureBar] | Sequence[StackedBar]


def bars_and_stacks(
    panels: Sequence[FigurePanel], *, colours: Mapping[str, str] = POLARITY, narrow: bool = False
) -> str:
    """An SVG with a panel each for stacked shares or for bars with intervals.

    The key of the shares stands above, that of the bars below: two keys, no colour in both. ``narrow`` puts
    the panels under each other.
    """
    longest = max((len(panel.marks) for panel in panels if _is_stacked(panel)), default=4)
    height = max(2.6, 0.6 + (0.36 if narrow else 0.26) * longest)
    columns, width = (1, NARROW) if narrow else (2, 5.0)
    with _canvas(len(panels), columns=columns, height=height, width=width) as (canvas, axes):
        for axis, panel in zip(axes, panels, strict=False):
            stacks = [mark for mark in panel.marks if isinstance(mark, StackedBar)]
            if stacks:
                _draw_stacks(axis, [_two_lines(stack) for stack in stacks] if narrow else stacks, colours)
            else:
                _draw_bars(axis, [mark for mark in panel.marks if isinstance(mark, FigureBar)])
            axis.set_title(panel.title, loc="left", fontsize=10)
        bars = [mark for panel in panels for mark in panel.marks if isinstance(mark, FigureBar)]
        _key(
            canvas, colours if any(_is_stacked(panel) for panel in panels) else {}, place="outside upper left"
        )
        _key(canvas, _series(bars), across=2 if narrow else 6)
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
    with _canvas(len(panels), columns=columns, height=3.2, width=width) as (canvas, axes):
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
    with open_canvas(1, 1, width=NARROW, height=height) as (canvas, axes):
        _draw_bars(axes[0], bars, lying=True)
        axes[0].set_xlabel(unit, fontsize=8)
        _key(canvas, _series(bars), across=2)
        return to_svg(canvas)


@contextmanager
def open_canvas(
    columns: int, rows: int, *, width: float, height: float
) -> Iterator[tuple[Canvas, list[Axes]]]:
    """A canvas of ``columns`` x ``rows`` panels in our style, for a figure of a paper's own kind."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure as Canvas
    except ImportError as error:
        raise MissingLibraryError(
            "figures are drawn with matplotlib, which is not installed", fix="pip install 'evenhand[viz]'"
        ) from error
    # A fixed salt and no date: the same numbers give the same file.
    style: dict[Any, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": "evenhand",
        "font.size": 9,
        "font.family": "sans-serif",
    }
    style |= {"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False}
    with rc_context(style):
        canvas = Canvas(figsize=(width, height), layout="constrained")
        yield canvas, list(canvas.subplots(rows, columns, squeeze=False).flat)


def to_svg(canvas: Canvas) -> str:
    """The canvas as the text of an SVG file."""
    buffer = io.StringIO()
    canvas.savefig(buffer, format="svg", metadata={"Date": None, "Creator": "evenhand"})
    return buffer.getvalue()


def _is_stacked(panel: FigurePanel) -> bool:
    return any(isinstance(mark, StackedBar) for mark in panel.marks)


@contextmanager
def _canvas(
    panels: int, *, columns: int, height: float, width: float = 5.0
) -> Iterator[tuple[Canvas, list[Axes]]]:
    columns = min(columns, max(1, panels))
    rows = max(1, -(-panels // columns))
    with open_canvas(columns, rows, width=width * columns, height=height * rows) as (canvas, axes):
        for spare in axes[panels:]:
            spare.set_visible(False)
        yield canvas, axes


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
    turned = max((len(label) for label in labels), default=0) * len(labels) > 40
    axis.set_xticks(
        range(len(labels)), labels, rotation=35 if turned else 0, ha="right" if turned else "center"
    )
    axis.axhline(0, color="#17191d", linewidth=0.6)


def _upper_limit(bars: Sequence[FigureBar]) -> float:
    """Where the scale ends: intervals far above every bar would leave no room to see the bars."""
    tallest = max((bar.value for bar in bars if bar.value is not None), default=0.0)
    longest = max((bar.high for bar in bars if bar.high is not None), default=0.0)
    return _ROOM * tallest if 0 < _ROOM * tallest < longest else math.inf


def _draw_stacks(axis: Axes, stacks: Sequence[StackedBar], colours: Mapping[str, str]) -> None:
    for row, stack in enumerate(reversed(stacks)):
        left = 0.0
        for part, share in stack.parts.items():
            axis.barh(row, share, left=left, color=colours[part], height=0.72)
            if share >= 0.08:
                light = part == "neutral"
                where = (left + share / 2, row)
                axis.annotate(
                    f"{share:.0%}".replace("%", " %"),
                    where,
                    ha="center",
                    va="center",
                    fontsize=7,
                    color="#17191d" if light else "#fff",
                )
            left += share
    axis.set_yticks(range(len(stacks)), [stack.label for stack in reversed(stacks)])
    axis.set_xlim(0, 1)
    axis.set_ylim(-0.6, len(stacks) - 0.4)
    axis.set_xticks([0, 0.5, 1], ["0", "50 %", "100 %"])


def _two_lines(stack: StackedBar) -> StackedBar:
    """The stack with the parts of its label under each other."""
    return StackedBar(stack.label.replace(", ", "\n"), stack.parts)


def _series(bars: Sequence[FigureBar]) -> dict[str, str]:
    """The colour of every series; none where there is only one."""
    names = dict.fromkeys(bar.series for bar in bars)
    return {name: SERIES[at % len(SERIES)] for at, name in enumerate(names)} if len(names) > 1 else {}


def _key(
    canvas: Canvas, colours: Mapping[str, str], *, place: _Place = "outside lower left", across: int = 6
) -> None:
    if not colours:
        return
    swatches = [_swatch(colour) for colour in colours.values()]
    canvas.legend(swatches, list(colours), loc=place, ncols=min(across, len(colours)), fontsize=9)


def _swatch(colour: str) -> Patch:
    from matplotlib.patches import Patch

    return Patch(color=colour)
