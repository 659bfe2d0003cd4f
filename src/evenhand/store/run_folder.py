"""The run folder while it is written: one process, one manifest, atomically written shards."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import platform
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
from filelock import FileLock, Timeout

from evenhand._version import __version__
from evenhand.core.digests import Json, digest
from evenhand.core.errors import RunFolderError, StorageError
from evenhand.core.files import safe_file_name
from evenhand.core.regular_files import open_regular
from evenhand.store.atomic_writes import (
    is_temporary,
    remove_temporary,
    replace_file,
    storage_errors,
    write_text,
)
from evenhand.store.parquet import check_parquet, scan_parquet, write_parquet
from evenhand.store.run import FORMAT, MANIFEST, REPORTS, Manifest, Run, is_run_folder, read_manifest
from evenhand.store.schemas import EVERY_SCHEMA, check_table, empty_table
from evenhand.store.table_files import PARQUET_ERRORS

LOCK, HOLDER = ".lock", ".lock.holder"
_LONGEST = 200
_log = logging.getLogger(__name__)
_OURS = frozenset(
    {MANIFEST, *(f"{name}.parquet" for name in EVERY_SCHEMA), *(f"report.{kind}" for kind in REPORTS)}
)


class FolderLock:
    """The lock on a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = FileLock(folder / LOCK)

    def acquire(self, doing: str) -> None:
        """Lock and clean the folder, or report who holds it; ``doing`` completes "another process is"."""
        if (self._folder / LOCK).is_symlink():
            raise RunFolderError(f"{self._folder / LOCK} is a link", fix="remove it: a lock is a file")
        try:
            with storage_errors(self._folder):
                self._lock.acquire(timeout=0)
        except Timeout as error:
            holder = ""
            with contextlib.suppress(OSError), open_regular(self._folder / HOLDER) as file:
                holder = file.readline(_LONGEST).decode("utf-8", "replace").strip()
            who = f" ({holder})" if holder and holder.isprintable() else ""
            raise RunFolderError(
                f"another process is {doing} {self._folder}{who}",
                expected="one process per folder",
                fix="wait for it, or choose another folder with --out",
            ) from error
        remove_temporary(self._folder)
        # Best effort: the lock also works if this note cannot be written.
        with contextlib.suppress(OSError, StorageError):
            host = platform.node() or "this machine"
            write_text(self._folder / HOLDER, f"process {os.getpid()} on {host}, since {utc_timestamp()}\n")

    def release(self, *, remove: bool = False) -> None:
        """Release the lock; ``remove`` also deletes its file, from a folder that is handed over as it is."""
        # Deleted while locked: a moment later the file could be another process's lock.
        for name in (HOLDER, LOCK) if remove else (HOLDER,):
            with contextlib.suppress(OSError):
                (self._folder / name).unlink(missing_ok=True)
        self._lock.release()


def foreign_names(folder: Path) -> set[str]:
    """The names in a folder that are neither our lock files nor left by a kill."""
    names = {entry.name for entry in folder.iterdir()} - {LOCK, HOLDER}
    return {name for name in names if not is_temporary(name)}


def default_folder(command: str, name: str, identity: Mapping[str, Json]) -> Path:
    """``runs/<command>-<name>-<digest>``: the same command gets the same folder."""
    safe = safe_file_name(name, "run")[:40]
    return Path("runs") / f"{command}-{safe}-{digest(dict(identity), size=5)}"


class RunFolder:
    """A locked run folder. Use as a context manager; a kill releases the lock."""

    def __init__(self, path: Path, *, identity: Mapping[str, Json], fresh: bool = False) -> None:
        self.path = path
        self._written: set[str] = set()
        with storage_errors(path):
            path.mkdir(parents=True, exist_ok=True)
        self._refuse_foreign_folder()
        self._lock = FolderLock(path)
        self._lock.acquire("working in")
        try:
            for shards in _real_folders(path / "shards"):
                for stage in _real_folders(*shards.iterdir()):
                    remove_temporary(stage)
            if fresh:
                self._clear(identity)
            self.manifest = self._resume(identity) if (path / MANIFEST).exists() else _new_manifest(identity)
        except BaseException:
            self._lock.release()
            raise

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *error: object) -> None:
        self._lock.release()

    def save_manifest(self) -> None:
        """Write ``run.json``."""
        write_text(self.path / MANIFEST, json.dumps(self.manifest, indent=1, ensure_ascii=False) + "\n")

    def write(self, name: str, table: pl.DataFrame) -> None:
        """Write a table of the run, checked against its schema."""
        with replace_file(self.path / f"{name}.parquet") as temporary:
            write_parquet(check_table(name, table), temporary)
        self._written.add(name)

    def has_shard(self, stage: str, key: str) -> bool:
        """Whether a shard is finished; an unreadable shard counts as unfinished."""
        path = self._shard(stage, key)
        if not path.exists():
            return False
        try:
            check_parquet(path)
            scan_parquet(path).collect_schema()
        except PARQUET_ERRORS:
            _log.warning("%s is damaged and will be recomputed", path)
            return False
        return True

    def write_shard(self, stage: str, key: str, table: pl.DataFrame) -> None:
        """Commit a finished shard."""
        with replace_file(self._shard(stage, key)) as temporary:
            write_parquet(table, temporary)

    def read_shards(self, stage: str, keys: Sequence[str]) -> pl.LazyFrame:
        """The rows of finished shards, in the order of the keys."""
        return scan_parquet(*(self._shard(stage, key) for key in keys))

    def join_shards(self, name: str, stage: str, keys: Sequence[str]) -> None:
        """Write the table ``name`` from finished shards, streaming."""
        rows = self.read_shards(stage, keys) if keys else empty_table(name)
        with replace_file(self.path / f"{name}.parquet") as temporary:
            write_parquet(rows, temporary)
        self._written.add(name)

    def run(self) -> Run:
        """The folder as a read-only run."""
        return Run(self.path, self.manifest, self._written)

    def _shard(self, stage: str, key: str) -> Path:
        return self.path / "shards" / stage / f"{key}.parquet"

    def _refuse_foreign_folder(self) -> None:
        # --out may name any folder: never write into, or clear, a folder that is not ours.
        inside = foreign_names(self.path)
        if not inside <= {"shards"} and not is_run_folder(self.path):
            raise RunFolderError(
                f"{self.path} is not empty and is not a run folder",
                expected="a new or empty folder, or the folder of an earlier run",
                fix="choose another folder with --out",
            )

    def _clear(self, identity: Mapping[str, Json]) -> None:
        """Remove the files that a run writes, but none that a user may have added.

        There is always a manifest, and it says that the run is unfinished before the first table is removed.
        """
        for shards in _real_folders(self.path / "shards"):
            shutil.rmtree(shards)
        if not (self.path / MANIFEST).exists():
            return
        with contextlib.suppress(RunFolderError):
            self.manifest = {**read_manifest(self.path), "ended": None, "stages": {}}
            self.save_manifest()
        for entry in self.path.iterdir():
            if entry.name != MANIFEST and (entry.is_symlink() or entry.name in _OURS):
                entry.unlink()
        self.manifest = _new_manifest(identity)
        self.save_manifest()

    def _resume(self, identity: Mapping[str, Json]) -> Manifest:
        manifest = read_manifest(self.path)
        differing = sorted(_differences(manifest["identity"], json.loads(json.dumps(dict(identity)))))
        if differing:
            raise RunFolderError(
                f"{self.path} belongs to another configuration; it differs in {'; '.join(differing)}",
                expected="the same model, suite, sampling, seed and inputs; samples and limit may grow, "
                "metrics may be added",
                fix="choose another folder with --out, or start this one again with --fresh",
            )
        return manifest


@contextlib.contextmanager
def run_stage(folder: RunFolder, name: str) -> Iterator[dict[str, Json]]:
    """A stage of the run; its state is kept in the manifest, even if it is interrupted."""
    record: dict[str, Json] = {"state": "running", "started": utc_timestamp()}
    folder.manifest["stages"][name] = record
    folder.save_manifest()
    try:
        yield record
    except BaseException:
        record["state"] = "interrupted"
        with contextlib.suppress(OSError):
            folder.save_manifest()
        raise
    record |= {"state": "done", "ended": utc_timestamp()}
    folder.save_manifest()


def _real_folders(*paths: Path) -> list[Path]:
    """The folders among the paths, except links."""
    return [path for path in paths if path.is_dir() and not path.is_symlink()]


def utc_timestamp() -> str:
    """The current UTC time, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _new_manifest(identity: Mapping[str, Json]) -> Manifest:
    return {
        "format": FORMAT,
        "package": __version__,
        "created": utc_timestamp(),
        "ended": None,
        "identity": dict(identity),
        "growth": [],
        "stages": {},
        "warnings": [],
        "hardware": {
            "platform": platform.platform(),
            "cpu": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "python": sys.version.split()[0],
        },
    }


def _differences(old: Json, new: Json, where: str = "") -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from _differences(old.get(key), new.get(key), f"{where}.{key}" if where else key)
    elif old != new:
        texts = (json.dumps(value, ensure_ascii=False) for value in (old, new))
        then, now = (text if len(text) <= 60 else text[:57] + "..." for text in texts)
        yield f"{where}: {then} there, {now} now"
