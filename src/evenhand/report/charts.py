"""The drawings of every report: scales with round ticks, and the few shapes that charts are made of.

A chart in a row of a table has its positions in percent of the width, so that it fits any screen; the style
sheet gives its parts their height and colour. A `Plot` has a frame of its own and maps values to the units of
its drawing. Every value that enters a drawing is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from markupsafe import Markup, escape

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_WANTED_TICKS = 5
_EDGE = 2.0
"""Percent kept free on each side, so that a dot on the edge is drawn whole."""


@dataclass(frozen=True, slots=True)
class AxisScale:
    """A range of values and its round ticks."""

    low: float
    high: float
    ticks: tuple[float, ...]

    def at(self, value: float) -> float:
        """The position of a value in percent, kept on the chart."""
        share = (value - self.low) / (self.high - self.low)
        return round(_EDGE + (100 - 2 * _EDGE) * min(1.0, max(0.0, share)), 2)

    def span(self, low: float | None, high: float | None) -> tuple[float, float] | None:
        """Start and width of an interval in percent; None where it has no end."""
        if low is None or high is None:
            return None
        start = self.at(low)
        return start, round(self.at(high) - start, 2)


def build_scale(values: Iterable[float], *, share: bool) -> AxisScale | None:
    """The scale that shows all values, ending at ticks; None where there are none. Shares stay in 0 to 1."""
    known = sorted(values)
    if not known:
        return None
    low, high = known[0], known[-1]
    if high - low < 1e-9:
        margin = 0.05 if share else max(abs(low) * 0.1, 0.05)
        low, high = low - margin, high + margin
    if share:
        low, high = max(0.0, low), min(1.0, high)
    rough = (high - low) / _WANTED_TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(step * power for step in _STEPS if step * power >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = tuple(round(index * step, 12) for index in range(first, last + 1))
    return AxisScale(ticks[0], ticks[-1], ticks)


def element(name: str, *content: str, **attributes: object) -> Markup:
    """An element of HTML or SVG; ``class_`` and ``stroke_width`` are named without and with hyphens.

    Attributes that are None or empty are left out; everything that is not markup is escaped.
    """
    start = name
    for key, value in attributes.items():
        if value not in (None, ""):
            words = f"{value:g}" if isinstance(value, float) else str(value)
            start += f' {key.rstrip("_").replace("_", "-")}="{escape(words)}"'
    return Markup(f"<{start}>{''.join(map(escape, content))}</{name}>")


def draw_interval(
    dot: float | None,
    bar: tuple[float, float] | None,
    *,
    reference: float | None = None,
    style: str = "",
    extra: str = "",
) -> Markup:
    """A dot, the start and width of its interval, and a line to compare with, in percent of the width."""
    parts = [extra]
    if reference is not None:
        parts.append(element("rect", class_="ref", x=f"{reference}%"))
    if bar:
        parts.append(element("rect", class_="bar", x=f"{bar[0]}%", width=f"{bar[1]}%"))
    if dot is not None:
        parts.append(element("circle", cx=f"{dot}%"))
    return element("svg", *parts, class_=style)


def draw_estimate(value: float, low: float, high: float, *, zero: str = "0") -> Markup:
    """An estimate and its interval on a line that ends where the interval or zero does."""
    line = AxisScale(min(0.0, low), max(0.0, high), ()) if low < high else AxisScale(-1.0, 1.0, ())
    at = line.at(0.0)
    mark = element("rect", class_="ref", x=f"{at}%") + element("text", zero, x=f"{at}%", y=12)
    return draw_interval(line.at(value), line.span(low, high), style="interval", extra=mark)


def draw_pieces(amounts: Mapping[str, int], *, style: str) -> Markup:
    """A bar cut into pieces as wide as their amounts; each amount with the CSS class of its piece."""
    ends = [100 * end / max(1, sum(amounts.values())) for end in accumulate(amounts.values())]
    parts = [
        element("rect", class_=name, x=f"{round(start, 3)}%", width=f"{round(end - start, 3)}%")
        for name, start, end in zip(amounts, [0.0, *ends], ends, strict=False)
        if end > start
    ]
    return element("svg", *parts, class_=style, aria_hidden="true")


def draw_swatches(*names: str) -> Markup:
    """Samples of colours for a legend."""
    return Markup("").join(element("span", class_=f"swatch {name}".strip()) for name in names)


def draw_sample(style: str = "") -> Markup:
    """A dot with its interval for a legend."""
    return draw_interval(50, (5, 90), style=f"sample {style}".strip())


COLOURS: Final = ("#ad4706", "#6d737c", "#1d5bb8", "#7a3b9a", "#0a6a70", "#8a6d00")
DASHES: Final = ("", "6 3", "2 3", "8 3 2 3", "1 4", "12 4")
"""Lines differ in their dashes as well: not every reader sees all colours."""
Point = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A frame in which values are drawn: the range of both axes, and the frame's place in the drawing."""

    x: Point
    y: Point
    width: float
    height: float
    left: float = 0.0
    top: float = 0.0

    def at(self, x: float, y: float) -> Point:
        """The place of a value in the drawing."""
        across = (x - self.x[0]) / ((self.x[1] - self.x[0]) or 1.0)
        up = (y - self.y[0]) / ((self.y[1] - self.y[0]) or 1.0)
        return round(self.left + self.width * across, 1), round(self.top + self.height * (1 - up), 1)

    def line(self, points: Iterable[Point], **style: object) -> Markup:
        """A line through values."""
        path = " ".join("{:.1f},{:.1f}".format(*self.at(x, y)) for x, y in points)
        return element("polyline", points=path, fill="none", **style)

    def dot(self, x: float, y: float, *, size: float, **style: object) -> Markup:
        """A dot at a value; pages style every circle as the dot of a row, so that it is an ellipse."""
        at = self.at(x, y)
        return element("ellipse", cx=at[0], cy=at[1], rx=size, ry=size, **style)

    def upright(self, x: float, **style: object) -> Markup:
        """A line from the bottom to the top of the frame."""
        return self.segment((x, self.y[0]), (x, self.y[1]), **style)

    def segment(self, start: Point, end: Point, **style: object) -> Markup:
        """A straight line between two values."""
        (x1, y1), (x2, y2) = self.at(*start), self.at(*end)
        return element("line", x1=x1, x2=x2, y1=y1, y2=y2, **style)

    def band(self, low: float, high: float, **style: object) -> Markup:
        """A field between two values of the lower axis."""
        start, end = self.at(low, self.y[1]), self.at(high, self.y[1])
        width = max(round(end[0] - start[0], 1), 1)
        return element("rect", x=start[0], y=start[1], width=width, height=self.height, **style)

    def frame(self, *, low: str, high: str, bottom: str, top: str, across: str, upward: str) -> Markup:
        """The box with the ends of both axes and their names."""
        right, base = self.left + self.width, self.top + self.height
        box = {"x": self.left, "y": self.top, "width": self.width, "height": self.height}
        texts = (
            (top, self.left - 6, self.top + 10, "end"),
            (bottom, self.left - 6, base, "end"),
            (low, self.left, base + 16, ""),
            (high, right, base + 16, "end"),
            (across, self.left + self.width / 2, base + 16, "middle"),
            (upward, self.left + 6, self.top - 4, ""),
        )
        return element("rect", **box, fill="none", stroke="currentColor", stroke_opacity=0.25) + Markup(
            ""
        ).join(element("text", text, x=x, y=y, text_anchor=anchor) for text, x, y, anchor in texts)


def draw(parts: Iterable[Markup], *, width: float, height: float, label: str, style: str = "") -> Markup:
    """A drawing of its own, with words for readers who do not see it."""
    view = f"0 0 {width:g} {height:g}"
    return element("svg", *parts, class_=style, viewBox=view, role="img", aria_label=label)
