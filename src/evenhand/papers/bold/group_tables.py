"""Professions and gender polarity: Table 3, Figure 2, and the ratios of section 6.2."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import mean

import polars as pl

from evenhand.papers.bold.labelled_texts import Row, estimate_cells, group_by, label_share, stack_rows
from evenhand.papers.bold.norm_tables import RACES
from evenhand.papers.bold.published_values import load_published
from evenhand.papers.replication_pages import PaperFigure, PaperTable
from evenhand.papers.svg_figures import (
    FigureBar,
    FigurePanel,
    StackedBar,
    bars_and_stacks,
    grouped_bars,
    horizontal_bars,
)
from evenhand.stats.intervals import clustered_mean
from evenhand.suites.bold_files import merged_groups

COLUMNS = {"gender_max": "max", "gender_wavg": "wavg", "unigram": "unigram"}
"""The paper's name of a way to aggregate, and the output of our metric."""


def table_3(texts: pl.DataFrame) -> PaperTable:
    """Texts classified as male and as female in four merged groups of professions, by three ways."""
    grouped = merge_professions(texts)
    rows = [
        {"source": source, "group": group, "total": frame.height, **_counts(frame)}
        for (group, source), frame in group_by(grouped, "group", "source").items()
    ]
    return PaperTable(
        "table_3",
        "Texts classified as male and as female, by profession",
        stack_rows(load_published("table_3"), rows).sort("group", maintain_order=True),
        notes=(
            "Male to female ratios are cut, not rounded, to two digits, as in the paper; where no text is "
            "female there is none.",
            "Industrial & manufacturing includes sewing occupations: the paper's text leaves them out, its "
            "total needs them.",
            "Ties of Gender-Max go to neutral; the paper does not print its rule.",
        ),
    )


def merge_professions(texts: pl.DataFrame) -> pl.DataFrame:
    """The texts about professions of Table 3, in its four merged groups."""
    names = merged_groups("table_3")["profession"]
    kept = _of(texts).filter(pl.col("group").is_in(list(names)))
    return kept.with_columns(pl.col("group").replace_strict(names, default=None))


def gender_ratios(texts: pl.DataFrame) -> dict[str, float | None]:
    """Section 6.2: the mean of the four Gender-Max ratios of each source; None where one does not exist."""
    found: dict[str, float | None] = {}
    for (source,), frame in group_by(merge_professions(texts), "source").items():
        of_source = [_ratio(*_male_female(part, "max")) for part in group_by(frame, "group").values()]
        known = [value for value in of_source if value is not None]
        found[source] = mean(known) if len(known) == len(of_source) == 4 else None
    return found


def figure_2(texts: pl.DataFrame) -> PaperFigure:
    """The share of male minus the share of female texts for every profession, by Gender-Max."""
    frame = pl.DataFrame(
        [
            _difference(part, source, group)
            for (group, source), part in group_by(_of(texts), "group", "source").items()
        ],
        infer_schema_length=None,
    ).sort("group", maintain_order=True)
    bars = [
        FigureBar(
            row["group"].replace("_", " "),
            row["source"],
            row["difference"],
            row["difference_low"],
            row["difference_high"],
        )
        for row in frame.iter_rows(named=True)
    ]
    unit = "male share - female share"
    return PaperFigure(
        "figure_2",
        "Male minus female texts in each profession, by Gender-Max",
        frame,
        grouped_bars({unit: bars}, unit="share", width=12.0, columns=1),
        alt="Bars above zero mark professions whose texts are classified as male more often than as female.",
        notes=("Lines are 95 % intervals; a profession's entity is one cluster.",),
        narrow=horizontal_bars(bars, unit=unit),
    )


def _of(texts: pl.DataFrame) -> pl.DataFrame:
    return texts.filter(pl.col("domain") == "profession")


def _counts(texts: pl.DataFrame) -> Row:
    row: Row = {}
    for name, column in COLUMNS.items():
        male, female = _male_female(texts, column)
        row |= {f"{name}_male": male, f"{name}_female": female, f"{name}_ratio": _cut(_ratio(male, female))}
    return row


def _male_female(texts: pl.DataFrame, column: str) -> tuple[int, int]:
    labels = texts[column]
    return int((labels == "male").sum()), int((labels == "female").sum())


def _ratio(male: int, female: int) -> float | None:
    return male / female if female else None


def _cut(ratio: float | None) -> float | None:
    return None if ratio is None else math.floor(ratio * 100) / 100


def _difference(texts: pl.DataFrame, source: str, group: str) -> Row:
    # Male and female are shares of the same texts, so that their gap is one mean: of +1, -1 and 0.
    known = texts.filter(pl.col("max").is_not_null())
    signed = (known["max"] == "male").cast(pl.Float64) - (known["max"] == "female").cast(pl.Float64)
    found = clustered_mean(signed.to_numpy(), known["cluster"].to_numpy())
    return {"source": source, "group": group, "total": texts.height, **estimate_cells("difference", found)}


GENDERS = {"American_actors": "male", "American_actresses": "female"}
_REGARD = {
    **GENDERS,
    "African_Americans": "african_american",
    "European_Americans": "european_american",
}
_SENTIMENTS = ("negative", "neutral", "positive")


def table_5(texts: pl.DataFrame) -> PaperTable:
    """The shares of texts with positive and negative regard, in the groups the classifier was made for."""
    rows: list[Row] = []
    for (source,), frame in group_by(texts, "source").items():
        row: Row = {"source": source}
        for groups in (list(GENDERS), ["African_Americans", "European_Americans"]):
            for label in ("positive", "negative"):
                for group in groups:
                    found = label_share(frame.filter(pl.col("group") == group), "regard", label)
                    row |= estimate_cells(f"{label}_{_REGARD[group]}", found)
        rows.append(row)
    note = "Regard is the embedded classifier's; the paper's is a BERT of its own."
    title = "Shares of texts with positive and negative regard"
    return PaperTable(
        "table_5", title, stack_rows(load_published("table_5"), rows), notes=(note,), decimals=3
    )


def figure_3(texts: pl.DataFrame) -> PaperFigure:
    """Sentiment and toxicity in the gender and the race domain."""
    panels: list[FigurePanel] = []
    rows: list[Row] = []
    for domain, names in (("gender", GENDERS), ("race", RACES)):
        of = texts.filter(pl.col("domain") == domain)
        rows += _sentiment_rows(of, names)
        panels.append(FigurePanel(f"sentiment, {domain}", _stacks(of, names)))
    for domain, names in (("gender", GENDERS), ("race", RACES)):
        found = _toxic_rows(texts.filter(pl.col("domain") == domain), names)
        rows += found
        panels.append(FigurePanel(f"share of toxic texts, {domain}", _bars(found)))
    return PaperFigure(
        "figure_3",
        "Sentiment and toxicity by gender and race",
        pl.DataFrame(rows, infer_schema_length=None),
        bars_and_stacks(panels),
        alt="Shares of negative, neutral and positive texts, and of toxic texts, for each group and source.",
        notes=("Lines are 95 % intervals; one with an arrow is longer than the panel: see the numbers.",),
        narrow=bars_and_stacks(panels, narrow=True),
    )


def figure_4(texts: pl.DataFrame) -> PaperFigure:
    """Sentiment of texts about seven religious and spiritual beliefs."""
    return _sentiment_figure("figure_4", texts, "religious_ideology", "religious and spiritual belief")


def figure_5(texts: pl.DataFrame) -> PaperFigure:
    """Sentiment of texts about twelve political ideologies."""
    return _sentiment_figure("figure_5", texts, "political_ideology", "political ideology")


def _sentiment_figure(identifier: str, texts: pl.DataFrame, domain: str, words: str) -> PaperFigure:
    of = texts.filter(pl.col("domain") == domain)
    names = {group: group for group in of["group"].unique(maintain_order=True)}
    panels = [
        FigurePanel(source, _stacks(frame, names, with_source=False))
        for (source,), frame in group_by(of, "source").items()
    ]
    return PaperFigure(
        identifier,
        f"Sentiment by {words}",
        pl.DataFrame(_sentiment_rows(of, names), infer_schema_length=None),
        bars_and_stacks(panels),
        alt=f"Shares of negative, neutral and positive texts for each {words}, one panel a source.",
        narrow=bars_and_stacks(panels, narrow=True),
    )


def _sentiment_rows(texts: pl.DataFrame, names: Mapping[str, str]) -> list[Row]:
    rows: list[Row] = []
    for (group, source), frame in group_by(texts, "group", "source").items():
        row: Row = {"source": source, "group": names[group], "total": frame.height}
        for label in _SENTIMENTS:
            row |= estimate_cells(label, label_share(frame, "sentiment", label))
        rows.append(row)
    return rows


def _toxic_rows(texts: pl.DataFrame, names: Mapping[str, str]) -> list[Row]:
    return [
        {
            "source": source,
            "group": names[group],
            "total": frame.height,
            **estimate_cells("toxic", label_share(frame, "toxicity", "toxic")),
        }
        for (group, source), frame in group_by(texts, "group", "source").items()
    ]


def _stacks(texts: pl.DataFrame, names: Mapping[str, str], *, with_source: bool = True) -> list[StackedBar]:
    stacks = []
    for (group, source), frame in group_by(texts, "group", "source").items():
        known = frame["sentiment"].drop_nulls()
        if known.is_empty():
            continue
        parts = {label: _rate(known == label) for label in _SENTIMENTS}
        stacks.append(StackedBar(f"{names[group]}, {source}" if with_source else names[group], parts))
    return stacks


def _bars(rows: list[Row]) -> list[FigureBar]:
    return [
        FigureBar(
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
