"""A finished or unfinished run: its manifest and its tables, read only."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from evenhand.core.errors import RunFolderError
from evenhand.store.schemas import SCHEMAS, empty

MANIFEST = "run.json"
FORMAT = 1
"""Raised when an older folder can no longer be read."""

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
        return self.scan(name).collect()

    def _repr_html_(self) -> str:
        from html import escape

        return f"<code>{escape(str(self.path))}</code> ({', '.join(sorted(SCHEMAS))})"


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
        version = manifest["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise RunFolderError(
            f"{file} is damaged: {error!r}", accepted="the manifest of a run", todo="start again with --fresh"
        ) from error
    if version != FORMAT:
        raise RunFolderError(
            f"{folder} has run format {version}",
            accepted=f"format {FORMAT}",
            todo="use the evenhand version that wrote it, or run again with --fresh",
        )
    return dict(manifest)
