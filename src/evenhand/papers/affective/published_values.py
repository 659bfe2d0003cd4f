"""The numbers the affective paper prints, as rows to stand beside ours."""

from __future__ import annotations

from typing import Final

import polars as pl

from evenhand.core.files import asset_path

CITATION: Final = (
    "Kadan, Deepak, Bhadra, Gangan and Lajish. Understanding latent affective bias in large pre-trained "
    "neural "
    "language models. Natural Language Processing Journal, 2024. doi:10.1016/j.nlp.2024.100062"
)
MODELS: Final = {"table_6": "BERT", "table_7": "GPT-2", "table_8": "XLNet", "table_9": "T5"}
GROUPS: Final = {
    "male": "M",
    "female": "F",
    "non-binary": "Nb",
    "European American": "EA",
    "African American": "AA",
    "Christian": "Ch",
    "Muslim": "Mu",
    "Jewish": "Jw",
}
"""Our names of groups to the paper's."""
CORPORA: Final = {"eec": "EEC", "bits": "BITS", "crows": "CSP"}
"""Our names of pairs to the paper's."""


def load_published(table: str) -> pl.DataFrame:
    """A table as printed, with ``source`` ``paper`` (or ``paper: MODEL``)."""
    path = asset_path("papers", "affective", f"{table}.tsv")
    frame = pl.read_csv(path.read_bytes(), separator="\t", infer_schema_length=None)
    if "model" in frame.columns:
        named = frame.with_columns(source=pl.format("paper: {}", "model")).drop("model")
        return named.select("source", pl.all().exclude("source"))
    return frame.insert_column(0, pl.lit("paper").alias("source"))


def load_published_predictions() -> pl.DataFrame:
    """Tables 6 to 9, one under the other."""
    return pl.concat([load_published(table) for table in MODELS])
