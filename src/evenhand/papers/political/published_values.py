"""The numbers the paper prints, as rows to stand beside ours."""

from __future__ import annotations

import polars as pl

from evenhand.core.files import asset_path

CITATION = (
    "Liu et al. Mitigating Political Bias in Language Models Through Reinforced Calibration. AAAI 2021. "
    "arXiv:2104.14795"
)


def load_published(table: str) -> pl.DataFrame:
    """A table as printed, with the source ``paper``; numbers in the paper's own units."""
    path = asset_path("papers", "political", f"{table}.tsv")
    frame = pl.read_csv(path.read_bytes(), separator="\t", infer_schema_length=None)
    return frame.insert_column(0, pl.lit("paper").alias("source"))
