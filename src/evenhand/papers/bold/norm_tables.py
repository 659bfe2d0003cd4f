"""Psycholinguistic norms: Tables 4, 6, 9, 10 and 11, in percent or percentage points."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from evenhand.papers.bold.labelled_texts import (
    Row,
    estimate_cells,
    group_by,
    label_gap,
    label_share,
    stack_rows,
)
from evenhand.papers.bold.published_values import load_published
from evenhand.papers.replication_pages import PaperTable
from evenhand.stats.contrasts import clustered_omnibus, clustered_proportion_difference
from evenhand.stats.hypothesis_tests import chi_square, two_proportions

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


def table_4(texts: pl.DataFrame) -> PaperTable:
    """Texts of male minus texts of female prompts in each class, in percentage points."""
    of = texts.filter(pl.col("domain") == "gender")
    title = "Male minus female prompts: texts in each class, percentage points"
    return _gaps("table_4", title, of, "American_actors", "American_actresses")


def table_6(texts: pl.DataFrame) -> PaperTable:
    """Texts of Christianity minus texts of Islam in each class, in percentage points."""
    of = texts.filter(pl.col("domain") == "religious_ideology")
    title = "Christianity minus Islam: texts in each class, percentage points"
    return _gaps("table_6", title, of, "christianity", "islam")


def table_9(texts: pl.DataFrame) -> PaperTable:
    """Texts in each class for the four groups of race, in percent."""
    of = texts.filter(pl.col("domain") == "race")
    return _shares("table_9", "Texts in each class by race, percent", of, RACES)


def table_10(texts: pl.DataFrame) -> PaperTable:
    """Texts in each class for ten political ideologies, in percent."""
    names = list(load_published("table_10")["group"].unique(maintain_order=True))
    of = texts.filter(pl.col("domain") == "political_ideology")
    return _shares("table_10", "Texts in each class by ideology, percent", of, {name: name for name in names})


def table_11(texts: pl.DataFrame) -> PaperTable:
    """Texts in each class for left-wing and right-wing, in percent."""
    of = texts.filter(pl.col("domain") == "political_ideology")
    title = "Texts in each class, left-wing and right-wing, percent"
    return _shares("table_11", title, of, {name: name for name in WINGS})


def _gaps(identifier: str, title: str, texts: pl.DataFrame, first: str, second: str) -> PaperTable:
    rows: list[Row] = []
    for (source,), frame in group_by(texts, "source").items():
        a, b = (frame.filter(pl.col("group") == group) for group in (first, second))
        row: Row = {"source": source, "n": a.height, "n_baseline": b.height}
        for name, (column, label) in LABELS.items():
            row |= estimate_cells(name, label_gap(a, b, column, label), scale=_PERCENT)
        rows.append(row)
    return PaperTable(identifier, title, stack_rows(load_published(identifier), rows), notes=(_THRESHOLDS,))


def _shares(identifier: str, title: str, texts: pl.DataFrame, names: Mapping[str, str]) -> PaperTable:
    kept = texts.filter(pl.col("group").is_in(list(names)))
    rows: list[Row] = []
    for (group, source), frame in group_by(kept, "group", "source").items():
        row: Row = {"source": source, "group": names[group], "total": frame.height}
        for name, (column, label) in LABELS.items():
            row |= estimate_cells(name, label_share(frame, column, label), scale=_PERCENT)
        rows.append(row)
    ours = pl.DataFrame(rows, infer_schema_length=None)
    frame = stack_rows(load_published(identifier), [*rows, *_means(ours).to_dicts()])
    order = {name: place for place, name in enumerate(names.values())}
    frame = frame.sort(pl.col("group").replace_strict(order, default=None), maintain_order=True)
    note = "The row `mean` is the plain mean over our sources, as the paper's is over its six."
    return PaperTable(identifier, title, frame, notes=(note, _THRESHOLDS))


def _means(rows: pl.DataFrame) -> pl.DataFrame:
    means = rows.group_by("group", maintain_order=True).agg(
        pl.col("total").max(), pl.col(list(LABELS)).mean()
    )
    return means.with_columns(source=pl.lit("mean"))


_GENDERS = ("American_actors", "American_actresses")
HUMAN = "WIKI"


def test_table(texts: pl.DataFrame) -> PaperTable:
    """Every test of the text: the paper's own on plain counts, and ours with entities as clusters."""
    of_gender = texts.filter(pl.col("domain") == "gender")
    of_race = texts.filter(pl.col("domain") == "race")
    models = of_gender.filter(pl.col("source") != HUMAN)
    rows = [
        _two_shares(of_gender, "sentiment", "positive", "0.204"),
        _two_shares(of_gender, "sentiment", "negative", "< 0.01"),
        _over(of_race, "group", "sentiment", "negative", "6.1.3", "< 0.001"),
        _over(of_race, "group", "toxicity", "toxic", "6.1.3", "< 0.001"),
        _over(models, "source", "regard", "positive", "6.2", "< 0.0002"),
        _over(models, "source", "sentiment", "positive", "6.2", "< 0.001"),
        _over(models, "source", "sentiment", "negative", "6.2", "< 0.001"),
    ]
    return PaperTable(
        "tests",
        "The paper's tests, and ours beside them",
        pl.DataFrame(rows, infer_schema_length=None),
        notes=(
            "The paper's tests take every text as independent. Ours take an entity as one cluster, across "
            "sources too, because the same prompt is continued by each of them.",
            "Sources are pooled in tests over groups. Tests over sources are of texts that models wrote "
            "about gender, so that WIKI is left out; the paper leaves BERT out of its test of regard too, "
            "and does not name that test's domain.",
            "No correction is made here: the seven tests are those of the text, one by one.",
        ),
        decimals=4,
    )


def _two_shares(texts: pl.DataFrame, column: str, label: str, printed: str) -> Row:
    known = texts.filter(pl.col(column).is_not_null())
    parts = [known.filter(pl.col("group") == group) for group in _GENDERS]
    hits = [(part[column] == label).to_numpy().astype(np.float64) for part in parts]
    theirs = two_proportions(int(hits[0].sum()), hits[0].size, int(hits[1].sum()), hits[1].size)
    ours = clustered_proportion_difference(
        hits[0], parts[0]["cluster"].to_numpy(), hits[1], parts[1]["cluster"].to_numpy()
    )
    return {
        "section": "6.1.2",
        "question": f"{column} {label}: male against female, sources pooled",
        "shares": _shares_significance_tests(known, "group", column, label),
        "paper_test": theirs.method,
        "paper_p": printed,
        "p_as_paper": theirs.p,
        "our_test": ours.method,
        "p_ours": ours.p,
        "n": known.height,
        "n_clusters": ours.n_clusters,
        "null_reason": ours.null_reason or theirs.null_reason,
    }


def _over(texts: pl.DataFrame, over: str, column: str, label: str, section: str, printed: str) -> Row:
    known = texts.filter(pl.col(column).is_not_null())
    hits = (known[column] == label).to_numpy().astype(np.float64)
    counts = [
        [int((frame[column] == label).sum()), int((frame[column] != label).sum())]
        for frame in group_by(known, over).values()
    ]
    theirs = chi_square(counts) if counts else None
    ours = clustered_omnibus(hits, known[over].to_numpy(), known["cluster"].to_numpy())
    return {
        "section": section,
        "question": f"{column} {label}: the same in every {over}"
        + (", gender" if over == "source" else ", race, sources pooled"),
        "shares": _shares_significance_tests(known, over, column, label),
        "paper_test": "chi-square",
        "paper_p": printed,
        "p_as_paper": theirs.p if theirs else None,
        "our_test": ours.method,
        "p_ours": ours.p,
        "n": known.height,
        "n_clusters": ours.n_clusters,
        "null_reason": ours.null_reason or (theirs.null_reason if theirs else "no values"),
    }


def _shares_significance_tests(texts: pl.DataFrame, over: str, column: str, label: str) -> str:
    parts = group_by(texts, over).items()
    return ", ".join(
        f"{key[0]} {int((part[column] == label).sum()) / part.height:.4f}" for key, part in parts
    )
