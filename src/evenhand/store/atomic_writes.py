"""Atomic writes: to a temporary name first, then renamed.

A killed process leaves its temporary file: hidden, ending in ``.part``, with the process id in its name.
`remove_temporary` removes those of processes that no longer run.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

from polars.exceptions import PolarsError

from evenhand.core.errors import EvenhandError, StorageError

_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_MORE = 1 << 20
"""Bytes that any disk with free space can take."""
_REFUSED = frozenset(
    {errno.EACCES, errno.EROFS, errno.EPERM, errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ENOENT}
)
_PROCESS = uuid4().hex[:8]
"""Tells this process from an earlier one of the same id: in a container every first process is number 1."""
_OS_ERROR = re.compile(r"\(os error (\d{1,5})\)|\bOs \{ code: (\d{1,5}),")
_TEMPORARY = re.compile(r"\..*?-(?:(?P<id>\d{1,10})-(?P<process>[0-9a-f]{8})-)?[0-9a-f]{32}\.part", re.DOTALL)


@contextlib.contextmanager
def replace_file(path: Path) -> Iterator[Path]:
    """A temporary path beside ``path``; replaces ``path`` if the block succeeds."""
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name[:40]}-{os.getpid()}-{_PROCESS}-{uuid4().hex}.part")
        try:
            yield temporary
            # Without this a power cut can leave a renamed but empty file.
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
            temporary.replace(path)
        except PolarsError as error:
            # Polars reports a full disk in many forms, and not always with its error number.
            if _number(error) is None and (refusal := _refusal(temporary)):
                raise refusal from error
            raise
        finally:
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text atomically.

    CSV and JSON lines are written this way too: older versions of Polars ignore a full disk
    and leave a partial file.
    """
    with replace_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


def is_temporary(name: str) -> bool:
    """Whether a file name is one that `replace_file` creates: still being written, or left by a kill."""
    return _TEMPORARY.fullmatch(name) is not None


def remove_temporary(folder: Path) -> None:
    """Remove partial files that killed processes of this machine left in a folder, not in its subfolders."""
    with os.scandir(folder) as entries:
        for entry in entries:
            match = _TEMPORARY.fullmatch(entry.name)
            if match and not _is_at_work(match["id"], match["process"]):
                Path(entry.path).unlink(missing_ok=True)


def _is_at_work(number: str | None, process: str | None) -> bool:
    if number is None:
        return False
    if int(number) == os.getpid():
        return process == _PROCESS
    if os.name != "posix":
        return True  # on other systems signal 0 is a real signal
    try:
        os.kill(int(number), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


@contextlib.contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn a full disk or a failed write into a message that says where it happened and how to fix it."""
    try:
        yield
    except EvenhandError:
        raise
    except Exception as error:
        if _number(error) in _NO_SPACE or (isinstance(error, OSError) and "No space left" in str(error)):
            raise StorageError(
                f"the disk is full: {path} could not be written",
                expected="free space in the run folder's file system",
                fix="free some space and run the same command again; finished shards are kept",
            ) from error
        if isinstance(error, OSError) and error.errno in _REFUSED:
            raise StorageError(
                f"{path} cannot be written: {error.strerror}",
                expected="a folder this user may write to",
                fix="choose another folder with --out",
            ) from error
        raise


def _number(error: Exception) -> int | None:
    """The error number of a failed write; libraries written in Rust report it only in their message."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    match = _OS_ERROR.search(str(error))
    return int(match[1] or match[2]) if match else None


def _refusal(path: Path) -> OSError | None:
    """The reason that a file cannot grow: no space, a quota, a size limit; None if it can."""
    try:
        with path.open("ab") as file:
            file.write(bytes(_MORE))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return error
    return None
