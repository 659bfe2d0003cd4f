"""Drawings of a validation: scores by what people say, and agreement over cuts. SVG, no script, no style."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from markupsafe import Markup

from evenhand.report.wording import format_number

_WIDTH, _HEIGHT, _LEFT, _TOP = 560, 190, 46, 14
_COLOURS = ("#ad4706", "#6d737c", "#1d5bb8", "#7a3b9a", "#0a6a70", "#8a6d00")
_DASHES = ("", "6 3", "2 3", "8 3 2 3", "1 4", "12 4")
Row = Mapping[str, object]


def spreads_svg(rows: Sequence[Row], cuts: Sequence[float] = ()) -> Markup:
    """The share of texts in every bin of the score, one line for each of people's labels (Figure 6)."""
    shares = [_shares(row) for row in rows]
    top = max((max(share) for share in shares), default=0.0)
    if not rows or top <= 0:
        return Markup()
    low, high = _real(rows[0], "low"), _real(rows[0], "high")
    parts = [_frame(low, high, f"{top:.0%}", "share of the texts with that label", "score")]
    for cut in cuts:
        if low <= cut <= high:
            x = _across(cut, low, high)
            parts.append(_line(x, _TOP, x, _TOP + _HEIGHT, "3 3"))
    for place, (row, share) in enumerate(zip(rows, shares, strict=True)):
        parts += _stairs(share, top, place)
        parts.append(_key(place, f"{row['label']} ({row['n']})"))
    return _svg(parts, "Distributions of the score, one line for each of people's labels")


def curve_svg(points: Sequence[Row], best: Row) -> Markup:
    """Cohen's kappa at every cut, with the metric's own cut and the best one, and the best one's interval."""
    known = [(_real(row, "cut"), _real(row, "kappa")) for row in points if isinstance(row["kappa"], float)]
    if len(known) < 2:
        return Markup()
    low, high = known[0][0], known[-1][0]
    bottom, top = min(0.0, *(kappa for _, kappa in known)), max(0.05, *(kappa for _, kappa in known))
    parts = [_frame(low, high, format_number(top), "Cohen's kappa", "cut", bottom=format_number(bottom))]
    ends = best["cut_low"], best["cut_high"]
    if isinstance(ends[0], float) and isinstance(ends[1], float):
        left, right = (
            _across(min(max(float(end), low), high), low, high) for end in ends if isinstance(end, float)
        )
        parts.append(
            f'<rect x="{left:.1f}" y="{_TOP}" width="{max(right - left, 1):.1f}" height="{_HEIGHT}" '
            'fill="#1d5bb8" fill-opacity=".13"/>'
        )
    path = " ".join(f"{_across(cut, low, high):.1f},{_up(kappa, bottom, top):.1f}" for cut, kappa in known)
    parts.append(f'<polyline points="{path}" fill="none" stroke="#1d5bb8" stroke-width="1.8"/>')
    for name, cut, dash in (("own", best["own"], "3 3"), ("best", best["cut"], "")):
        if isinstance(cut, float) and low <= cut <= high:
            x = _across(cut, low, high)
            parts += [_line(x, _TOP, x, _TOP + _HEIGHT, dash)]
            parts.append(f'<text x="{x + 4:.1f}" y="{_TOP + (12 if name == "own" else 26)}">{name}</text>')
    return _svg(parts, "Agreement with people at every cut; the shaded part is the interval of the best cut")


def _shares(row: Row) -> list[float]:
    counts = row["counts"]
    values = [float(count) for count in counts] if isinstance(counts, Sequence) else []
    total = sum(values)
    return [value / total for value in values] if total else []


def _stairs(share: Sequence[float], top: float, place: int) -> list[str]:
    step, y0 = _WIDTH / len(share), _TOP + _HEIGHT
    points: list[tuple[float, float]] = [(_LEFT, y0)]
    for at, value in enumerate(share):
        y = y0 - _HEIGHT * value / top
        points += [(_LEFT + at * step, y), (_LEFT + (at + 1) * step, y)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in [*points, (_LEFT + _WIDTH, y0)])
    dash = f' stroke-dasharray="{_DASHES[place % 6]}"' if _DASHES[place % 6] else ""
    return [
        f'<polyline points="{path}" fill="none" stroke="{_COLOURS[place % 6]}" stroke-width="1.8"{dash}/>'
    ]


def _key(place: int, text: str) -> str:
    y = _TOP + 12 + 18 * place
    x = _LEFT + _WIDTH + 14
    dash = f' stroke-dasharray="{_DASHES[place % 6]}"' if _DASHES[place % 6] else ""
    line = (
        f'<line x1="{x}" x2="{x + 26}" y1="{y - 4}" y2="{y - 4}" stroke="{_COLOURS[place % 6]}" '
        f'stroke-width="2"{dash}/>'
    )
    return f'{line}<text x="{x + 32}" y="{y}">{escape(text)}</text>'


def _frame(low: float, high: float, top: str, upward: str, across: str, *, bottom: str = "0") -> str:
    y = _TOP + _HEIGHT
    return (
        f'<rect x="{_LEFT}" y="{_TOP}" width="{_WIDTH}" height="{_HEIGHT}" fill="none" '
        'stroke="currentColor" stroke-opacity=".25"/>'
        f'<text x="{_LEFT - 6}" y="{_TOP + 10}" text-anchor="end">{escape(top)}</text>'
        f'<text x="{_LEFT - 6}" y="{y}" text-anchor="end">{escape(bottom)}</text>'
        f'<text x="{_LEFT}" y="{y + 16}">{format_number(low)}</text>'
        f'<text x="{_LEFT + _WIDTH}" y="{y + 16}" text-anchor="end">{format_number(high)}</text>'
        f'<text x="{_LEFT + _WIDTH / 2}" y="{y + 16}" text-anchor="middle">{escape(across)}</text>'
        f'<text x="{_LEFT + 6}" y="{_TOP - 4}">{escape(upward)}</text>'
    )


def _line(x1: float, y1: float, x2: float, y2: float, dash: str) -> str:
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="currentColor" stroke-opacity=".55"{dashed}/>'


def _svg(parts: Sequence[str], label: str) -> Markup:
    view = f"0 0 {_LEFT + _WIDTH + 170} {_TOP + _HEIGHT + 26}"
    head = f'<svg class="drawing" viewBox="{view}" role="img" aria-label="{escape(label)}">'
    return Markup(f"{head}{''.join(parts)}</svg>")


def _across(value: float, low: float, high: float) -> float:
    return _LEFT + _WIDTH * (value - low) / ((high - low) or 1.0)


def _up(value: float, bottom: float, top: float) -> float:
    return _TOP + _HEIGHT * (1 - (value - bottom) / ((top - bottom) or 1.0))


def _real(row: Row, name: str) -> float:
    value = row[name]
    return float(value) if isinstance(value, int | float) else 0.0
