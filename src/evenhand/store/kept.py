"""Tables that are made once: a second start finds them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl

from evenhand._version import __version__
from evenhand.core.digests import Json, digest
from evenhand.store.atomic import replacing
from evenhand.store.files import PARQUET_ERRORS
from evenhand.store.parquet import read_parquet, write_parquet
from evenhand.store.run import Run


def kept_table(
    folder: Path, name: str, depends_on: list[Json], make: Callable[[], pl.DataFrame]
) -> pl.DataFrame:
    """The table ``name`` of what it depends on: read where it was made before, else made and written.

    The version of the package is among what it depends on. A file that cannot be read is made again.
    """
    path = folder / f"{name}-{digest([__version__, *depends_on], size=6)}.parquet"
    if path.is_file():
        try:
            return read_parquet(path)
        except PARQUET_ERRORS:
            path.unlink()
    table = make()
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        write_parquet(table, temporary)
    return table


def run_key(run: Run) -> list[Json]:
    """What a run's texts and scores depend on."""
    metrics = run.manifest.get("metrics") or {}
    return [
        run.manifest["identity"],
        run.manifest["growth"],
        {name: [info.get("version"), info.get("weights")] for name, info in metrics.items()},
    ]
