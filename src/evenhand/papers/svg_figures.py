"""The papers' figure types, drawn with matplotlib as SVG; text stays text."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle, zip_longest
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from evenhand.core.errors import MissingLibraryError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

COLOURS = ("#1d5bb8", "#ad4706", "#0a6a70", "#7a3b9a", "#8a6d00", "#575d67", "#b3284a", "#3f7d20")
"""Distinct for colour-blind readers too; in the same order in every figure."""
POLARITY = {"negative": "#ad4706", "neutral": "#c9ccd1", "positive": "#0a6a70"}
SERIES = ("#1d5bb8", "#d0679a", "#3c414a", "#3d93d0", "#a67f00", "#5b2a86", "#3f7d20", "#6b3f1d")
"""Colours of grouped bars, such as sources; none of them is used in `POLARITY`."""
INK = "#17191d"
"""The colour of lines, and of text on a light background."""
_ROOM = 4.0
"""An interval longer than this many times the tallest bar is cut off, with an arrow."""
_Place = Literal["outside lower left", "outside upper left"]
NARROW = 3.7
"""Width in inches that a phone in portrait mode shows without scaling."""


def bars_and_stacks(panels: Mapping[str, pl.DataFrame], *, narrow: bool = False) -> str:
    """An SVG with one panel per title: stacked shares, or bars.

    The legend of the shares is above, that of the bars below, with no colour in both. ``narrow`` stacks the
    panels vertically, and breaks the labels of stacks into lines.
    """
    longest = max((panel.height for panel in panels.values() if "negative" in panel.columns), default=4)
    height = max(2.6, 0.6 + (0.36 if narrow else 0.26) * longest)
    if narrow:
        labels = pl.col("label").str.replace_all(", ", "\n")
        panels = {title: panel.with_columns(labels) for title, panel in panels.items()}
        return draw_panels(panels, columns=1, width=NARROW, height=height, across=2)
    return draw_panels(panels, height=height)


def draw_panels(
    panels: Mapping[str, pl.DataFrame],
    *,
    unit: str = "",
    columns: int = 2,
    width: float = 5.0,
    height: float = 3.2,
    top: float | None = None,
    across: int = 6,
    horizontal: bool = False,
) -> str:
    """An SVG with one panel per title: stacks, or grouped bars with one bar per series.

    Bars have the columns ``label``, ``series``, ``value``, ``low`` and ``high``; stacks have ``label``,
    ``negative``, ``neutral`` and ``positive``. ``width`` and ``height`` are those of one panel, in inches;
    ``top`` is the upper limit of every panel's scale, above 0. The legend has ``across`` columns;
    ``horizontal`` draws horizontal bars.
    """
    stacks = {title for title, panel in panels.items() if "negative" in panel.columns}
    bars = [panel for title, panel in panels.items() if title not in stacks]
    series = dict.fromkeys(name for panel in bars for name in panel["series"])
    colours = dict(zip(series, cycle(SERIES), strict=False))
    with open_canvas(list(panels), columns=columns, width=width, height=height) as (canvas, axes):
        for axis, (title, panel) in zip(axes, panels.items(), strict=False):
            if title in stacks:
                draw_stacks(axis, panel)
            else:
                _draw_bars(axis, panel, colours, horizontal=horizontal)
            (axis.set_xlabel if horizontal else axis.set_ylabel)(unit, fontsize=8)
            if top is not None:
                axis.set_ylim(0, top)
        _draw_legend(canvas, POLARITY if stacks else {}, place="outside upper left")
        _draw_legend(canvas, colours, across=across)
        return to_svg(canvas)


def horizontal_bars(bars: pl.DataFrame, *, unit: str) -> str:
    """An SVG for a narrow screen: one row per label, with a horizontal bar per series."""
    height = 0.8 + 0.13 * bars.height + 0.08 * bars["label"].n_unique()
    return draw_panels({"": bars}, unit=unit, width=NARROW, height=height, across=2, horizontal=True)


@contextmanager
def open_canvas(
    titles: Sequence[str], *, columns: int = 1, width: float, height: float, fontsize: float = 10
) -> Iterator[tuple[Canvas, list[Axes]]]:
    """A canvas in our style with one panel per title, of that size in inches, in rows of ``columns``."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure as Canvas
    except ImportError as error:
        raise MissingLibraryError(
            "figures need matplotlib, which is not installed", fix="pip install 'evenhand[viz]'"
        ) from error
    # A fixed salt and no date: the same numbers give the same file.
    style: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "evenhand", "font.size": 9}
    style |= {"font.family": "sans-serif", "legend.frameon": False}
    style |= {"axes.spines.top": False, "axes.spines.right": False}
    columns = min(columns, max(1, len(titles)))
    rows = max(1, -(-len(titles) // columns))
    with rc_context(style):
        canvas = Canvas(figsize=(width * columns, height * rows), layout="constrained")
        axes = list(canvas.subplots(rows, columns, squeeze=False).flat)
        for axis, title in zip_longest(axes, titles):
            axis.set_visible(title is not None)
            axis.set_title(title or "", loc="left", fontsize=fontsize)
        yield canvas, axes


def to_svg(canvas: Canvas) -> str:
    """The canvas as the text of an SVG file."""
    buffer = io.StringIO()
    canvas.savefig(buffer, format="svg", metadata={"Date": None, "Creator": "evenhand"})
    return buffer.getvalue()


def _draw_bars(axis: Axes, bars: pl.DataFrame, colours: Mapping[str, str], *, horizontal: bool) -> None:
    labels = bars["label"].unique(maintain_order=True).to_list()
    names, width = list(colours), min(0.8 / max(1, len(colours)), 0.4)
    limit = math.inf if horizontal else _upper_limit(bars)
    draw = axis.barh if horizontal else axis.bar
    rows = bars.drop_nulls("value").select("label", "series", "value", "low", "high")
    for label, series, value, low, high in rows.iter_rows():
        at = labels.index(label) + (names.index(series) - (len(names) - 1) / 2) * width
        draw(at, value, width * 0.92, color=colours[series])
        if low is not None and high is not None:
            line = ([at, at], [low, high])
            axis.plot(*(reversed(line) if horizontal else line), color=INK, linewidth=1)
        if high is not None and high > limit:
            axis.plot([at], [limit], color=INK, marker="^", markersize=5, clip_on=False)
    if horizontal:
        axis.set_yticks(range(len(labels)), labels)
        axis.set_ylim(len(labels) - 0.4, -0.6)
        axis.axvline(0, color=INK, linewidth=0.6)
        return
    if limit < math.inf:
        axis.set_ylim(top=limit)
    is_tight = max(map(len, labels), default=0) * len(labels) > 40
    rotation, side = (35, "right") if is_tight else (0, "center")
    axis.set_xticks(range(len(labels)), labels, rotation=rotation, ha=side)
    axis.axhline(0, color=INK, linewidth=0.6)


def _upper_limit(bars: pl.DataFrame) -> float:
    """The upper limit of the scale, so that very long intervals do not shrink the bars."""
    tallest, longest = (max(bars[name].drop_nulls(), default=0.0) for name in ("value", "high"))
    return _ROOM * tallest if 0 < _ROOM * tallest < longest else math.inf


def draw_stacks(
    axis: Axes, stacks: pl.DataFrame, colours: Mapping[str, str] = POLARITY, *, with_numbers: bool = True
) -> None:
    """Draw one bar per ``label``, the first on top, split into the shares that have a colour."""
    for row, stack in enumerate(stacks.reverse().iter_rows(named=True)):
        left = 0.0
        for part, colour in colours.items():
            share = stack[part] or 0.0
            axis.barh(row, share, left=left, color=colour, height=0.72)
            if with_numbers and share >= 0.08:
                text, position = f"{share:.0%}".replace("%", " %"), (left + share / 2, row)
                ink = INK if part == "neutral" else "#fff"
                axis.annotate(text, position, ha="center", va="center", fontsize=7, color=ink)
            left += share
    axis.set_yticks(range(stacks.height), stacks["label"].reverse().to_list())
    axis.set_xlim(0, 1)
    axis.set_ylim(-0.6, stacks.height - 0.4)
    axis.set_xticks([0, 0.5, 1], ["0", "50 %", "100 %"])


def _draw_legend(
    canvas: Canvas, colours: Mapping[str, str], *, place: _Place = "outside lower left", across: int = 6
) -> None:
    """Draw a legend for two or more colours."""
    from matplotlib.patches import Patch

    if len(colours) > 1:
        swatches = [Patch(color=colour) for colour in colours.values()]
        canvas.legend(swatches, list(colours), loc=place, ncols=min(across, len(colours)), fontsize=9)
