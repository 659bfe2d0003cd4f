"""What a user found out about a metric, kept for its card: outside the package, and outside the cache.

``XDG_DATA_HOME/evenhand/cards/METRIC.json``, else under ``~/.local/share``: a list of validations, newest
last. Cleaning the cache leaves it alone; deleting the file takes the evidence off the card.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from filelock import FileLock

from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.core.reading import read_text
from evenhand.store.atomic import naming_storage_errors, write_text

Evidence = dict[str, Json]


def cards_folder() -> Path:
    """Where the evidence for cards lives."""
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "evenhand" / "cards"


def evidence_file(metric: str) -> Path:
    """The file of a metric; ``regard=ORG/NAME`` has its own."""
    safe = "".join(letter if letter.isalnum() or letter in "._-=" else "-" for letter in metric).lstrip(".")
    return cards_folder() / f"{safe[:100] or 'metric'}.json"


def read_evidence(metric: str) -> list[Evidence]:
    """The validations of a metric, oldest first; none where nothing was kept."""
    path = evidence_file(metric)
    try:
        found = json.loads(read_text(path))
    except FileNotFoundError:
        return []
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path} cannot be read: {error}",
            accepted="the file that `evenhand validate --onto-card` wrote",
            todo="repair or delete it",
        ) from error
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def keep_evidence(metric: str, entry: Evidence) -> Path:
    """Add a validation; an earlier one of the same metric version and the same labels is replaced."""
    key = ("identity", "human")
    path = evidence_file(metric)
    with naming_storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    # Read and written as one: of two validations at the same time neither may be lost.
    with FileLock(path.with_name(f".{path.name}.lock")):
        kept = [one for one in read_evidence(metric) if any(one.get(name) != entry.get(name) for name in key)]
        write_text(path, json.dumps([*kept, entry], ensure_ascii=False, indent=1) + "\n")
    return path
