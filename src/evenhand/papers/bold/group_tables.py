"""Groups and their prompts (Table 1), and gender polarity, regard, sentiment and toxicity by group."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from statistics import mean

import polars as pl

from evenhand.core.records import Prompt
from evenhand.papers.bold.labelled_texts import (
    GENDERS,
    RACES,
    Row,
    estimate_cells,
    group_by,
    group_rows,
    label_cells,
    stack_rows,
)
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
from evenhand.suites.bold import merged_groups

COLUMNS = {"gender_max": "max", "gender_wavg": "wavg", "unigram": "unigram"}
"""The paper's name of a way to aggregate, and the output of our metric."""
_SENTIMENTS = {label: ("sentiment", label) for label in ("negative", "neutral", "positive")}


def table_1(prompts: Iterable[Prompt]) -> PaperTable:
    """Groups and prompts of the copy that was loaded, beside those of the paper."""
    sizes = Counter((group.axis, group.name) for prompt in prompts for group in prompt.groups)
    counts = pl.DataFrame(
        [(axis, count) for (axis, _), count in sizes.items()],
        schema={"domain": pl.String, "prompts": pl.Int64},
        orient="row",
    )
    cells = pl.lit("this copy").alias("source"), "domain", "groups", "prompts"
    of = counts.group_by("domain", maintain_order=True).agg(pl.len().alias("groups"), pl.sum("prompts"))
    whole = of.select(pl.lit("total").alias("domain"), pl.sum("groups"), pl.sum("prompts"))
    frame = stack_rows("table_1", pl.concat([of, whole]).select(cells))
    return PaperTable("table_1", "Groups and prompts", frame)


def table_3(texts: pl.DataFrame) -> PaperTable:
    """Texts classified as male and as female in four merged groups of professions, by three ways."""
    return PaperTable(
        "table_3",
        "Texts classified as male and as female, by profession",
        stack_rows("table_3", group_rows(merge_professions(texts), _counts)).sort(
            "group", maintain_order=True
        ),
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
    of = texts.filter((pl.col("domain") == "profession") & pl.col("group").is_in(list(names)))
    return of.with_columns(pl.col("group").replace_strict(names, default=None))


def gender_ratios(texts: pl.DataFrame) -> dict[str, float | None]:
    """Section 6.2: the mean of the four Gender-Max ratios of each source; None where one does not exist."""
    means: dict[str, float | None] = {}
    for (source,), frame in group_by(merge_professions(texts), "source").items():
        ratios = [_count_genders(part, "max")[2] for part in group_by(frame, "group").values()]
        known = [ratio for ratio in ratios if ratio is not None]
        means[source] = mean(known) if len(known) == len(ratios) == 4 else None
    return means


def figure_2(texts: pl.DataFrame) -> PaperFigure:
    """The share of male minus the share of female texts for every profession, by Gender-Max."""
    of = texts.filter(pl.col("domain") == "profession")
    frame = group_rows(of, _difference).sort("group", maintain_order=True)
    bars = _bars(frame.with_columns(pl.col("group").str.replace_all("_", " ")), "difference")
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


def _counts(texts: pl.DataFrame) -> Row:
    row: Row = {}
    for name, column in COLUMNS.items():
        male, female, ratio = _count_genders(texts, column)
        cut = None if ratio is None else math.floor(ratio * 100) / 100
        row |= {f"{name}_male": male, f"{name}_female": female, f"{name}_ratio": cut}
    return row


def _count_genders(texts: pl.DataFrame, column: str) -> tuple[int, int, float | None]:
    """Texts classified as male, as female, and their ratio."""
    male, female = (int((texts[column] == label).sum()) for label in ("male", "female"))
    return male, female, male / female if female else None


def _difference(texts: pl.DataFrame) -> Row:
    # Male and female are shares of the same texts, so that their gap is one mean: of +1, -1 and 0.
    known = texts.filter(pl.col("max").is_not_null())
    signed = (known["max"] == "male").cast(pl.Float64) - (known["max"] == "female").cast(pl.Float64)
    return estimate_cells("difference", clustered_mean(signed.to_numpy(), known["cluster"].to_numpy()))


def table_5(texts: pl.DataFrame) -> PaperTable:
    """The shares of texts with positive and negative regard, in the groups the classifier was made for."""
    pairs = (GENDERS, {"African_Americans": "african_american", "European_Americans": "european_american"})
    rows: list[Row] = []
    for (source,), frame in group_by(texts, "source").items():
        row: Row = {"source": source}
        for names in pairs:
            for label in ("positive", "negative"):
                for group, name in names.items():
                    of = frame.filter(pl.col("group") == group)
                    row |= label_cells(of, {f"{label}_{name}": ("regard", label)})
        rows.append(row)
    frame = stack_rows("table_5", pl.DataFrame(rows, infer_schema_length=None))
    note = "Regard is the embedded classifier's; the paper's is a BERT of its own."
    title = "Shares of texts with positive and negative regard"
    return PaperTable("table_5", title, frame, notes=(note,), decimals=3)


def figure_3(texts: pl.DataFrame) -> PaperFigure:
    """Sentiment and toxicity in the gender and the race domain."""
    panels: list[FigurePanel] = []
    frames = []
    for title, labels in (
        ("sentiment", _SENTIMENTS),
        ("share of toxic texts", {"toxic": ("toxicity", "toxic")}),
    ):
        for domain, names in (("gender", GENDERS), ("race", RACES)):
            of = texts.filter(pl.col("domain") == domain)
            frames.append(group_rows(of, partial(label_cells, labels=labels), names))
            if labels is _SENTIMENTS:
                panels.append(FigurePanel(f"{title}, {domain}", stacks=_stacks(frames[-1])))
            else:
                panels.append(FigurePanel(f"{title}, {domain}", _bars(frames[-1], "toxic")))
    return PaperFigure(
        "figure_3",
        "Sentiment and toxicity by gender and race",
        pl.concat(frames, how="diagonal_relaxed"),
        bars_and_stacks(panels),
        alt="Shares of negative, neutral and positive texts, and of toxic texts, for each group and source.",
        notes=("Lines are 95 % intervals; one with an arrow is longer than the panel: see the numbers.",),
        narrow=bars_and_stacks(panels, narrow=True),
    )


def sentiment_figure(identifier: str, texts: pl.DataFrame) -> PaperFigure:
    """Figure 4 or 5: sentiment of texts about beliefs or political ideologies, a panel for each source."""
    domain, words = _SENTIMENT_FIGURES[identifier]
    of = texts.filter(pl.col("domain") == domain)
    frame = group_rows(of, partial(label_cells, labels=_SENTIMENTS))
    panels = [
        FigurePanel(source, stacks=_stacks(part, with_source=False))
        for source in of["source"].unique(maintain_order=True)
        for part in [frame.filter(pl.col("source") == source)]
    ]
    return PaperFigure(
        identifier,
        f"Sentiment by {words}",
        frame,
        bars_and_stacks(panels),
        alt=f"Shares of negative, neutral and positive texts for each {words}, one panel a source.",
        narrow=bars_and_stacks(panels, narrow=True),
    )


_SENTIMENT_FIGURES: Mapping[str, tuple[str, str]] = {
    "figure_4": ("religious_ideology", "religious and spiritual belief"),
    "figure_5": ("political_ideology", "political ideology"),
}
"""Domain, and what its groups are."""


def _stacks(shares: pl.DataFrame, *, with_source: bool = True) -> list[StackedBar]:
    return [
        StackedBar(
            f"{row['group']}, {row['source']}" if with_source else row["group"],
            {label: row[label] for label in _SENTIMENTS},
        )
        for row in shares.iter_rows(named=True)
        if row["negative"] is not None
    ]


def _bars(frame: pl.DataFrame, column: str) -> list[FigureBar]:
    return [
        FigureBar(row["group"], row["source"], row[column], row[f"{column}_low"], row[f"{column}_high"])
        for row in frame.iter_rows(named=True)
    ]
