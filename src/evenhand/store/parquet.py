"""Parquet files by the very names they have.

Polars takes ``*``, ``?`` and ``[`` in a path for a pattern and a first ``~`` for the home folder: a run
folder ``run?`` would be read together with ``run1``. All Parquet is read and written here, where a name is
only a name.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl


def scan_parquet(*paths: Path | str) -> pl.LazyFrame:
    """The rows of files, one after another, read when they are used."""
    # Only a path that begins with ~ is taken for one in the home folder, and an absolute one never does.
    literal = [Path(path).absolute() for path in paths]
    return pl.scan_parquet(literal, glob=False, hive_partitioning=False)


def read_parquet(path: Path | str, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """The rows of a file, of all its columns or of these."""
    rows = scan_parquet(path)
    return (rows if columns is None else rows.select(columns)).collect()


def write_parquet(rows: pl.DataFrame | pl.LazyFrame, path: Path | str) -> None:
    """Write rows to a file; lazy ones are streamed."""
    if isinstance(rows, pl.LazyFrame):
        rows.sink_parquet(Path(path).absolute())
    else:
        rows.write_parquet(Path(path).absolute())
