"""The charts of docs/performance.md: SVG written by hand, so that they are the same on every machine."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bars import Bar

_STYLE = """<style>
.page { fill: #ffffff } text { font: 12px sans-serif; fill: #1f2933 }
.small { font-size: 11px; fill: #52606d } .head { font-weight: bold } .grid { stroke: #d2d6dc }
.bar { stroke: #1f2933; stroke-width: 1.5; stroke-dasharray: 4 3 }
.holds { fill: #0f766e } .missed { fill: #b45309 }
.c0 { color: #0f766e } .c1 { color: #1d4ed8 } .c2 { color: #b45309 }
@media (prefers-color-scheme: dark) {
.page { fill: #1b1f27 } text { fill: #e4e7eb } .small { fill: #b3bcc7 } .grid { stroke: #3e4c59 }
.bar { stroke: #e4e7eb } .holds { fill: #2dd4bf } .missed { fill: #fbbf24 }
.c0 { color: #2dd4bf } .c1 { color: #93c5fd } .c2 { color: #fbbf24 } }
</style>"""
_LINES = 3
"""Colours a chart of curves has."""
_MACHINES = {"cpu": "On a CPU", "gpu": "On a GPU"}
_ROW, _LEFT, _WIDTH, _TOP = 36, 540, 1000, 40
_PANEL, _HIGH = 330, 220


def ratio_chart(rows: Sequence[tuple[Bar, float]]) -> str:
    """Every ratio as a multiple of its bar, on a logarithmic scale; right of the dashed line a bar holds."""
    top = max([2.0, *(_headroom(bar, figure) for bar, figure in rows)])
    low, high = math.log10(0.5), math.log10(top) + 0.12
    scale = (_WIDTH - _LEFT - 110) / (high - low)

    def place(times: float) -> float:
        return _LEFT + (math.log10(max(times, 0.5)) - low) * scale

    lines: list[str] = []
    y = _TOP
    for machine, head in _MACHINES.items():
        chosen = [(bar, figure) for bar, figure in rows if bar.machine == machine]
        if chosen:
            lines.append(_text(_LEFT - 8, y + 20, head, "head", anchor="end"))
        for number, (bar, figure) in enumerate(chosen, 1):
            lines += _ratio(bar, figure, y + number * _ROW, place)
        y += _ROW * (len(chosen) + bool(chosen))
    scale_of = [_text(_LEFT, 14, "times as good as the bar asks", "small"), *_grid(place, top, y + 12)]
    return _svg(_WIDTH, y + 12, "Ratios as multiples of their bars", [*scale_of, *lines])


def _headroom(bar: Bar, figure: float) -> float:
    return bar.bar / figure if bar.at_most else figure / bar.bar


def _ratio(bar: Bar, figure: float, y: float, place: Callable[[float], float]) -> Iterator[str]:
    """One bar of the chart with its names and its verdict."""
    yield _text(_LEFT - 8, y + 12, _cut(bar.work), anchor="end")
    yield _text(_LEFT - 8, y + 26, _cut(_code(f"against {bar.against}")), "small", anchor="end")
    left, right = sorted((place(1), place(_headroom(bar, figure))))
    kind = "holds" if bar.holds(figure) else "missed"
    wide = max(right - left, 1)
    yield f'<rect class="{kind}" x="{left:.1f}" y="{y + 6}" width="{wide:.1f}" height="16"/>'
    yield _text(max(right, place(1)) + 5, y + 18, _verdict(bar, figure), "small")


def _verdict(bar: Bar, figure: float) -> str:
    """The figure and its bar; not by colour alone does one see which is missed."""
    sign = "≤" if bar.at_most else "≥"
    return f"{_times(figure)} ({sign} {_times(bar.bar)})" + ("" if bar.holds(figure) else ", missed")


def _code(said: str) -> str:
    return said.replace("`", "")


def growth_chart(curves: Mapping[str, Sequence[tuple[float, float, float]]]) -> str:
    """Seconds and mebibytes by number of texts, both axes logarithmic: linear growth is a straight line."""
    body: list[str] = []
    for panel, (title, column) in enumerate((("seconds", 1), ("peak memory, MiB", 2))):
        left = 60 + panel * (_PANEL + 70)
        points = [(point[0], point[column]) for curve in curves.values() for point in curve]
        x, y = _log(p[0] for p in points), _log(p[1] for p in points)
        body += [_text(left, 16, title, "small"), *_axes(left, x, y)]
        for number, (name, curve) in enumerate(curves.items()):
            path = " ".join(
                f"{left + _share(p[0], x) * _PANEL:.1f},{30 + (1 - _share(p[column], y)) * _HIGH:.1f}"
                for p in curve
            )
            kind = f'class="c{number % _LINES}"'
            body.append(
                f'<polyline {kind} points="{path}" fill="none" stroke="currentColor" stroke-width="2"/>'
            )
            if panel == 0:
                at = left + 10 + number * 90
                body.append(
                    f'<rect {kind} x="{at}" y="{_HIGH + 62}" width="12" height="4" fill="currentColor"/>'
                    + _text(at + 16, _HIGH + 68, name)
                )
    return _svg(2 * (_PANEL + 80), _HIGH + 80, "Growth of time and memory", body)


def _axes(left: float, x: tuple[int, int], y: tuple[int, int]) -> Iterator[str]:
    for power in range(x[0], x[1] + 1):
        at = left + _share(10.0**power, x) * _PANEL
        yield f'<line class="grid" x1="{at:.1f}" y1="30" x2="{at:.1f}" y2="{30 + _HIGH}"/>'
        yield _text(at, _HIGH + 48, f"10^{power}", "small", anchor="middle")
    for power in range(y[0], y[1] + 1):
        at = 30 + (1 - _share(10.0**power, y)) * _HIGH
        yield f'<line class="grid" x1="{left}" y1="{at:.1f}" x2="{left + _PANEL}" y2="{at:.1f}"/>'
        yield _text(left - 6, at + 4, f"{10.0**power:g}", "small", anchor="end")


def _log(values: Iterable[float]) -> tuple[int, int]:
    found = [math.log10(value) for value in values if value > 0]
    return math.floor(min(found)), math.ceil(max(found))


def _share(value: float, ends: tuple[int, int]) -> float:
    return (math.log10(max(value, 1e-9)) - ends[0]) / max(ends[1] - ends[0], 1)


def _grid(place: Callable[[float], float], top: float, height: float) -> Iterator[str]:
    for times in (0.5, 1, 2, 5, 10, 20, 50, 100):
        if times <= top * 1.2:
            at, kind = place(times), "bar" if times == 1 else "grid"
            yield f'<line class="{kind}" x1="{at:.1f}" y1="{_TOP - 4}" x2="{at:.1f}" y2="{height - 8}"/>'
            yield _text(at, 30, f"{times:g}", "small", anchor="middle")


def _text(x: float, y: float, said: str, kind: str = "", *, anchor: str = "start") -> str:
    style = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{style}>{escape(said)}</text>'


def _times(figure: float) -> str:
    return f"{figure:,.0f}x" if figure >= 100 else f"{figure:.3g}x"


def _cut(name: str) -> str:
    return name if len(name) <= 98 else name[:95] + "..."


def _svg(width: float, height: float, title: str, body: Iterable[str]) -> str:
    # A ground of its own: a page may be light where the reader's system is dark.
    inner = "\n".join([_STYLE, '<rect class="page" width="100%" height="100%"/>', *body])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-label="{escape(title)}">\n{inner}\n</svg>\n'
    )
