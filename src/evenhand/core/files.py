"""Paths of files: those shipped in the package, those users name, and size limits for unpacking."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final
from uuid import uuid4

from evenhand.core.errors import InputError

ASSETS_FOLDER = Path(__file__).resolve().parent.parent / "assets"


def asset_path(*parts: str) -> Path:
    """The path of an embedded file; raises an error if this installation lacks it."""
    path = ASSETS_FOLDER.joinpath(*parts)
    if not path.exists():
        raise InputError(
            f"the embedded file {'/'.join(parts)} is missing from this installation",
            expected="a complete wheel, or a checkout after `make setup`",
            fix="install evenhand again",
        )
    return path


def safe_file_name(text: str, default: str) -> str:
    """The text as a file or folder name: letters, digits and ``._-``, with ``-`` for every other character.

    Dots and hyphens at the ends are stripped, so that a name is never hidden, an option or a parent folder;
    ``default`` is used if nothing is left.

    >>> safe_file_name("../org/model", "run")
    'org-model'
    """
    plain = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in text)
    return plain.strip(".-") or default


def user_path(text: str) -> Path:
    """The path that a user named, with a leading ``~`` expanded, which no shell does after a colon.

    A file of exactly that name takes precedence, and ``~`` before an unknown user name is kept.
    """
    path = Path(text)
    if not text.startswith("~") or os.path.exists(path):
        return path
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def apply_umask(path: Path) -> None:
    """Give a file the mode that a new file in its folder gets from the user's umask.

    The mode is read from a newly created file: reading the umask itself means changing it, for every thread.
    """
    probe = path.with_name(f".{uuid4().hex}.mode")
    probe.touch()
    try:
        path.chmod(probe.stat().st_mode & 0o777)
    finally:
        probe.unlink()


MAX_RATIO: Final = 200
"""Text compresses to a third or a tenth, repeated lines to 1 %, a decompression bomb to 0.1 %."""
ALWAYS_ALLOWED: Final = 1 << 28
"""Any file may decompress to this many bytes: 256 MiB are harmless."""


def max_decompressed_size(size: int) -> int:
    """The number of bytes that a compressed file of ``size`` bytes may decompress to.

    >>> max_decompressed_size(1_000) == ALWAYS_ALLOWED, max_decompressed_size(10_000_000)
    (True, 2000000000)
    """
    return max(ALWAYS_ALLOWED, MAX_RATIO * size)
