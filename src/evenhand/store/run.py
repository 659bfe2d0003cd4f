"""A finished or unfinished run: its manifest and its tables, read only."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import PolarsError

from evenhand._version import __version__
from evenhand.core.errors import RunFolderError
from evenhand.store.schemas import EVERY_SCHEMA, SCHEMAS, empty

MANIFEST = "run.json"
FORMAT = 2
"""Raised when the columns of a table change, so that an older folder can no longer be read.

2: ratios, Cliff's delta, nulls by reason and the permutation check in ``comparisons``; omnibus answers,
pairs, strata, cuts and distributions; intervals in the tables of probe and corpus runs.
"""
REDO = "run the command that made it again with --fresh; what the cache still holds is not computed twice"
"""What to do about a folder of another format."""

REPORTS = ("html", "json", "md")
"""The forms of the report."""

Manifest = dict[str, Any]
"""The parsed ``run.json``; its keys are documented in ``docs/reference/run-folder.md``."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run folder."""

    path: Path
    manifest: Manifest

    @classmethod
    def open(cls, path: Path | str) -> Run:
        """The run in a folder."""
        folder = Path(path)
        return cls(folder, read_manifest(folder))

    def scan(self, name: str) -> pl.LazyFrame:
        """A table, read when it is used; one that was not written is empty."""
        file = self.path / f"{name}.parquet"
        if not file.exists():
            return empty(name).lazy()
        with _naming_damage(file):
            found = pl.scan_parquet(file)
            columns = found.collect_schema().names()
        missing = [column for column in EVERY_SCHEMA.get(name, {}) if column not in columns]
        if missing:
            raise RunFolderError(
                f"{file} lacks the columns {', '.join(missing)}: another version of evenhand wrote it",
                accepted=f"the tables of run format {FORMAT}",
                todo=REDO,
            )
        return found

    def table(self, name: str) -> pl.DataFrame:
        """A table in memory."""
        with _naming_damage(self.path / f"{name}.parquet"):
            return self.scan(name).collect()

    def _repr_html_(self) -> str:
        from html import escape

        return f"<code>{escape(str(self.path))}</code> ({', '.join(sorted(SCHEMAS))})"


def is_run_folder(folder: Path) -> bool:
    """Whether a folder holds a manifest of ours, of whatever format."""
    try:
        read_manifest(folder)
    except RunFolderError as error:
        return "has run format" in error.came
    return True


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a run folder, or an error that says what the folder is instead."""
    file = folder / MANIFEST
    if not file.is_file():
        raise RunFolderError(
            f"{folder} is not a run folder: it has no {MANIFEST}",
            accepted="a folder written by `evenhand audit` or `evenhand score`",
            todo="check the path",
        )
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
        version, _ = manifest["format"], manifest["identity"].keys()
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunFolderError(
            f"{file} is not the manifest of a run: {error!r}",
            accepted=f"the {MANIFEST} that evenhand wrote",
            todo="choose another folder with --out",
        ) from error
    if version != FORMAT:
        raise RunFolderError(
            f"{folder} has run format {version}, of {_age(version)} evenhand",
            accepted=f"format {FORMAT}, which evenhand {__version__} reads and writes",
            todo=REDO,
        )
    return dict(manifest)


def _age(version: object) -> str:
    return "a newer" if isinstance(version, int) and version > FORMAT else "an earlier"


@contextmanager
def _naming_damage(file: Path) -> Iterator[None]:
    """Names the file that cannot be read."""
    try:
        yield
    except (PolarsError, OSError) as error:
        raise RunFolderError(
            f"{file} is damaged: {str(error).splitlines()[0]}",
            accepted="a table as the run wrote it",
            todo="run the command that made it again: finished shards are kept",
        ) from error
