"""The content-addressed cache: what was generated or scored once is not computed again.

One SQLite file, so that several processes can share it and a kill loses nothing already written.
Values are JSON.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import polars as pl

from evenhand._version import __version__
from evenhand.core.digests import Json, canonical_json, digest
from evenhand.core.errors import StorageError
from evenhand.store.atomic_writes import replace_file
from evenhand.store.parquet import read_parquet, write_parquet
from evenhand.store.run import Run
from evenhand.store.table_files import PARQUET_ERRORS

Kind = Literal["generations", "scores", "rates"]

_log = logging.getLogger(__name__)
_ERRORS = (sqlite3.Error, ValueError, OverflowError)
"""Errors that a damaged file can raise: even its error messages need not be UTF-8."""


def cache_folder() -> Path:
    """The cache folder: ``EVENHAND_CACHE``, else the user's cache folder."""
    if folder := os.environ.get("EVENHAND_CACHE"):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "evenhand"


class ContentCache:
    """Values by key. If the cache cannot be opened or written, the run is slower but does not fail."""

    def __init__(self, folder: Path | None = None) -> None:
        self.path = (folder or cache_folder()) / "cache.sqlite"
        self._connection = self._open()

    def get_many(self, kind: Kind, keys: Sequence[str]) -> dict[str, Json]:
        """The cached values, by key; a row that does not hold JSON counts as a miss."""
        values: dict[str, Json] = {}
        if self._connection is None:
            return values
        query = f"SELECT key, value FROM {kind} WHERE key IN (SELECT value FROM json_each(?))"
        try:
            for key, value in self._connection.execute(query, [json.dumps(list(keys))]):
                with contextlib.suppress(ValueError, TypeError, RecursionError):
                    values[key] = json.loads(value)
        except _ERRORS as error:
            self._give_up(error)
        return values

    def rate(self, key: str) -> float | None:
        """A speed measured here before, for an estimate; None if there is none."""
        rate = self.get_many("rates", [key]).get(key)
        return rate if isinstance(rate, float) and rate > 0 else None

    def put_many(self, kind: Kind, values: Mapping[str, Json]) -> None:
        """Store values; an existing key gets the new value."""
        if self._connection is None or not values:
            return
        rows = [(key, canonical_json(value)) for key, value in values.items()]
        try:
            with self._connection:
                self._connection.executemany(f"INSERT OR REPLACE INTO {kind} VALUES (?, ?)", rows)
        except _ERRORS as error:
            self._give_up(error)

    def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> sqlite3.Connection | None:
        connection = None
        try:
            # Generated texts may be private to the user.
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            connection = sqlite3.connect(self.path, timeout=30)
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            with connection:
                for kind in ("generations", "scores", "rates"):
                    connection.execute(
                        f"CREATE TABLE IF NOT EXISTS {kind} (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID"
                    )
            return connection
        except (*_ERRORS, OSError) as error:
            _log.warning("no cache at %s (%s): the run works without it", self.path, error)
            if connection is not None:
                connection.close()
            return None

    def _give_up(self, error: Exception) -> None:
        _log.warning("the cache at %s failed (%s): the run goes on without it", self.path, error)
        self.close()


def clear_cache(folder: Path | None = None) -> int:
    """Delete the cache and return the bytes freed."""
    freed = 0
    for end in ("", "-wal", "-shm"):
        path = (folder or cache_folder()) / f"cache.sqlite{end}"
        if path.exists():
            freed += path.stat().st_size
            try:
                path.unlink()
            except OSError as error:
                raise StorageError(f"{path} cannot be deleted: {error}", fix="close other runs") from error
    return freed


def cached_table(
    folder: Path, name: str, depends_on: list[Json], make: Callable[[], pl.DataFrame]
) -> pl.DataFrame:
    """The table ``name``, read from the folder if a run with the same dependencies wrote it, else computed.

    The package version is one of the dependencies. A file that cannot be read is rebuilt.
    """
    path = folder / f"{name}-{digest([__version__, *depends_on], size=6)}.parquet"
    if path.is_file():
        try:
            return read_parquet(path)
        except PARQUET_ERRORS:
            path.unlink()
    table = make()
    folder.mkdir(parents=True, exist_ok=True)
    with replace_file(path) as temporary:
        write_parquet(table, temporary)
    return table


def run_key(run: Run) -> list[Json]:
    """The cache key of a run: everything that its texts and scores depend on."""
    metrics = run.manifest.get("metrics") or {}
    return [
        run.manifest["identity"],
        run.manifest["growth"],
        {name: [info.get("version"), info.get("weights")] for name, info in metrics.items()},
    ]
