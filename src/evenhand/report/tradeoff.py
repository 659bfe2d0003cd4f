"""Bias against perplexity over strength: a table in Markdown, and a drawing."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import polars as pl

from evenhand.report.markdown_text import escaped
from evenhand.report.scale import Scale

_WIDTH, _HEIGHT, _LEFT, _TOP = 420, 220, 60, 34
_COLOURS = {"indirect": "#1d5bb8", "direct": "#ad4706"}
_LEAST = 0.01
"""Bias that every panel reaches up to: the noise of rounding is not drawn as if it were a trend."""
NOTES = (
    "Bias is the mean distance of the options beyond what chance gives, with its interval. Perplexity is "
    "that of the half of the texts no n-gram model was trained on; at strength 0 it is the model's own text."
)
Row = Mapping[str, object]


def tradeoff_markdown(table: pl.DataFrame) -> str:
    """The sweep as a table."""
    head = "| attribute | bias | strength | beyond chance | interval | p | perplexity (n-grams) | (model) |"
    lines = [_line(row) for row in table.iter_rows(named=True)]
    return "\n".join(["# Bias against perplexity", "", head, "|" + " --- |" * 8, *lines, "", NOTES, ""])


def tradeoff_svg(table: pl.DataFrame) -> str:
    """A panel for each attribute: perplexity to the right, bias upwards, one point a strength."""
    attributes = table["attribute"].unique(maintain_order=True).to_list()
    panels = [
        _panel(table.filter(pl.col("attribute") == attribute), attribute, place)
        for place, attribute in enumerate(attributes)
    ]
    height = len(attributes) * (_HEIGHT + 80)
    # A ground of its own: on a dark page black letters would not be seen.
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH + 140} {height}" role="img" '
        'font-family="sans-serif" font-size="11"><title>Bias beyond chance against perplexity, by strength'
        f'</title><rect width="100%" height="100%" fill="#ffffff"/>{"".join(panels)}</svg>\n'
    )


def _line(row: Row) -> str:
    interval = escaped(str(row.get("null_reason") or ""))
    if row["low"] is not None:
        interval = f"{_number(row['low'])} to {_number(row['high'])}"
    cells = (
        escaped(str(row["attribute"])),
        escaped(str(row["bias"])),
        f"{row['strength']:g}",
        _number(row["corrected"]),
        interval,
        _number(row["p"], 3),
        _number(row["perplexity_ngrams"], 1),
        _number(row["perplexity_model"], 1),
    )
    return f"| {' | '.join(cells)} |"


def _panel(rows: pl.DataFrame, attribute: str, place: int) -> str:
    known = rows.drop_nulls(["corrected", "perplexity_ngrams"])
    title = f'<text x="0" y="-14" font-weight="bold">{escape(attribute)}</text>'
    shift = f'<g transform="translate({_LEFT},{_TOP + place * (_HEIGHT + 80)})">{title}'
    if known.is_empty():
        return f'{shift}<text y="10">Not drawn: bias or perplexity is not known.</text></g>'
    across = _scale(known["perplexity_ngrams"].to_list())
    upward = _scale(
        [0.0, _LEAST, *known["corrected"], *known["low"].drop_nulls(), *known["high"].drop_nulls()]
    )
    series = [
        _series(known.filter(pl.col("bias") == bias), colour, across, upward, number)
        for number, (bias, colour) in enumerate(_COLOURS.items())
    ]
    zero = _HEIGHT - _HEIGHT * upward.at(0.0) / 100
    axes = (
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="none" stroke="#c9ccd1"/>'
        f'<line x2="{_WIDTH}" y1="{zero:.1f}" y2="{zero:.1f}" stroke="#17191d" stroke-dasharray="3 3"/>'
        f'<text x="-6" y="10" text-anchor="end">{upward.high:.3f}</text>'
        f'<text x="-6" y="{_HEIGHT}" text-anchor="end">{upward.low:.3f}</text>'
        f'<text y="{_HEIGHT + 16}">{across.low:.1f}</text>'
        f'<text x="{_WIDTH}" y="{_HEIGHT + 16}" text-anchor="end">{across.high:.1f}</text>'
        f'<text x="{_WIDTH / 2}" y="{_HEIGHT + 30}" text-anchor="middle">perplexity (n-grams)</text>'
        f'<text transform="translate(-44,{_HEIGHT / 2}) rotate(-90)" text-anchor="middle">bias beyond chance'
        "</text>"
    )
    return f"{shift}{axes}{''.join(series)}</g>"


def _series(rows: pl.DataFrame, colour: str, across: Scale, upward: Scale, number: int) -> str:
    if rows.is_empty():
        return ""
    points = []
    for row in rows.iter_rows(named=True):
        x, y = _WIDTH * across.at(row["perplexity_ngrams"]) / 100, _up(upward, row["corrected"])
        if row["low"] is not None:
            ends = f'y1="{_up(upward, row["low"]):.1f}" y2="{_up(upward, row["high"]):.1f}"'
            points.append(f'<line x1="{x:.1f}" x2="{x:.1f}" {ends} stroke="{colour}" opacity=".5"/>')
        points.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>')
        points.append(f'<text x="{x + 5:.1f}" y="{y - 5:.1f}" fill="{colour}">{row["strength"]:g}</text>')
    name = escape(str(rows["bias"][0]))
    key = f'<text x="{_WIDTH + 10}" y="{12 + 16 * number}" fill="{colour}">{name}</text>'
    return key + "".join(points)


def _up(upward: Scale, value: float) -> float:
    return _HEIGHT - _HEIGHT * upward.at(value) / 100


def _scale(values: list[float]) -> Scale:
    low, high = min(values), max(values)
    margin = (high - low) * 0.08 or 0.5
    return Scale(low - margin, high + margin, ())


def _number(value: object, digits: int = 4) -> str:
    return f"{value:z.{digits}f}" if isinstance(value, float) else ""
