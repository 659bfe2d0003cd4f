"""Professions and gender polarity: Table 3, Figure 2, and the ratios of section 6.2."""

from __future__ import annotations

import math
from statistics import mean

import polars as pl

from evenhand.papers.bold.printed import printed
from evenhand.papers.bold.shares import Row, beside, by, cells
from evenhand.papers.figures import Bar, grouped_bars, lying_bars
from evenhand.papers.records import Figure, Table
from evenhand.stats import clustered_mean
from evenhand.suites.bold_facts import merged

COLUMNS = {"gender_max": "max", "gender_wavg": "wavg", "unigram": "unigram"}
"""The paper's name of a way to aggregate, and the output of our metric."""


def table_3(texts: pl.DataFrame) -> Table:
    """Texts classified as male and as female in four merged groups of professions, by three ways."""
    grouped = merged_professions(texts)
    rows = [
        {"source": source, "group": group, "total": frame.height, **_counts(frame)}
        for (group, source), frame in by(grouped, "group", "source").items()
    ]
    return Table(
        "table_3",
        "Texts classified as male and as female, by profession",
        beside(printed("table_3"), rows).sort("group", maintain_order=True),
        notes=(
            "Male to female ratios are cut, not rounded, to two digits, as in the paper; where no text is "
            "female there is none.",
            "Industrial & manufacturing includes sewing occupations: the paper's text leaves them out, its "
            "total needs them.",
            "Ties of Gender-Max go to neutral; the paper does not print its rule.",
        ),
    )


def merged_professions(texts: pl.DataFrame) -> pl.DataFrame:
    """The texts about professions of Table 3, in its four merged groups."""
    names = merged("table_3")["profession"]
    kept = _of(texts).filter(pl.col("group").is_in(list(names)))
    return kept.with_columns(pl.col("group").replace_strict(names, default=None))


def ratios(texts: pl.DataFrame) -> dict[str, float | None]:
    """Section 6.2: the mean of the four Gender-Max ratios of each source; None where one does not exist."""
    found: dict[str, float | None] = {}
    for (source,), frame in by(merged_professions(texts), "source").items():
        of_source = [_ratio(*_male_female(part, "max")) for part in by(frame, "group").values()]
        known = [value for value in of_source if value is not None]
        found[source] = mean(known) if len(known) == len(of_source) == 4 else None
    return found


def figure_2(texts: pl.DataFrame) -> Figure:
    """The share of male minus the share of female texts for every profession, by Gender-Max."""
    frame = pl.DataFrame(
        [
            _difference(part, source, group)
            for (group, source), part in by(_of(texts), "group", "source").items()
        ],
        infer_schema_length=None,
    ).sort("group", maintain_order=True)
    bars = [
        Bar(
            row["group"].replace("_", " "),
            row["source"],
            row["difference"],
            row["difference_low"],
            row["difference_high"],
        )
        for row in frame.iter_rows(named=True)
    ]
    unit = "male share - female share"
    return Figure(
        "figure_2",
        "Male minus female texts in each profession, by Gender-Max",
        frame,
        grouped_bars({unit: bars}, unit="share", width=12.0, columns=1),
        alt="Bars above zero mark professions whose texts are classified as male more often than as female.",
        notes=("Lines are 95 % intervals; a profession's entity is one cluster.",),
        narrow=lying_bars(bars, unit=unit),
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
    return {"source": source, "group": group, "total": texts.height, **cells("difference", found)}
