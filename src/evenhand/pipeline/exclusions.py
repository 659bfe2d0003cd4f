"""What was left out of a run, counted by reason."""

from __future__ import annotations

import polars as pl

from evenhand.store.schemas import EXCLUSIONS


def exclusions(generations: pl.DataFrame, scores: pl.LazyFrame, *, texts_stage: str) -> pl.DataFrame:
    """Texts that were never there, and for each metric the texts without a score."""
    failed = (
        generations.filter(pl.col("failure").is_not_null())
        .group_by(reason="failure")
        .len("count")
        .with_columns(
            stage=pl.lit(texts_stage), metric=pl.lit(None, pl.String), of=pl.lit(generations.height)
        )
    )
    texts = pl.col("text_id").n_unique()
    totals = scores.group_by("metric").agg(of=texts)
    nulls = (
        scores.filter(pl.col("null_reason").is_not_null())
        .group_by("metric", reason="null_reason")
        .agg(count=texts)
        .join(totals, on="metric")
        .with_columns(stage=pl.lit("score"))
        .collect()
    )
    columns = [pl.col(name).cast(kind) for name, kind in EXCLUSIONS.items()]
    table = pl.concat([failed.select(columns), nulls.select(columns)])
    return table.sort("stage", "metric", "reason", nulls_last=True)
