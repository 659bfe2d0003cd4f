"""The texts behind the bars, as many as the page has room for, and the words behind their scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from evenhand.core.digests import Json
from evenhand.report.packing import packed
from evenhand.report.tables import BAR, finite_frame
from evenhand.report.wording import visible
from evenhand.report.words import embedded_words
from evenhand.store.files import text_size
from evenhand.store.run import Run

LONGEST = 800
"""Characters of a text the page shows; the run folder keeps the whole."""
_PER_BAR = (40, 30, 20, 12, 8, 4, 2)


@dataclass(frozen=True, slots=True)
class Texts:
    """What the page embeds: each text once, which of them stand behind which bar, and their words."""

    data: dict[str, Json]
    per_bar: int
    """The most texts a bar has on the page."""
    left_out: int
    """Examples of the table that did not fit."""


def texts(run: Run, *, budget: int) -> Texts:
    """The examples of a run in at most ``budget`` packed bytes, the same number for every bar.

    Where they do not fit, every bar keeps fewer, lowest, highest and drawn ones in turn.
    """
    table = _ranked(finite_frame(run.table("examples")))
    words = run.table("explanations")
    for per_bar in _PER_BAR:
        kept = table.filter(pl.col("rank") < per_bar)
        if _least_size(kept) > budget:
            continue
        data = _embedded(kept, words)
        if len(packed(data)) <= budget:
            return Texts(data, per_bar, table.height - kept.height)
    return Texts(_embedded(table.clear(), words.clear()), 0, table.height)


def _least_size(table: pl.DataFrame) -> int:
    """Bytes these rows have at the least, packed six to one: it spares making what cannot fit."""
    shown = table.select(pl.col("prompt", "text").str.slice(0, LONGEST)).unique()
    return sum(text_size(column) for column in shown.iter_columns()) // 6


def _ranked(table: pl.DataFrame) -> pl.DataFrame:
    """Rows numbered in each bar so that a prefix holds each kind of example alike."""
    turn = pl.int_range(pl.len()).over(*BAR, "why")
    kind = pl.col("why").replace_strict({"lowest": 0, "highest": 1}, default=2, return_dtype=pl.Int64)
    ordered = table.with_columns(turn=turn, kind=kind).sort("turn", "kind", maintain_order=True)
    ranked = ordered.with_columns(rank=pl.int_range(pl.len()).over(*BAR))
    return ranked.sort("kind", "turn", maintain_order=True).drop("turn", "kind")


def _embedded(table: pl.DataFrame, explanations: pl.DataFrame) -> dict[str, Json]:
    wanted = table.select("metric", "output", "text_id").unique()
    kept = explanations.join(wanted, on=["metric", "output", "text_id"], how="semi", maintain_order="left")
    words, reads = embedded_words(kept, longest=LONGEST)
    places: dict[tuple[str, str, str], int] = {}
    bars: dict[tuple[str, ...], list[Json]] = {}
    for row in table.iter_rows(named=True):
        key = (row["text_id"] or "", _clipped(row["prompt"] or ""), _clipped(row["text"] or ""))
        place = places.setdefault(key, len(places))
        bar = bars.setdefault(tuple(row[column] for column in BAR), [])
        bar.append([place, row["why"], row["value"], row["label"]])
    return {
        # What a metric read stands beside the text it was made of: the two pack into little more than one.
        "texts": [[prompt, text, *reads.get(text_id, [])] for text_id, prompt, text in places],
        "bars": list(_bars(bars)),
        "words": _by_place(words, places),
    }


def _by_place(words: dict[str, Json], places: Mapping[tuple[str, str, str], int]) -> dict[str, Json]:
    """The spans of each text by its number on the page."""
    numbers: dict[str, list[int]] = {}
    for (text_id, _, _), place in places.items():
        numbers.setdefault(text_id, []).append(place)
    placed: dict[str, Json] = {}
    for metric, known in words.items():
        assert isinstance(known, dict)
        spans = known["texts"]
        assert isinstance(spans, dict)
        by_place = {str(place): spans[text_id] for text_id in spans for place in numbers.get(text_id, [])}
        placed[metric] = {**known, "texts": by_place}
    return placed


def _bars(bars: dict[tuple[str, ...], list[Json]]) -> Iterator[Json]:
    for key, examples in bars.items():
        yield [*key, examples]


def _clipped(text: str) -> str:
    return visible(text if len(text) <= LONGEST else text[:LONGEST] + " …")
