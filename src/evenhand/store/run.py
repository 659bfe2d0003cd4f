"""A run, finished or not: its manifest and its tables, read only."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from evenhand._version import __version__
from evenhand.core.errors import EvenhandError, InputError, RunFolderError
from evenhand.core.regular_files import read_text
from evenhand.store.parquet import check_parquet, scan_parquet
from evenhand.store.schemas import EVERY_SCHEMA, SCHEMAS, empty_table
from evenhand.store.table_files import PARQUET_ERRORS, first_error_line

MANIFEST = "run.json"
FORMAT = 2
"""Incremented when the columns of a table change, so that an older folder can no longer be read.

2: ratios, Cliff's delta, nulls by reason and the permutation check in ``comparisons``; omnibus tests,
pairs, strata, cuts and distributions; intervals in the tables of probe and corpus runs.
"""
REDO_HINT = "rerun the command that made it with --fresh; cached results are not computed again"
"""Fix for a folder of another format."""

REPORTS = ("html", "json", "md")
"""The formats of the report."""

_OBJECTS = ("identity", "stages", "suites", "metrics", "config", "corpora", "view", "hardware")
_LISTS = ("warnings", "growth")
"""The expected types of a manifest's entries."""
Manifest = dict[str, Any]
"""The parsed ``run.json``; its keys are documented in ``docs/reference/run-folder.md``."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run folder."""

    path: Path
    manifest: Manifest
    trusted: Collection[str] = field(default=(), compare=False, repr=False)
    """Tables that this process wrote itself and need not check before reading."""

    @classmethod
    def open(cls, path: Path | str) -> Run:
        """The run in a folder."""
        folder = Path(path)
        return cls(folder, read_manifest(folder))

    def scan(self, name: str) -> pl.LazyFrame:
        """A table, read lazily; empty if it was not written."""
        file = self.path / f"{name}.parquet"
        if not file.exists():
            if name not in EVERY_SCHEMA:
                tables = ", ".join(sorted(path.stem for path in self.path.glob("*.parquet")))
                raise InputError(
                    f"no table has the name {name!r}", expected=tables, fix="choose one of these"
                )
            return empty_table(name).lazy()
        with _damage_errors(file):
            if name not in self.trusted:
                check_parquet(file)
            rows = scan_parquet(file)
            columns = rows.collect_schema()
        schema = EVERY_SCHEMA.get(name, {})
        missing = [column for column in schema if column not in columns]
        if missing:
            raise RunFolderError(
                f"{file} lacks the columns {', '.join(missing)}: another version of evenhand wrote it",
                expected=f"the tables of run format {FORMAT}",
                fix=REDO_HINT,
            )
        other = [column for column, kind in schema.items() if columns[column] not in (kind, pl.Null)]
        if other:
            raise RunFolderError(
                f"column {other[0]} of {file} has the type {columns[other[0]]}",
                expected=f"{schema[other[0]]}, as evenhand writes it",
                fix=REDO_HINT,
            )
        return rows

    def table(self, name: str) -> pl.DataFrame:
        """A table, loaded into memory."""
        with _damage_errors(self.path / f"{name}.parquet"):
            return self.scan(name).collect()

    def __repr__(self) -> str:
        about = "".join(f", {key}={str(self.manifest.get(key, ''))[:80]!r}" for key in ("command", "name"))
        return f"Run({str(self.path)!r}{about})"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<code>{escape(str(self.path))}</code> ({', '.join(sorted(SCHEMAS))})"


def is_run_folder(folder: Path) -> bool:
    """Whether a folder holds one of our manifests, of any format version."""
    try:
        read_manifest(folder)
    except RunFolderError as error:
        return "has run format" in error.problem
    return True


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a run folder; an error if the folder is something else."""
    file = folder / MANIFEST
    if not file.is_file():
        raise RunFolderError(
            f"{folder} is not a run folder: it has no {MANIFEST}",
            expected="a folder written by `evenhand audit` or `evenhand score`",
            fix="check the path",
        )
    try:
        manifest = json.loads(read_text(file))
        version, _ = manifest["format"], manifest["identity"].keys()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise RunFolderError(
            f"{file} is not the manifest of a run: {error!r}",
            expected=f"the {MANIFEST} that evenhand wrote",
            fix="choose another folder with --out",
        ) from error
    if version != FORMAT:
        age = "a newer" if isinstance(version, int) and version > FORMAT else "an earlier"
        raise RunFolderError(
            f"{folder} has run format {str(version)[:40]}, of {age} evenhand",
            expected=f"format {FORMAT}, which evenhand {__version__} reads and writes",
            fix=REDO_HINT,
        )
    for name, part in manifest.items():
        if not isinstance(part, dict if name in _OBJECTS else list if name in _LISTS else object):
            raise RunFolderError(
                f"{file} is damaged: {name!r} is {str(part)[:80]!r}",
                expected=f"the {MANIFEST} that evenhand wrote",
                fix=REDO_HINT,
            )
    return {"stages": {}, "warnings": [], "growth": [], **manifest}


@contextmanager
def run_errors(*runs: Run | Path | str) -> Iterator[None]:
    """Name the run folder whose tables and manifest are inconsistent; evenhand's own errors pass through.

    A modified folder can raise any error, wherever it is used. With ``EVENHAND_DEBUG`` set the error is not
    converted, since for an unmodified folder it would mean a bug in evenhand.
    """
    try:
        yield
    except (EvenhandError, ImportError, OSError):
        raise
    except (Exception, pl.exceptions.PanicException) as error:
        if os.environ.get("EVENHAND_DEBUG"):
            raise
        names = ", ".join(str(run.path if isinstance(run, Run) else run) for run in runs)
        reason = " ".join(str(error).split())[:200]
        raise RunFolderError(
            f"the run folder {names} cannot be used: {type(error).__name__}: {reason}",
            expected="run folders as evenhand wrote them",
            fix=f"{REDO_HINT}. If nobody modified the folder, report this: "
            "EVENHAND_DEBUG=1 shows the traceback",
        ) from error


@contextmanager
def _damage_errors(file: Path) -> Iterator[None]:
    """Name the file that cannot be read."""
    try:
        yield
    except EvenhandError:
        raise
    except PARQUET_ERRORS as error:
        raise RunFolderError(
            f"{file} is damaged: {first_error_line(error)}",
            expected="a table as the run wrote it",
            fix="rerun the command that made it: finished shards are kept",
        ) from error
