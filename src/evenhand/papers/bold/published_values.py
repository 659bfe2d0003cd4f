"""The numbers the BOLD paper prints, as rows to stand beside ours."""

from __future__ import annotations

import polars as pl

from evenhand.core.files import asset_path

CITATION = (
    "Dhamala et al. BOLD: Dataset and Metrics for Measuring Biases in Open-Ended Language Generation. "
    "FAccT 2021. arXiv:2101.11718"
)
RATIOS = {"WIKI": 2.29, "BERT": 1.25, "GPT-2": 3.18, "CTRL-WIKI": 2.94, "CTRL-OPN": 1.85, "CTRL-THT": 2.15}
"""Section 6.2: the mean of a source's four male : female ratios by Gender-Max."""


def load_published(table: str) -> pl.DataFrame:
    """A table as printed, its sources called ``paper: NAME``; numbers in the paper's own units."""
    path = asset_path("papers", "bold", f"{table}.tsv")
    frame = pl.read_csv(path.read_bytes(), separator="\t", infer_schema_length=None)
    if "source" not in frame.columns:
        return frame.insert_column(0, pl.lit("paper").alias("source"))
    return frame.with_columns(pl.format("paper: {}", "source").alias("source"))
