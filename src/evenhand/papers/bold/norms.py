"""Psycholinguistic norms: Tables 4, 6, 9, 10 and 11, in percent or percentage points."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from evenhand.papers.bold.printed import printed
from evenhand.papers.bold.shares import Row, beside, by, cells, gap, share
from evenhand.papers.records import Table

LABELS = {
    **{f"{name}_negative": (name, "negative") for name in ("valence", "arousal", "dominance")},
    **{f"{name}_positive": (name, "positive") for name in ("valence", "arousal", "dominance")},
    **{name: (name, "present") for name in ("joy", "anger", "sadness", "fear", "disgust")},
}
"""The paper's columns, in its order, and the label of our metric each one counts."""
RACES = {
    "Hispanic_and_Latino_Americans": "Hispanic/Latino",
    "European_Americans": "European",
    "Asian_Americans": "Asian",
    "African_Americans": "African",
}
WINGS = ("left-wing", "right-wing")
_THRESHOLDS = (
    "The paper does not print the cuts that turn a score into a class; ours are on the card of the metric, "
    "and can be set."
)
_PERCENT = 100.0


def table_4(texts: pl.DataFrame) -> Table:
    """Texts of male minus texts of female prompts in each class, in percentage points."""
    of = texts.filter(pl.col("domain") == "gender")
    title = "Male minus female prompts: texts in each class, percentage points"
    return _gaps("table_4", title, of, "American_actors", "American_actresses")


def table_6(texts: pl.DataFrame) -> Table:
    """Texts of Christianity minus texts of Islam in each class, in percentage points."""
    of = texts.filter(pl.col("domain") == "religious_ideology")
    title = "Christianity minus Islam: texts in each class, percentage points"
    return _gaps("table_6", title, of, "christianity", "islam")


def table_9(texts: pl.DataFrame) -> Table:
    """Texts in each class for the four groups of race, in percent."""
    of = texts.filter(pl.col("domain") == "race")
    return _shares("table_9", "Texts in each class by race, percent", of, RACES)


def table_10(texts: pl.DataFrame) -> Table:
    """Texts in each class for ten political ideologies, in percent."""
    names = list(printed("table_10")["group"].unique(maintain_order=True))
    of = texts.filter(pl.col("domain") == "political_ideology")
    return _shares("table_10", "Texts in each class by ideology, percent", of, {name: name for name in names})


def table_11(texts: pl.DataFrame) -> Table:
    """Texts in each class for left-wing and right-wing, in percent."""
    of = texts.filter(pl.col("domain") == "political_ideology")
    title = "Texts in each class, left-wing and right-wing, percent"
    return _shares("table_11", title, of, {name: name for name in WINGS})


def _gaps(identifier: str, title: str, texts: pl.DataFrame, first: str, second: str) -> Table:
    rows: list[Row] = []
    for (source,), frame in by(texts, "source").items():
        a, b = (frame.filter(pl.col("group") == group) for group in (first, second))
        row: Row = {"source": source, "n": a.height, "n_baseline": b.height}
        for name, (column, label) in LABELS.items():
            row |= cells(name, gap(a, b, column, label), scale=_PERCENT)
        rows.append(row)
    return Table(identifier, title, beside(printed(identifier), rows), notes=(_THRESHOLDS,))


def _shares(identifier: str, title: str, texts: pl.DataFrame, names: Mapping[str, str]) -> Table:
    kept = texts.filter(pl.col("group").is_in(list(names)))
    rows: list[Row] = []
    for (group, source), frame in by(kept, "group", "source").items():
        row: Row = {"source": source, "group": names[group], "total": frame.height}
        for name, (column, label) in LABELS.items():
            row |= cells(name, share(frame, column, label), scale=_PERCENT)
        rows.append(row)
    ours = pl.DataFrame(rows, infer_schema_length=None)
    frame = beside(printed(identifier), [*rows, *_means(ours).to_dicts()])
    order = {name: place for place, name in enumerate(names.values())}
    frame = frame.sort(pl.col("group").replace_strict(order, default=None), maintain_order=True)
    note = "The row `mean` is the plain mean over our sources, as the paper's is over its six."
    return Table(identifier, title, frame, notes=(note, _THRESHOLDS))


def _means(rows: pl.DataFrame) -> pl.DataFrame:
    means = rows.group_by("group", maintain_order=True).agg(
        pl.col("total").max(), pl.col(list(LABELS)).mean()
    )
    return means.with_columns(source=pl.lit("mean"))
