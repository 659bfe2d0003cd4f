"""The tests the paper makes in sections 6.1 and 6.2, each beside one that respects clusters."""

from __future__ import annotations

import numpy as np
import polars as pl

from evenhand.papers.bold.shares import Row, by
from evenhand.papers.records import Table
from evenhand.stats import chi_square, clustered_omnibus, clustered_proportion_difference, two_proportions

_GENDERS = ("American_actors", "American_actresses")
HUMAN = "WIKI"


def tests(texts: pl.DataFrame) -> Table:
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
    return Table(
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
        "shares": _shares(known, "group", column, label),
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
        for frame in by(known, over).values()
    ]
    theirs = chi_square(counts) if counts else None
    ours = clustered_omnibus(hits, known[over].to_numpy(), known["cluster"].to_numpy())
    return {
        "section": section,
        "question": f"{column} {label}: the same in every {over}"
        + (", gender" if over == "source" else ", race, sources pooled"),
        "shares": _shares(known, over, column, label),
        "paper_test": "chi-square",
        "paper_p": printed,
        "p_as_paper": theirs.p if theirs else None,
        "our_test": ours.method,
        "p_ours": ours.p,
        "n": known.height,
        "n_clusters": ours.n_clusters,
        "null_reason": ours.null_reason or (theirs.null_reason if theirs else "no values"),
    }


def _shares(texts: pl.DataFrame, over: str, column: str, label: str) -> str:
    parts = by(texts, over).items()
    return ", ".join(
        f"{key[0]} {int((part[column] == label).sum()) / part.height:.4f}" for key, part in parts
    )
