"""One process a folder: a lock that a kill releases, and a note of who holds it."""

from __future__ import annotations

import contextlib
import os
import platform
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from evenhand.core.errors import RunFolderError, StorageError
from evenhand.core.reading import open_regular
from evenhand.store.atomic import is_temporary, naming_storage_errors, sweep, write_text

LOCK, HOLDER = ".lock", ".lock.holder"
_LONGEST = 200


class FolderLock:
    """The lock of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = FileLock(folder / LOCK)

    def take(self, doing: str) -> None:
        """Hold the folder and sweep it, or say who does; ``doing`` completes "another process is"."""
        if (self._folder / LOCK).is_symlink():
            raise RunFolderError(f"{self._folder / LOCK} is a link", todo="remove it: a lock is a file")
        try:
            with naming_storage_errors(self._folder):
                self._lock.acquire(timeout=0)
        except Timeout as error:
            raise RunFolderError(
                f"another process is {doing} {self._folder}{self._holder()}",
                accepted="one process a folder",
                todo="wait for it, or choose another folder with --out",
            ) from error
        sweep(self._folder)
        # A courtesy: a folder that takes no note may still take the work.
        with contextlib.suppress(OSError, StorageError):
            write_text(self._folder / HOLDER, _myself() + "\n")

    def release(self, *, remove: bool = False) -> None:
        """Let others in; ``remove`` deletes the file too, from a folder that is handed on as it is."""
        # While it is held: a file that is deleted later may be somebody else's lock by then.
        for name in (HOLDER, LOCK) if remove else (HOLDER,):
            with contextlib.suppress(OSError):
                (self._folder / name).unlink(missing_ok=True)
        self._lock.release()

    def _holder(self) -> str:
        """Who holds the folder, as far as they said so."""
        try:
            with open_regular(self._folder / HOLDER) as file:
                said = file.readline(_LONGEST).decode("utf-8", "replace").strip()
        except OSError:
            return ""
        return f" ({said})" if said.isprintable() and said else ""


def foreign(folder: Path) -> set[str]:
    """The names in a folder that are neither a lock of ours nor left by a kill."""
    names = {entry.name for entry in folder.iterdir()} - {LOCK, HOLDER}
    return {name for name in names if not is_temporary(name)}


def _myself() -> str:
    moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"process {os.getpid()} on {platform.node() or 'this machine'}, since {moment}"
