"""Holds what is there against what version 1 had: more may be there, less or other is named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.v1.commands import FIXTURES

ALLOWED = json.loads((Path(__file__).parent / "allowed.json").read_text(encoding="utf-8"))
"""Changes that were decided: item to the reason: an ADR, or the new name where the old one is still read."""


def pinned(name: str) -> Any:
    return json.loads((FIXTURES / f"{name}.json").read_text(encoding="utf-8"))


def lost(old: Any, new: Any, path: str) -> Iterator[str]:
    """What is in the old tree and not in the new one, or has another value there."""
    if path in ALLOWED:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key, value in old.items():
            inner = f"{path} > {key or 'evenhand'}"
            if key in new:
                yield from lost(value, new[key], inner)
            elif inner not in ALLOWED:
                yield f"{inner} is gone"
    elif isinstance(old, list) and isinstance(new, list):
        yield from (
            f"{path} > {one} is gone" for one in old if one not in new and f"{path} > {one}" not in ALLOWED
        )
    elif old not in (None, new):  # null: version 1 resolved the default later, or showed none
        yield f"{path} was {old!r} and is {new!r}"


def check(name: str, new: Any, old: Any = None) -> None:
    changes = list(lost(pinned(name) if old is None else old, new, name))
    assert not changes, (
        "users of version 1 name these:\n  "
        + "\n  ".join(changes)
        + "\nA renamed one stays readable for a release, with a note of deprecation. A change that was "
        "decided goes into tests/v1/allowed.json with its reason; the fixtures stay as they are."
    )
