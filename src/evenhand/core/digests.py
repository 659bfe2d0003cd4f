"""Digests of values and files: the keys of caches and the names of runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

FORMAT = 1
"""Part of every digest; raised when the canonical form changes, so that old keys never match new ones."""

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"


def canonical_json(value: Json) -> str:
    """The one JSON text of a value: keys sorted, no spaces, UTF-8; NaN and infinities are refused."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def digest(value: Json, *, size: int = 16) -> str:
    """The BLAKE2b digest of a value in canonical JSON, as ``2 * size`` hexadecimal digits.

    >>> digest({"b": 1, "a": 2}) == digest({"a": 2, "b": 1})
    True
    """
    text = canonical_json([FORMAT, value])
    # A lone surrogate (from broken input) must still have a digest.
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).hexdigest()


def file_digest(path: Path, *, size: int = 16) -> str:
    """The BLAKE2b digest of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=size)).hexdigest()
