"""The texts behind the bars, as many as the page has room for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from evenhand.core.digests import Json
from evenhand.report.tables import finite_frame
from evenhand.report.wording import visible
from evenhand.store.run import Run

LONGEST = 800
"""Characters of a text the page shows; the run folder keeps the whole."""
_PER_BAR = (40, 30, 20, 12, 8, 4, 2)
_BAR = ("suite", "model", "axis", "group", "metric", "output")


@dataclass(frozen=True, slots=True)
class Texts:
    """What the page embeds: each text once, and which of them stand behind which bar."""

    data: dict[str, Json]
    per_bar: int
    """The most texts a bar has on the page."""
    left_out: int
    """Examples of the table that did not fit."""


def texts(run: Run, *, budget: int) -> Texts:
    """The examples of a run in at most ``budget`` bytes of JSON, the same number for every bar.

    Where they do not fit, every bar keeps fewer, lowest, highest and drawn ones in turn.
    """
    table = _ranked(finite_frame(run.table("examples")))
    for per_bar in _PER_BAR:
        kept = table.filter(pl.col("rank") < per_bar)
        if _least_size(kept) > budget:
            continue
        data = _embedded(kept)
        if len(json.dumps(data, ensure_ascii=False).encode("utf-8", "replace")) <= budget:
            return Texts(data, per_bar, table.height - kept.height)
    return Texts(_embedded(table.clear()), 0, table.height)


def _least_size(table: pl.DataFrame) -> int:
    """Bytes the JSON of these rows has at the least: it spares making what cannot fit."""
    shown = pl.col("prompt", "text").str.slice(0, LONGEST)
    lengths = table.select(shown).unique().select(pl.col("prompt", "text").str.len_bytes().sum())
    return int(sum(lengths.row(0))) + 20 * table.height


def _ranked(table: pl.DataFrame) -> pl.DataFrame:
    """Rows numbered in each bar so that a prefix holds each kind of example alike."""
    turn = pl.int_range(pl.len()).over(*_BAR, "why")
    kind = pl.col("why").replace_strict({"lowest": 0, "highest": 1}, default=2, return_dtype=pl.Int64)
    ordered = table.with_columns(turn=turn, kind=kind).sort("turn", "kind", maintain_order=True)
    ranked = ordered.with_columns(rank=pl.int_range(pl.len()).over(*_BAR))
    return ranked.sort("kind", "turn", maintain_order=True).drop("turn", "kind")


def _embedded(table: pl.DataFrame) -> dict[str, Json]:
    bars: dict[tuple[str, ...], list[Json]] = {}
    places: dict[tuple[str, str], int] = {}
    for row in table.iter_rows(named=True):
        key = (_clipped(row["prompt"] or ""), _clipped(row["text"] or ""))
        place = places.setdefault(key, len(places))
        bar = bars.setdefault(tuple(row[column] for column in _BAR), [])
        bar.append([place, row["why"], row["value"], row["label"]])
    return {"texts": [list(key) for key in places], "bars": list(_bars(bars))}


def _bars(bars: dict[tuple[str, ...], list[Json]]) -> Iterator[Json]:
    for key, examples in bars.items():
        yield [*key, examples]


def _clipped(text: str) -> str:
    return visible(text if len(text) <= LONGEST else text[:LONGEST] + " …")
