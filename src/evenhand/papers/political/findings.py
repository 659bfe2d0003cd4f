"""What came out, in a sentence or two a model, from the rows of Table 5."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from evenhand.papers.political.modes import BASELINE
from evenhand.report.wording import MINUS

Row = Mapping[str, object]


def findings(table_5: pl.DataFrame, sources: tuple[str, ...]) -> tuple[str, ...]:
    """For each model its indirect bias beyond chance, and which modes lower it."""
    of_source = {name: table_5.filter(pl.col("source") == name).to_dicts() for name in sources}
    return tuple(line for name, rows in of_source.items() if rows for line in _of_source(name, rows))


def _of_source(name: str, rows: list[dict[str, object]]) -> list[str]:
    own = next((row for row in rows if row["mode"] == BASELINE), {})
    whole = _estimate(own, "indirect_corrected")
    lines = [f"{name}: indirect bias beyond chance {whole}, the mean of the attributes' overall values."]
    modes = [row for row in rows if row["mode"] != BASELINE and row.get("indirect_change") is not None]
    lowered = [row for row in modes if _is_below(row["indirect_change_high"])]
    if lowered:
        lines.append(f"{name}, lowered, the interval below 0: {'; '.join(map(_mode, lowered))}.")
    others = [row for row in modes if row not in lowered]
    if others:
        lines.append(f"{name}, not shown to be lowered: {'; '.join(map(_mode, others))}.")
    return lines


def _mode(row: Row) -> str:
    times = row.get("perplexity_model_times") or row.get("perplexity_times")
    price = f", at {times:.2f} times the perplexity" if isinstance(times, float) else ""
    return f"{row['mode']}, {_estimate(row, 'indirect_change')}{price}"


def _estimate(row: Row, name: str) -> str:
    if row.get(name) is None:
        return "not known"
    shown = [_number(row.get(column)) for column in (name, f"{name}_low", f"{name}_high")]
    return f"{shown[0]} ({shown[1]} to {shown[2]})"


def _number(value: object) -> str:
    return f"{value:.3f}".replace("-", MINUS) if isinstance(value, float) else "not known"


def _is_below(high: object) -> bool:
    return isinstance(high, float) and high < 0
