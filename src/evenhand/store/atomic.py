"""Writes that are whole or absent: a temporary name, then a rename."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

from polars.exceptions import PolarsError

from evenhand.core.errors import StorageError

_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_NEARLY_FULL = 1 << 20
_REFUSED = frozenset(
    {errno.EACCES, errno.EROFS, errno.EPERM, errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ENOENT}
)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside ``path`` that takes its place when the block ends well."""
    with naming_storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name[:40]}-{uuid4().hex}.part")
        try:
            yield temporary
            _flush_to_disk(temporary)
            temporary.replace(path)
        except PolarsError as error:
            # Polars reports a full disk in many words, none of them reliable.
            if shutil.disk_usage(path.parent).free < _NEARLY_FULL:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
            raise
        finally:
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


@contextlib.contextmanager
def naming_storage_errors(path: Path) -> Iterator[None]:
    """Turns a full disk or a refused write into a message that says where and what to do."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        if error.errno in _NO_SPACE or "No space left" in str(error):
            raise StorageError(
                f"the disk is full: {path} could not be written",
                accepted="free space in the run folder's file system",
                todo="free some space and run the same command again; finished shards are kept",
            ) from error
        if error.errno in _REFUSED:
            raise StorageError(
                f"{path} cannot be written: {error.strerror}",
                accepted="a folder this user may write to",
                todo="choose another folder with --out",
            ) from error
        raise


def _flush_to_disk(path: Path) -> None:
    # Without this a power cut can leave a renamed but empty file.
    with path.open("rb+") as file:
        os.fsync(file.fileno())
