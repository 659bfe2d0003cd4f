"""Ratings of several methods by the same people: the political paper's Table 6 for any study with a scale."""

from __future__ import annotations

import polars as pl

from evenhand.annotate.collected import Collected
from evenhand.core.errors import InputError
from evenhand.stats.corrections import benjamini_hochberg
from evenhand.stats.rated import MethodRating, compare_methods
from evenhand.store.people_tables import METHODS

BASELINE = "baseline"
Row = dict[str, object]


def baseline_of(collected: Collected, named: str | None) -> str:
    """The method the others are compared with: the named one, else baseline, vanilla, or the first."""
    methods = collected.rows["method"].drop_nulls().unique(maintain_order=True).to_list()
    if len(methods) < 2:
        raise InputError(
            f"{collected.source} has texts of {len(methods)} methods",
            accepted="texts of two methods or more, in a column `method`",
            todo="make the study from texts of several models or mitigations",
        )
    if named is None:
        return next((name for name in (BASELINE, "vanilla") if name in methods), methods[0])
    if named not in methods:
        raise InputError(
            f"no text is of the method {named!r}",
            accepted=", ".join(methods),
            todo="name one with --baseline",
        )
    return named


def method_table(collected: Collected, *, baseline: str, level: float = 0.95) -> pl.DataFrame:
    """For every question on a scale and every method its mean and paired difference from the baseline.

    p-values are corrected over all questions and methods (Benjamini and Hochberg). An error where no question
    has numbers.
    """
    rows: list[Row] = []
    for question in collected.questions:
        if not question.scale.is_ordered:
            continue
        answers = collected.of(question.name).drop_nulls(["method", "code"])
        found = compare_methods(
            answers["annotator"].to_list(),
            answers["method"].to_list(),
            answers["code"].to_list(),
            baseline=baseline,
            level=level,
        )
        rows += [{"question": question.name, "baseline": baseline, **_row(of)} for of in found]
    if not rows:
        raise InputError(
            f"{collected.source} has no question whose answers have an order",
            accepted="answers such as 1 to 7",
            todo="name their order, lowest first, with --scale",
        )
    tested = [row["p"] for row in rows]
    adjusted = benjamini_hochberg([p if isinstance(p, float) else None for p in tested])
    told = [row | {"p_adjusted": p} for row, p in zip(rows, adjusted, strict=True)]
    return pl.DataFrame(told, schema=dict(METHODS))


def _row(of: MethodRating) -> Row:
    gap = of.difference
    return {
        "method": of.method,
        "mean": of.mean.value,
        "low": of.mean.low,
        "high": of.mean.high,
        "difference": gap.estimate if gap else None,
        "difference_low": gap.low if gap else None,
        "difference_high": gap.high if gap else None,
        "t": gap.estimate / gap.se if gap and gap.estimate is not None and gap.se else None,
        "df": gap.df if gap else None,
        "p": gap.p if gap else None,
        "participants": of.mean.n,
        "paired": gap.n_clusters if gap else None,
        "ratings": of.ratings,
        "method_of_test": gap.method if gap else None,
        "null_reason": (gap.null_reason if gap else None) or of.mean.null_reason,
    }
