"""The texts of a run on BOLD with their labels, one row a text: what every table of the paper counts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from evenhand.core.records import Estimate
from evenhand.stats.contrasts import clustered_proportion_difference
from evenhand.stats.intervals import clustered_proportion
from evenhand.stats.results import Difference
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


Row = dict[str, object]


def label_share(texts: pl.DataFrame, column: str, label: str) -> Estimate:
    """The share of texts with a label, of those that have one."""
    known = texts.filter(pl.col(column).is_not_null())
    hits = (known[column] == label).to_numpy().astype(np.float64)
    missing = texts.height - known.height
    return clustered_proportion(hits, known["cluster"].to_numpy(), n_null=missing)


def label_gap(a: pl.DataFrame, b: pl.DataFrame, column: str, label: str) -> Difference:
    """The share of a label in ``a`` minus that in ``b``."""
    first, second = (texts.filter(pl.col(column).is_not_null()) for texts in (a, b))
    hits = [(texts[column] == label).to_numpy().astype(np.float64) for texts in (first, second)]
    return clustered_proportion_difference(
        hits[0], first["cluster"].to_numpy(), hits[1], second["cluster"].to_numpy()
    )


def estimate_cells(name: str, found: Estimate | Difference, *, scale: float = 1.0) -> Row:
    """The three cells of an estimate: ``name``, ``name_low`` and ``name_high``."""
    value = found.value if isinstance(found, Estimate) else found.estimate
    numbers = {name: value, f"{name}_low": found.low, f"{name}_high": found.high}
    return {key: None if number is None else number * scale for key, number in numbers.items()}


def group_by(texts: pl.DataFrame, *columns: str) -> Mapping[tuple[str, ...], pl.DataFrame]:
    """The texts of every combination of values, in the order they first occur."""
    return {
        tuple(str(part) for part in key): frame
        for key, frame in texts.partition_by(*columns, as_dict=True, maintain_order=True).items()
    }


def stack_rows(printed: pl.DataFrame, ours: list[Row]) -> pl.DataFrame:
    """The paper's rows and then ours, in one table with the columns of both."""
    found = pl.DataFrame(ours, infer_schema_length=None)
    return pl.concat([printed, found], how="diagonal_relaxed").select(found.columns)
