"""The words behind scores, as the page carries them: spans of what a metric read, and their weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from evenhand.core.digests import Json
from evenhand.report.wording import visible

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


def embedded_words(explanations: pl.DataFrame, *, longest: int) -> tuple[dict[str, Json], Reads]:
    """For each metric its outputs, entries and spans a text; and for each text the strings metrics read.

    A text is ``[number of the string, start, entry, start, entry ..]``, an entry the length of a word and its
    weight for each output. Places count as a browser counts, in UTF-16 units. The entry of a mask is -1 less
    its length.
    """
    reads: Reads = {}
    found: dict[str, Json] = {}
    for (metric,), part in explanations.group_by("metric", maintain_order=True):
        outputs = part["output"].unique(maintain_order=True).to_list()
        entries = _Entries()
        texts = {
            text_id: _text(rows, outputs, entries, reads.setdefault(text_id, []), longest)
            for text_id, rows in _by_text(part)
        }
        found[str(metric)] = {"outputs": outputs, "entries": entries.rows, "texts": texts}
    return found, reads


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
    read = visible(str(rows[0]["read"]))[:longest]
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
