"""Reading whole files: regular files only, up to a size limit for their kind.

A name in a folder that others created may be a pipe that nobody writes to, an endless device, or a link to
one. Both checks run on the open file, so that it cannot be swapped in between.
"""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path
from typing import Final

MOST: Final = 1 << 28
"""Maximum size in bytes of a file that is read whole, unless its kind has another limit: 256 MiB."""
_KINDS: Final = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


class UnfitFileError(OSError):
    """Something that is not a regular file, or a file that is too large."""

    def __str__(self) -> str:
        return str(self.strerror)


def open_regular(path: Path | str) -> BufferedReader:
    """A regular file, opened for reading; raises ``UnfitFileError`` for anything else."""
    _check(os.stat(path).st_mode, path)
    # Opening a pipe that replaced the file must not block either; the flag has no effect on regular files.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        _check(os.fstat(descriptor).st_mode, path)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def check_regular(path: Path | str) -> None:
    """Raise ``UnfitFileError`` for an irregular file, without opening it: a device may react to that."""
    _check(os.stat(path).st_mode, path)


def read_bytes(path: Path | str, *, most: int = MOST) -> bytes:
    """The bytes of a regular file; raises ``UnfitFileError`` if there are more than ``most``."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        # Some system files report a size of zero, and others grow.
        content = file.read(most + 1) if size <= most else b""
    if max(size, len(content)) > most:
        largest = f"{most >> 20:,} MiB" if most >> 20 else f"{most:,} bytes"
        raise UnfitFileError(errno.EINVAL, f"it has more than {largest}", str(path))
    return content


def read_text(path: Path | str, *, encoding: str = "utf-8", most: int = MOST) -> str:
    """The text of a regular file, with all line ends as line feeds."""
    text = read_bytes(path, most=most).decode(encoding)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _check(mode: int, path: Path | str) -> None:
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "not a regular file")
        raise UnfitFileError(errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL, f"it is {kind}", str(path))
