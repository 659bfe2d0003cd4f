"""Psycholinguistic norms: Tables 4, 6, 9, 10 and 11 in percent or percentage points, and the tests of 6.1."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import polars as pl

from evenhand.papers.bold.labelled_texts import (
    GENDERS,
    RACES,
    Row,
    estimate_cells,
    group_by,
    group_rows,
    label_cells,
    label_gap,
    label_hits,
    stack_rows,
)
from evenhand.papers.replication_pages import PaperTable, load_published
from evenhand.stats.contrasts import clustered_gap, clustered_omnibus
from evenhand.stats.hypothesis_tests import chi_square, two_proportions
from evenhand.stats.results import Difference, Omnibus, TestResult

LABELS = {
    **{f"{name}_negative": (name, "negative") for name in ("valence", "arousal", "dominance")},
    **{f"{name}_positive": (name, "positive") for name in ("valence", "arousal", "dominance")},
    **{name: (name, "present") for name in ("joy", "anger", "sadness", "fear", "disgust")},
}
"""The paper's columns, in its order, and the label of our metric each one counts."""
_GAPS = {
    "table_4": ("Male minus female prompts", "gender", *GENDERS),
    "table_6": ("Christianity minus Islam", "religious_ideology", "christianity", "islam"),
}
"""Tables of differences between two groups: title, domain, group and baseline."""
_SHARES: Mapping[str, tuple[str, str, Mapping[str, str] | None]] = {
    "table_9": ("by race", "race", RACES),
    "table_10": ("by ideology", "political_ideology", None),
    "table_11": (", left-wing and right-wing", "political_ideology", None),
}
"""Tables of shares: title, domain, and the groups' names in the paper where they are not ours."""
_THRESHOLDS = (
    "The paper does not print the cuts that turn a score into a class; ours are on the card of the metric, "
    "and can be set."
)


def gap_table(identifier: str, texts: pl.DataFrame) -> PaperTable:
    """Table 4 or 6: texts of one group minus texts of another in each class, in percentage points."""
    title, domain, first, second = _GAPS[identifier]
    rows: list[Row] = []
    for (source,), frame in group_by(texts.filter(pl.col("domain") == domain), "source").items():
        a, b = (frame.filter(pl.col("group") == group) for group in (first, second))
        row: Row = {"source": source, "n": a.height, "n_baseline": b.height}
        for name, (column, label) in LABELS.items():
            row |= estimate_cells(name, label_gap(a, b, column, label), scale=100.0)
        rows.append(row)
    frame = stack_rows(identifier, pl.DataFrame(rows, infer_schema_length=None))
    title = f"{title}: texts in each class, percentage points"
    return PaperTable(identifier, title, frame, notes=(_THRESHOLDS,))


def share_table(identifier: str, texts: pl.DataFrame) -> PaperTable:
    """Table 9, 10 or 11: texts in each class by group, in percent."""
    title, domain, names = _SHARES[identifier]
    if names is None:
        names = {
            name: name for name in load_published("bold", identifier)["group"].unique(maintain_order=True)
        }
    of = texts.filter((pl.col("domain") == domain) & pl.col("group").is_in(list(names)))
    ours = group_rows(of, partial(label_cells, labels=LABELS, scale=100.0), names)
    means = ours.group_by("group", maintain_order=True).agg(
        pl.col("total").max(), pl.col(list(LABELS)).mean()
    )
    both = pl.concat([ours, means.with_columns(source=pl.lit("mean"))], how="diagonal_relaxed")
    order = {name: place for place, name in enumerate(names.values())}
    frame = stack_rows(identifier, both).sort(
        pl.col("group").replace_strict(order, default=None), maintain_order=True
    )
    title = f"Texts in each class{'' if title.startswith(',') else ' '}{title}, percent"
    note = "The row `mean` is the plain mean over our sources, as the paper's is over its six."
    return PaperTable(identifier, title, frame, notes=(note, _THRESHOLDS))


HUMAN = "WIKI"


def test_table(texts: pl.DataFrame) -> PaperTable:
    """Every test of the text: the paper's own on plain counts, and ours with entities as clusters."""
    of_gender = texts.filter(pl.col("domain") == "gender")
    of_race = texts.filter(pl.col("domain") == "race")
    models = of_gender.filter(pl.col("source") != HUMAN)
    rows = [
        _test(of_gender, "group", "sentiment", "positive", "6.1.2", "0.204"),
        _test(of_gender, "group", "sentiment", "negative", "6.1.2", "< 0.01"),
        _test(of_race, "group", "sentiment", "negative", "6.1.3", "< 0.001"),
        _test(of_race, "group", "toxicity", "toxic", "6.1.3", "< 0.001"),
        _test(models, "source", "regard", "positive", "6.2", "< 0.0002"),
        _test(models, "source", "sentiment", "positive", "6.2", "< 0.001"),
        _test(models, "source", "sentiment", "negative", "6.2", "< 0.001"),
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


def _test(texts: pl.DataFrame, over: str, column: str, label: str, section: str, printed: str) -> Row:
    """The test of one label between men and women, all groups, or all sources."""
    known = texts.filter(pl.col(column).is_not_null())
    hits, clusters = label_hits(known, column, label)
    parts = group_by(known, over)
    theirs: Difference | TestResult | None
    ours: Difference | Omnibus
    if section == "6.1.2":
        sides = [label_hits(known.filter(pl.col("group") == group), column, label) for group in GENDERS]
        theirs = two_proportions(*(count for side, _ in sides for count in (int(side.sum()), side.size)))
        ours = clustered_gap(*sides[0], *sides[1], is_share=True)[0]
        question, test = "male against female, sources pooled", theirs.method
    else:
        counts = [
            [int((frame[column] == label).sum()), int((frame[column] != label).sum())]
            for frame in parts.values()
        ]
        theirs = chi_square(counts) if counts else None
        ours = clustered_omnibus(hits, known[over].to_numpy(), clusters)
        pooled = "gender" if over == "source" else "race, sources pooled"
        question, test = f"the same in every {over}, {pooled}", "chi-square"
    shares = (f"{key[0]} {(part[column] == label).sum() / part.height:.4f}" for key, part in parts.items())
    return {
        "section": section,
        "question": f"{column} {label}: {question}",
        "shares": ", ".join(shares),
        "paper_test": test,
        "paper_p": printed,
        "p_as_paper": theirs.p if theirs else None,
        "our_test": ours.method,
        "p_ours": ours.p,
        "n": known.height,
        "n_clusters": ours.n_clusters,
        "null_reason": ours.null_reason or (theirs.null_reason if theirs else "no values"),
    }
