"""Files shipped inside the package: where they are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final
from uuid import uuid4

from evenhand.core.errors import InputError

ASSETS_FOLDER = Path(__file__).resolve().parent.parent / "assets"


def asset_path(*parts: str) -> Path:
    """The path of an embedded file; an error if this installation lacks it."""
    path = ASSETS_FOLDER.joinpath(*parts)
    if not path.exists():
        raise InputError(
            f"the embedded file {'/'.join(parts)} is missing from this installation",
            expected="a complete wheel, or a checkout after `make setup`",
            fix="install evenhand again",
        )
    return path


def safe_file_name(text: str, default: str) -> str:
    """The text as the name of a file or folder: letters, digits and ``._-``, with ``-`` for all else.

    Dots and hyphens at the ends are cut, so that a name is never hidden, an option or a way up; ``default``
    stands where nothing is left.

    >>> safe_file_name("../org/model", "run")
    'org-model'
    """
    plain = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in text)
    return plain.strip(".-") or default


def user_path(text: str) -> Path:
    """The path that a user named: a first ``~`` is the home folder, which no shell puts in after a colon.

    What has that very name comes first, and a ``~`` before the name of no user stands for itself.
    """
    path = Path(text)
    if not text.startswith("~") or os.path.exists(path):
        return path
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def apply_umask(path: Path) -> None:
    """Give a file the mode that a new file in its folder has, by the user's umask.

    A file is created to see it: asking for the umask means changing it, for every thread.
    """
    probe = path.with_name(f".{uuid4().hex}.mode")
    probe.touch()
    try:
        path.chmod(probe.stat().st_mode & 0o777)
    finally:
        probe.unlink()


MAX_RATIO: Final = 200
"""Text shrinks to a third or a tenth, repeated lines to a hundredth, a decompression bomb to a thousandth."""
ALWAYS_ALLOWED: Final = 1 << 28
"""Bytes that any file may unpack to: 256 MiB harm nobody."""


def max_decompressed_size(size: int) -> int:
    """The bytes that a packed file of so many bytes may unpack to.

    >>> max_decompressed_size(1_000) == ALWAYS_ALLOWED, max_decompressed_size(10_000_000)
    (True, 2000000000)
    """
    return max(ALWAYS_ALLOWED, MAX_RATIO * size)
