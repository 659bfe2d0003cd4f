"""A finished or unfinished run: its manifest and its tables, read only."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import PolarsError

from evenhand.core.errors import RunFolderError
from evenhand.store.schemas import SCHEMAS, empty

MANIFEST = "run.json"
FORMAT = 1
"""Raised when an older folder can no longer be read."""

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
        return pl.scan_parquet(file) if file.exists() else empty(name).lazy()

    def table(self, name: str) -> pl.DataFrame:
        """A table in memory."""
        try:
            return self.scan(name).collect()
        except (PolarsError, OSError) as error:
            raise RunFolderError(
                f"{self.path / name}.parquet is damaged: {str(error).splitlines()[0]}",
                accepted="a table as the run wrote it",
                todo="run the command that made it again: finished shards are kept",
            ) from error

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
            f"{folder} has run format {version}",
            accepted=f"format {FORMAT}",
            todo="use the evenhand version that wrote it, or run again with --fresh",
        )
    return dict(manifest)
