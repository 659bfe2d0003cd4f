"""Counts as tables: occurrence, co-occurrence, contrasts of corpora and samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from evenhand.corpus.counts import Blocks, Counts, Layout
from evenhand.corpus.links import (
    Association,
    Link,
    as_bits,
    as_ratio,
    mutual_information,
    odds_ratio,
    rate,
    share,
)
from evenhand.corpus.matcher import I64
from evenhand.corpus.rule import Counting
from evenhand.corpus.scanner import Sample
from evenhand.corpus.terms import NONE, TermList
from evenhand.stats.corrections import benjamini_hochberg
from evenhand.store.corpus_tables import CORPUS_SCHEMAS

NO_GROUP = "the group does not occur"
BASELINE = "the baseline itself"
_MILLION = 1e6

Row = dict[str, str | int | float | None]


class Drawn(NamedTuple):
    """A sampled unit with its file; the lowest priorities are kept."""

    priority: int
    file: str
    sample: Sample
    is_row: bool = False
    """Whether its place is the number of a row, not a byte."""


class Counted(NamedTuple):
    """A corpus: its counts, and those of its blocks of documents."""

    counts: Counts
    blocks: Blocks
    documents: int


def counted(counts: Counts, blocks: I64, *, documents: int | None = None) -> Counted:
    """The counts of a corpus ready for the tables."""
    emotions, axes = counts.emotion_axes.shape
    layout = Layout(emotions, counts.groups.size, axes - 1)
    return Counted(counts, layout.split(blocks), counts.documents if documents is None else documents)


def occurrence(corpora: Mapping[str, Counted], terms: TermList, *, level: float = 0.95) -> pl.DataFrame:
    """How often each emotion occurs in each corpus (Table 3 of the affective-bias paper), with rates.

    ``standard_deviation`` is that of the counts over the emotions of a corpus (ddof 1).
    """
    rows: list[Row] = []
    for corpus, (counts, blocks, documents) in corpora.items():
        values = counts.emotions.tolist()
        spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
        for i, (emotion, count) in enumerate(zip(terms.emotions, values, strict=True)):
            found = share(blocks.emotions[:, i], blocks.units, documents=documents, level=level)
            rows.append(
                {
                    "corpus": corpus,
                    "emotion": emotion,
                    "count": count,
                    "sentences": counts.units,
                    "per_million": _millionth(found.value),
                    "low": _millionth(found.low),
                    "high": _millionth(found.high),
                    "percent": _percent(count, sum(values)),
                    "total": sum(values),
                    "standard_deviation": spread,
                    "n_clusters": documents,
                    "null_reason": found.reason,
                }
            )
    return _table("occurrence", rows)


def cooccurrence(
    corpora: Mapping[str, Counted], terms: TermList, *, counting: Counting, level: float = 0.95
) -> pl.DataFrame:
    """Emotions with groups (Table 4), ``percent`` within a group, and how strong the link is.

    ``odds_ratio`` compares the odds of the emotion in units that name the group with those in units that name
    no group of the axis (above 1: more with the group); ``pmi`` is the pointwise mutual information in bits.
    The group ``(none)`` is that baseline. ``p_adjusted`` is corrected over all links of the run
    (Benjamini-Hochberg).
    """
    rows = [
        row
        for corpus, of in corpora.items()
        for axis in range(len(terms.axes))
        for row in _axis_rows(corpus, of, terms, axis, counting, level)
    ]
    return _adjusted(_table("cooccurrence", rows))


def contrasts(corpora: Mapping[str, Counted], terms: TermList, *, level: float = 0.95) -> pl.DataFrame:
    """Each corpus against the first: ratios of rates (no group), and of odds ratios (above 1: more there).

    Documents that are in both corpora fall into the same block, and do not pass for independent ones.
    ``p_adjusted`` is corrected over all contrasts of the run (Benjamini-Hochberg).
    """
    names = list(corpora)
    rows: list[Row] = []
    for name in names[1:]:
        one, first = corpora[name].blocks, corpora[names[0]].blocks
        keys = {"corpus": name, "baseline": names[0]}
        for i, emotion in enumerate(terms.emotions):
            rates = [rate(part.emotions[:, i], part.units) for part in (one, first)]
            rows.append({**keys, "emotion": emotion, "axis": "", "group": "", **_contrast(rates, level)})
            for number, group in enumerate(terms.groups):
                axis = terms.axes.index(group.axis)
                links = [_odds_ratio(part, i, number, axis) for part in (one, first)]
                place = {"emotion": emotion, "axis": group.axis, "group": group.name}
                rows.append({**keys, **place, **_contrast(links, level)})
    return _adjusted(_table("contrasts", rows))


def samples(drawn: Mapping[str, Mapping[int, Sequence[Drawn]]], terms: TermList) -> pl.DataFrame:
    """The sentences with the lowest priorities of each cell: a sample that order and shards do not change."""
    rows: list[Row] = []
    emotions, groups = list(terms.emotions), len(terms.groups)
    for corpus, cells in drawn.items():
        for cell in sorted(cells):
            emotion, group = divmod(cell, groups + 1)
            named = terms.groups[group] if group < groups else None
            place = {"emotion": emotions[emotion], "axis": "", "group": NONE}
            if named:
                place |= {"axis": named.axis, "group": named.name}
            for _, file, sample, is_row in cells[cell]:
                at = {"byte": None, "row": sample.place} if is_row else {"byte": sample.place, "row": None}
                rows.append({"corpus": corpus, **place, "file": file, **at, "text": sample.text})
    return _table("samples", rows)


def _axis_rows(
    corpus: str, of: Counted, terms: TermList, axis: int, counting: Counting, level: float
) -> Iterable[Row]:
    blocks, documents = of.blocks, of.documents
    name, units = terms.axes[axis], blocks.units
    base, base_units = _baseline(blocks, axis)
    for number, group in enumerate(terms.groups):
        if group.axis != name:
            continue
        shown = (blocks.distinct if counting == "distinct" else blocks.flags)[:, :, number]
        size = blocks.groups[:, number]
        for i, emotion in enumerate(terms.emotions):
            both = blocks.flags[:, i, number]
            ratio = as_ratio(_odds_ratio(blocks, i, number, axis), level=level)
            bits = as_bits(mutual_information(both, blocks.emotions[:, i], size, units), level=level)
            yield {
                **_cell(corpus, emotion, name, group.name, shown, i),
                **_rate(shown[:, i], units, documents, counting, level),
                "odds_ratio": ratio.value,
                "pmi": bits.value,
                "low": ratio.low,
                "high": ratio.high,
                "pmi_low": bits.low,
                "pmi_high": bits.high,
                "p": ratio.p,
                "sentences": int(both.sum()),
                "group_sentences": int(size.sum()),
                "n_clusters": documents,
                "null_reason": ratio.reason if size.any() else NO_GROUP,
            }
    for i, emotion in enumerate(terms.emotions):
        yield {
            **_cell(corpus, emotion, name, NONE, base, i),
            **_rate(base[:, i], units, documents, "flag", level),
            "sentences": int(base[:, i].sum()),
            "group_sentences": int(base_units.sum()),
            "n_clusters": documents,
            "null_reason": BASELINE,
        }


def _baseline(blocks: Blocks, axis: int) -> tuple[I64, I64]:
    """Units that name no group of the axis, with each emotion and in all."""
    return blocks.emotions - blocks.emotion_axes[:, :, axis], blocks.units - blocks.axes[:, axis]


def _odds_ratio(blocks: Blocks, emotion: int, group: int, axis: int) -> Link | None:
    base, base_units = _baseline(blocks, axis)
    return odds_ratio(blocks.flags[:, emotion, group], blocks.groups[:, group], base[:, emotion], base_units)


def _contrast(links: Sequence[Link | None], level: float) -> Row:
    one, first = links
    found = as_ratio(one.minus(first) if one and first else None, level=level)
    return {
        "ratio": found.value,
        "low": found.low,
        "high": found.high,
        "p": found.p,
        "null_reason": found.reason,
    }


def _cell(corpus: str, emotion: str, axis: str, group: str, shown: I64, i: int) -> Row:
    counts = shown.sum(axis=0).tolist()
    return {
        "corpus": corpus,
        "emotion": emotion,
        "axis": axis,
        "group": group,
        "count": counts[i],
        "percent": _percent(counts[i], sum(counts)),
    }


def _rate(events: I64, units: I64, documents: int, counting: Counting, level: float) -> Row:
    """Events per million units; distinct terms may be more than units, so that they are no share of them."""
    found: Association
    if counting == "distinct" and events.any():
        found = as_ratio(rate(events, units), level=level)
    else:
        found = share(events, units, documents=documents, level=level)
    names = ("per_million", "per_million_low", "per_million_high")
    return dict(zip(names, map(_millionth, found[:3]), strict=True))


def _table(name: str, rows: Sequence[Row]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=dict(CORPUS_SCHEMAS[name]))


def _adjusted(table: pl.DataFrame) -> pl.DataFrame:
    adjusted = benjamini_hochberg(table["p"].to_list())
    return table.with_columns(pl.Series("p_adjusted", adjusted, dtype=pl.Float64))


def _percent(part: int, whole: int) -> float | None:
    return 100 * part / whole if whole else None


def _millionth(share: float | None) -> float | None:
    return None if share is None else _MILLION * share
