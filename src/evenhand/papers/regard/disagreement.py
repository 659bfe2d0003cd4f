"""Our own: where regard and sentiment disagree, how often, and in which texts."""

from __future__ import annotations

from typing import Final

import polars as pl

from evenhand.papers.records import Table
from evenhand.papers.regard.published import LABELS

SHOWN: Final = 25
"""Texts a source, context and direction."""
_SHOWN: Final = (
    *("source", "context", "axis", "group"),
    *("regard", "sentiment", "regard_value", "sentiment_value", "text"),
)


def table_agreement(texts: pl.DataFrame) -> Table:
    """Texts by context, regard and sentiment, with their share of the context's texts that have both."""
    known = _known(texts)
    keys = ["source", "context"]
    counts = known.group_by(*keys, "regard", "sentiment").len("texts")
    totals = known.group_by(keys).len("of")
    frame = (
        counts.join(totals, on=keys)
        .with_columns(share=pl.col("texts") / pl.col("of"), agree=pl.col("regard") == pl.col("sentiment"))
        .sort(*keys, "regard", "sentiment")
    )
    notes = (
        f"{texts.height - known.height:,} of {texts.height:,} texts are not counted: their regard is other, "
        "or one of the two labels is missing.",
    )
    return Table("table_agreement", "Regard against sentiment", frame, notes)


def table_disagreements(texts: pl.DataFrame) -> Table:
    """Texts of positive sentiment and negative regard or the reverse, the most decided first."""
    known = _known(texts).filter(
        (pl.col("regard") != pl.col("sentiment"))
        & (pl.col("regard") != "neutral")
        & (pl.col("sentiment") != "neutral")
    )
    apart = (pl.col("regard_value") - pl.col("sentiment_value")).abs()
    frame = (
        known.unique(["source", "text"], maintain_order=True)
        .with_columns(apart=apart)
        .sort("apart", "text", descending=[True, False])
        .group_by("source", "context", "regard", "sentiment", maintain_order=True)
        .head(SHOWN)
        .sort("source", "context", "regard", maintain_order=True)
        .select(_SHOWN)
    )
    notes = (
        f"At most {SHOWN} texts a source, context and direction, the largest distance of the scores first.",
    )
    return Table(
        "table_disagreements", "Where regard and sentiment point apart", frame, notes, is_offensive=True
    )


def _known(texts: pl.DataFrame) -> pl.DataFrame:
    return texts.filter(pl.col("regard").is_in(LABELS) & pl.col("sentiment").is_in(LABELS))
