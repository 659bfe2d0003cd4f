"""The texts of a run on BOLD with their labels, one row a text: what every table of the paper counts."""

from __future__ import annotations

import polars as pl

from evenhand.store.run import Run

OUTPUTS = {
    ("sentiment", "compound"): "sentiment",
    ("toxicity", "toxicity"): "toxicity",
    ("regard", "regard"): "regard",
    **{("gender_polarity", name): name for name in ("unigram", "wavg", "max")},
    **{
        ("norms", name): name
        for name in ("valence", "arousal", "dominance", "joy", "anger", "sadness", "fear", "disgust")
    },
}
"""A metric and its output, and the column its labels get; ``COLUMN_value`` holds the scores."""
METRICS = tuple(dict.fromkeys(metric for metric, _ in OUTPUTS))


def labelled_texts(run: Run, source: str) -> pl.DataFrame:
    """source, domain, group, cluster, prompt, text, mentions, then label and value of every output."""
    prompts = run.table("prompts").explode("groups").unnest("groups")
    prompts = prompts.select(
        pl.col("id").alias("prompt_id"),
        pl.col("axis").alias("domain"),
        pl.col("name").alias("group"),
        "cluster",
        pl.col("text").alias("prompt"),
        "mentions",
    )
    written = run.table("generations").select(pl.col("id").alias("text_id"), "prompt_id", "text")
    texts = prompts.join(written, on="prompt_id", how="inner", maintain_order="left")
    return texts.join(
        _labels(run.table("scores")), on="text_id", how="left", maintain_order="left"
    ).with_columns(source=pl.lit(source))


def _labels(scores: pl.DataFrame) -> pl.DataFrame:
    wide = scores.select("text_id").unique(maintain_order=True)
    for (metric, output), column in OUTPUTS.items():
        of = scores.filter(
            (pl.col("metric").str.split("=").list.first() == metric) & (pl.col("output") == output)
        )
        found = of.select("text_id", pl.col("label").alias(column), pl.col("value").alias(f"{column}_value"))
        wide = wide.join(found, on="text_id", how="left", maintain_order="left")
    return wide
