"""Regard and sentiment by group: Table 5 and Figures 3, 4 and 5."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from evenhand.papers.bold.norms import RACES
from evenhand.papers.bold.printed import printed
from evenhand.papers.bold.shares import Row, beside, by, cells, share
from evenhand.papers.figures import Bar, Panel, Stack, bars_and_stacks
from evenhand.papers.records import Figure, Table

GENDERS = {"American_actors": "male", "American_actresses": "female"}
_REGARD = {
    **GENDERS,
    "African_Americans": "african_american",
    "European_Americans": "european_american",
}
_SENTIMENTS = ("negative", "neutral", "positive")


def table_5(texts: pl.DataFrame) -> Table:
    """The shares of texts with positive and negative regard, in the groups the classifier was made for."""
    rows: list[Row] = []
    for (source,), frame in by(texts, "source").items():
        row: Row = {"source": source}
        for groups in (list(GENDERS), ["African_Americans", "European_Americans"]):
            for label in ("positive", "negative"):
                for group in groups:
                    found = share(frame.filter(pl.col("group") == group), "regard", label)
                    row |= cells(f"{label}_{_REGARD[group]}", found)
        rows.append(row)
    note = "Regard is the embedded classifier's; the paper's is a BERT of its own."
    title = "Shares of texts with positive and negative regard"
    return Table("table_5", title, beside(printed("table_5"), rows), notes=(note,), decimals=3)


def figure_3(texts: pl.DataFrame) -> Figure:
    """Sentiment and toxicity in the gender and the race domain."""
    panels: list[Panel] = []
    rows: list[Row] = []
    for domain, names in (("gender", GENDERS), ("race", RACES)):
        of = texts.filter(pl.col("domain") == domain)
        rows += _sentiment_rows(of, names)
        panels.append(Panel(f"sentiment, {domain}", _stacks(of, names)))
    for domain, names in (("gender", GENDERS), ("race", RACES)):
        found = _toxic_rows(texts.filter(pl.col("domain") == domain), names)
        rows += found
        panels.append(Panel(f"share of toxic texts, {domain}", _bars(found)))
    return Figure(
        "figure_3",
        "Sentiment and toxicity by gender and race",
        pl.DataFrame(rows, infer_schema_length=None),
        bars_and_stacks(panels),
        alt="Shares of negative, neutral and positive texts, and of toxic texts, for each group and source.",
        notes=("Lines are 95 % intervals; one with an arrow is longer than the panel: see the numbers.",),
        narrow=bars_and_stacks(panels, narrow=True),
    )


def figure_4(texts: pl.DataFrame) -> Figure:
    """Sentiment of texts about seven religious and spiritual beliefs."""
    return _sentiment_figure("figure_4", texts, "religious_ideology", "religious and spiritual belief")


def figure_5(texts: pl.DataFrame) -> Figure:
    """Sentiment of texts about twelve political ideologies."""
    return _sentiment_figure("figure_5", texts, "political_ideology", "political ideology")


def _sentiment_figure(identifier: str, texts: pl.DataFrame, domain: str, words: str) -> Figure:
    of = texts.filter(pl.col("domain") == domain)
    names = {group: group for group in of["group"].unique(maintain_order=True)}
    panels = [
        Panel(source, _stacks(frame, names, with_source=False))
        for (source,), frame in by(of, "source").items()
    ]
    return Figure(
        identifier,
        f"Sentiment by {words}",
        pl.DataFrame(_sentiment_rows(of, names), infer_schema_length=None),
        bars_and_stacks(panels),
        alt=f"Shares of negative, neutral and positive texts for each {words}, one panel a source.",
        narrow=bars_and_stacks(panels, narrow=True),
    )


def _sentiment_rows(texts: pl.DataFrame, names: Mapping[str, str]) -> list[Row]:
    rows: list[Row] = []
    for (group, source), frame in by(texts, "group", "source").items():
        row: Row = {"source": source, "group": names[group], "total": frame.height}
        for label in _SENTIMENTS:
            row |= cells(label, share(frame, "sentiment", label))
        rows.append(row)
    return rows


def _toxic_rows(texts: pl.DataFrame, names: Mapping[str, str]) -> list[Row]:
    return [
        {
            "source": source,
            "group": names[group],
            "total": frame.height,
            **cells("toxic", share(frame, "toxicity", "toxic")),
        }
        for (group, source), frame in by(texts, "group", "source").items()
    ]


def _stacks(texts: pl.DataFrame, names: Mapping[str, str], *, with_source: bool = True) -> list[Stack]:
    stacks = []
    for (group, source), frame in by(texts, "group", "source").items():
        known = frame["sentiment"].drop_nulls()
        if known.is_empty():
            continue
        parts = {label: _rate(known == label) for label in _SENTIMENTS}
        stacks.append(Stack(f"{names[group]}, {source}" if with_source else names[group], parts))
    return stacks


def _bars(rows: list[Row]) -> list[Bar]:
    return [
        Bar(
            str(row["group"]),
            str(row["source"]),
            _number(row["toxic"]),
            _number(row["toxic_low"]),
            _number(row["toxic_high"]),
        )
        for row in rows
    ]


def _rate(hits: pl.Series) -> float:
    return int(hits.sum()) / len(hits)


def _number(value: object) -> float | None:
    return value if isinstance(value, float) else None
