"""The texts of each bar, as many as the page has room for, and the words that make their scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import polars as pl

from evenhand.core.digests import Json
from evenhand.report.html import pack_json
from evenhand.report.json_tables import BAR_KEY, null_non_finite
from evenhand.report.wording import show_control_characters
from evenhand.store.run import Run
from evenhand.store.table_files import text_size

Reads = dict[str, list[str]]
"""For each text the strings that metrics read of it."""
Entries = dict[tuple[float, ...], int]
"""Each length with its weights once, and its number: the same word turns up in many texts."""


def pack_word_weights(explanations: pl.DataFrame, *, longest: int) -> tuple[dict[str, Any], Reads]:
    """For each metric its outputs, entries and spans per text; for each text the strings metrics read.

    A text is ``[number of the string, start, entry, start, entry ..]``, an entry the length of a word and its
    weight for each output. Places count as a browser counts, in UTF-16 units. The entry of a mask is -1 less
    its length.
    """
    reads: Reads = {}
    metrics: dict[str, Any] = {}
    for (metric,), part in explanations.group_by("metric", maintain_order=True):
        outputs = part["output"].unique(maintain_order=True).to_list()
        entries: Entries = {}
        rows: dict[str, list[dict[str, Any]]] = {}
        for row in part.iter_rows(named=True):
            rows.setdefault(row["text_id"], []).append(row)
        texts = {
            text_id: _text(own, outputs, entries, reads.setdefault(text_id, []), longest)
            for text_id, own in rows.items()
        }
        numbered: list[Json] = [[*key] for key in entries]
        metrics[str(metric)] = {"outputs": outputs, "entries": numbered, "texts": dict(texts)}
    return metrics, reads


def _text(
    rows: Sequence[Mapping[str, Any]],
    outputs: Sequence[str],
    entries: Entries,
    reads: list[str],
    longest: int,
) -> list[Json]:
    read = show_control_characters(rows[0]["read"])[:longest]
    if read not in reads:
        reads.append(read)
    weights: dict[tuple[int, int], list[float]] = {}
    for row in rows:
        for span in row["words"] or ():
            known = weights.setdefault((span["start"], span["end"]), [0.0] * len(outputs))
            known[outputs.index(row["output"])] = float(f"{span['weight']:.3g}")
    # For each character the place a browser counts it at, and the end.
    places = [*accumulate((2 if ord(letter) > 0xFFFF else 1 for letter in read), initial=0)]
    spans: list[tuple[int, int, list[float] | None]] = [(*place, values) for place, values in weights.items()]
    spans += [(span["start"], span["end"], None) for span in rows[0]["masks"] or ()]
    flat: list[Json] = [reads.index(read)]
    for start, end, values in sorted(spans, key=lambda span: span[:2]):
        if end <= len(read):
            length = places[end] - places[start]
            entry = -1 - length if values is None else entries.setdefault((length, *values), len(entries))
            flat += [places[start], entry]
    return flat


LONGEST = 800
"""Characters of a text the page shows; the run folder keeps the whole."""
_PER_BAR = (40, 30, 20, 12, 8, 4, 2)


def embed_texts(run: Run, budget: int) -> tuple[dict[str, Json], str]:
    """The examples of a run in at most ``budget`` packed bytes, the same number for every bar.

    Where they do not fit, every bar keeps fewer, lowest, highest and drawn ones in turn.
    """
    # Rows numbered in each bar so that a prefix holds each kind of example alike.
    turn = pl.int_range(pl.len()).over(*BAR_KEY, "why")
    kind = pl.col("why").replace_strict({"lowest": 0, "highest": 1}, default=2, return_dtype=pl.Int64)
    ordered = null_non_finite(run.table("examples")).with_columns(turn=turn, kind=kind)
    ranked = ordered.sort("turn", "kind", maintain_order=True).with_columns(
        rank=pl.int_range(pl.len()).over(*BAR_KEY)
    )
    table = ranked.sort("kind", "turn", maintain_order=True).drop("turn", "kind")
    words = run.table("explanations")
    for per_bar in _PER_BAR:
        kept = table.filter(pl.col("rank") < per_bar)
        shown = kept.select(pl.col("prompt", "text").str.slice(0, LONGEST)).unique()
        # Packed six to one, which spares making what cannot fit.
        if sum(text_size(column) for column in shown.iter_columns()) // 6 > budget:
            continue
        data = _embed_table(kept, words)
        if len(pack_json(data)) <= budget:
            break
    else:
        per_bar, kept = 0, table.clear()
        data = _embed_table(kept, words.clear())
    more = f"{table.height - kept.height:,} more are in examples.parquet"
    note = f"This page holds at most {per_bar} texts per group and measure; {more}."
    return data, note if kept.height < table.height else ""


def _embed_table(table: pl.DataFrame, explanations: pl.DataFrame) -> dict[str, Json]:
    wanted = table.select("metric", "output", "text_id").unique()
    kept = explanations.join(wanted, on=["metric", "output", "text_id"], how="semi", maintain_order="left")
    words, reads = pack_word_weights(kept, longest=LONGEST)
    places: dict[tuple[str, str, str], int] = {}
    bars: dict[tuple[str, ...], list[Json]] = {}
    for row in table.iter_rows(named=True):
        prompt, text = (
            show_control_characters(shown if len(shown) <= LONGEST else shown[:LONGEST] + " …")
            for shown in (row["prompt"] or "", row["text"] or "")
        )
        key = (row["text_id"] or "", prompt, text)
        place = places.setdefault(key, len(places))
        bar = bars.setdefault(tuple(row[column] for column in BAR_KEY), [])
        bar.append([place, row["why"], row["value"], row["label"]])
    return {
        # What a metric read follows the text it was made of: the two pack into little more than one.
        "texts": [[prompt, text, *reads.get(text_id, [])] for text_id, prompt, text in places],
        "bars": [[*key, examples] for key, examples in bars.items()],
        # The spans of each text by its number on the page.
        "words": {
            metric: {
                **known,
                "texts": {
                    str(place): known["texts"][text_id]
                    for (text_id, _, _), place in places.items()
                    if text_id in known["texts"]
                },
            }
            for metric, known in words.items()
        },
    }
