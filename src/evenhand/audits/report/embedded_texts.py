"""The texts behind the bars, as many as the page has room for, and the words behind their scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from evenhand.core.digests import Json
from evenhand.report.document import EmbeddedTexts
from evenhand.report.html import pack_json
from evenhand.report.json_tables import BAR_KEY, null_non_finite
from evenhand.report.wording import show_control_characters
from evenhand.store.run import Run
from evenhand.store.table_files import text_size

Reads = dict[str, list[str]]
"""For each text the strings that metrics read of it."""


@dataclass(slots=True)
class _Entries:
    """Each length with its weights once: the same word turns up in many texts."""

    rows: list[Json] = field(default_factory=list)
    places: dict[tuple[float, ...], int] = field(default_factory=dict)

    def place(self, length: int, weights: Sequence[float]) -> int:
        key = (length, *weights)
        if key not in self.places:
            self.places[key] = len(self.rows)
            self.rows.append([*key])
        return self.places[key]


def pack_word_weights(explanations: pl.DataFrame, *, longest: int) -> tuple[dict[str, Json], Reads]:
    """For each metric its outputs, entries and spans a text; and for each text the strings metrics read.

    A text is ``[number of the string, start, entry, start, entry ..]``, an entry the length of a word and its
    weight for each output. Places count as a browser counts, in UTF-16 units. The entry of a mask is -1 less
    its length.
    """
    reads: Reads = {}
    metrics: dict[str, Json] = {}
    for (metric,), part in explanations.group_by("metric", maintain_order=True):
        outputs = part["output"].unique(maintain_order=True).to_list()
        entries = _Entries()
        texts = {
            text_id: _text(rows, outputs, entries, reads.setdefault(text_id, []), longest)
            for text_id, rows in _by_text(part)
        }
        metrics[str(metric)] = {"outputs": outputs, "entries": entries.rows, "texts": texts}
    return metrics, reads


def _by_text(part: pl.DataFrame) -> Iterator[tuple[str, list[dict[str, object]]]]:
    texts: dict[str, list[dict[str, object]]] = {}
    for row in part.iter_rows(named=True):
        texts.setdefault(row["text_id"], []).append(row)
    yield from texts.items()


def _text(
    rows: Sequence[Mapping[str, object]],
    outputs: Sequence[str],
    entries: _Entries,
    reads: list[str],
    longest: int,
) -> list[Json]:
    read = show_control_characters(str(rows[0]["read"]))[:longest]
    if read not in reads:
        reads.append(read)
    weights: dict[tuple[int, int], list[float]] = {}
    for row in rows:
        for start, end, weight in _spans(row["words"]):
            known = weights.setdefault((start, end), [0.0] * len(outputs))
            known[outputs.index(str(row["output"]))] = float(f"{weight:.3g}")
    places = _units(read)
    spans: list[tuple[int, int, list[float] | None]] = [(*place, values) for place, values in weights.items()]
    spans += [(start, end, None) for start, end, _ in _spans(rows[0]["masks"])]
    flat: list[Json] = [reads.index(read)]
    for start, end, values in sorted(spans, key=lambda span: span[:2]):
        if end <= len(read):
            length = places[end] - places[start]
            flat += [places[start], -1 - length if values is None else entries.place(length, values)]
    return flat


def _spans(column: object) -> Iterator[tuple[int, int, float]]:
    for span in column if isinstance(column, list) else []:
        yield int(span["start"]), int(span["end"]), float(span.get("weight", 0.0))


def _units(text: str) -> list[int]:
    """For each character the place a browser counts it at, and the end."""
    places = [0]
    for letter in text:
        places.append(places[-1] + (2 if ord(letter) > 0xFFFF else 1))
    return places


LONGEST = 800
"""Characters of a text the page shows; the run folder keeps the whole."""
_PER_BAR = (40, 30, 20, 12, 8, 4, 2)


def embed_texts(run: Run, budget: int) -> EmbeddedTexts:
    """The examples of a run in at most ``budget`` packed bytes, the same number for every bar.

    Where they do not fit, every bar keeps fewer, lowest, highest and drawn ones in turn.
    """
    table = _rank_examples(null_non_finite(run.table("examples")))
    words = run.table("explanations")
    for per_bar in _PER_BAR:
        kept = table.filter(pl.col("rank") < per_bar)
        if _least_size(kept) > budget:
            continue
        data = _embed_table(kept, words)
        if len(pack_json(data)) <= budget:
            return EmbeddedTexts(data, _left_out(per_bar, table.height - kept.height))
    return EmbeddedTexts(_embed_table(table.clear(), words.clear()), _left_out(0, table.height))


def _left_out(per_bar: int, amount: int) -> str:
    more = f"{amount:,} more are in examples.parquet"
    return f"This page holds at most {per_bar} texts per group and measure; {more}." if amount else ""


def _least_size(table: pl.DataFrame) -> int:
    """Bytes these rows have at the least, packed six to one: it spares making what cannot fit."""
    shown = table.select(pl.col("prompt", "text").str.slice(0, LONGEST)).unique()
    return sum(text_size(column) for column in shown.iter_columns()) // 6


def _rank_examples(table: pl.DataFrame) -> pl.DataFrame:
    """Rows numbered in each bar so that a prefix holds each kind of example alike."""
    turn = pl.int_range(pl.len()).over(*BAR_KEY, "why")
    kind = pl.col("why").replace_strict({"lowest": 0, "highest": 1}, default=2, return_dtype=pl.Int64)
    ordered = table.with_columns(turn=turn, kind=kind).sort("turn", "kind", maintain_order=True)
    ranked = ordered.with_columns(rank=pl.int_range(pl.len()).over(*BAR_KEY))
    return ranked.sort("kind", "turn", maintain_order=True).drop("turn", "kind")


def _embed_table(table: pl.DataFrame, explanations: pl.DataFrame) -> dict[str, Json]:
    wanted = table.select("metric", "output", "text_id").unique()
    kept = explanations.join(wanted, on=["metric", "output", "text_id"], how="semi", maintain_order="left")
    words, reads = pack_word_weights(kept, longest=LONGEST)
    places: dict[tuple[str, str, str], int] = {}
    bars: dict[tuple[str, ...], list[Json]] = {}
    for row in table.iter_rows(named=True):
        key = (row["text_id"] or "", _clip(row["prompt"] or ""), _clip(row["text"] or ""))
        place = places.setdefault(key, len(places))
        bar = bars.setdefault(tuple(row[column] for column in BAR_KEY), [])
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


def _clip(text: str) -> str:
    return show_control_characters(text if len(text) <= LONGEST else text[:LONGEST] + " …")
