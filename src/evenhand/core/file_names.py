"""Names of files and folders from names that users gave."""

from __future__ import annotations

import os
from pathlib import Path


def file_name(text: str, default: str) -> str:
    """The text as the name of a file or folder: letters, digits and ``._-``, with ``-`` for all else.

    Dots and hyphens at the ends are cut, so that a name is never hidden, an option or a way up; ``default``
    stands where nothing is left.

    >>> file_name("../org/model", "run")
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
