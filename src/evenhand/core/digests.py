"""Digests of values and files: the keys of caches and the names of runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from evenhand.core.regular_files import open_regular

FORMAT = 1
"""Part of every digest; raised when the canonical form changes, so that old keys never match new ones."""

_UTF8 = ("utf-8", "surrogatepass")
"""Lets a lone surrogate (from broken input) be hashed."""
_ENCODER = json.JSONEncoder(sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"


def canonical_json(value: Json) -> str:
    """The canonical JSON text of a value: keys sorted, no spaces, UTF-8; NaN and infinities are rejected."""
    return _ENCODER.encode(value)


def digest(value: Json, *, size: int = 16) -> str:
    """The BLAKE2b digest of a value in canonical JSON, as ``2 * size`` hexadecimal digits.

    >>> digest({"b": 1, "a": 2}) == digest({"a": 2, "b": 1})
    True
    """
    return hashlib.blake2b(canonical_json([FORMAT, value]).encode(*_UTF8), digest_size=size).hexdigest()


def digests(first: Json, others: Iterable[str], *, size: int = 16) -> list[str]:
    """``digest([first, other])`` of each string; ``first`` is serialised and hashed only once.

    >>> digests({"a": 1}, ["x"]) == [digest([{"a": 1}, "x"])]
    True
    """
    start = hashlib.blake2b(f"[{FORMAT},[{canonical_json(first)},".encode(*_UTF8), digest_size=size)
    digests = []
    for other in others:
        whole = start.copy()
        whole.update(f"{_ENCODER.encode(other)}]]".encode(*_UTF8))
        digests.append(whole.hexdigest())
    return digests


def file_digest(path: Path, *, size: int = 16) -> str:
    """The BLAKE2b digest of a file's bytes."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=size)).hexdigest()
