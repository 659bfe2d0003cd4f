"""The affective paper's fine-tuning data (Table 5), from the files of SemEval-2018 Task 1, EI-oc.

Training: the official train and dev files of the four emotions, 8,566 tweets. Validation: the released
``semeval_test.csv``, 1,464 tweets, with its UTF-7 residue repaired. A tweet's label is the emotion whose
file it stands in, whatever its intensity; many stand in several, so that no single label is always right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from evenhand.core.digests import digest, file_digest
from evenhand.core.errors import InputError
from evenhand.store.atomic import write_text
from evenhand.store.cache import cache_folder
from evenhand.store.files import read_table
from evenhand.text.utf7 import repaired

EMOTIONS: Final = ("anger", "fear", "joy", "sadness")
"""In the order of the released files' label numbers."""
VALIDATION: Final = "semeval_test.csv"
_OFFICIAL: Final = re.compile(rf"EI-oc.*({'|'.join(EMOTIONS)}).*(train|dev)\.txt$")


@dataclass(frozen=True, slots=True)
class Published:
    """Two tables with the columns ``text`` and ``label``, kept in the cache folder."""

    train: Path
    valid: Path


def tables(folder: Path) -> Published:
    """The paper's training and validation tables, from a folder that holds the published files."""
    official = sorted(path for path in _files(folder) if _OFFICIAL.search(path.name))
    parts = {match.groups() for path in official if (match := _OFFICIAL.search(path.name))}
    released = next((path for path in _files(folder) if path.name == VALIDATION), None)
    if len(parts) < 2 * len(EMOTIONS) or released is None:
        raise InputError(
            f"{folder} has {len(parts)} of the 8 EI-oc train and dev files and "
            f"{'no ' if released is None else ''}{VALIDATION}",
            accepted=f"EI-oc files of {', '.join(EMOTIONS)}, train and dev, and {VALIDATION}",
            todo="name a folder that holds them, or one table with the columns text and label",
        )
    inputs = [file_digest(path) for path in (*official, released)]
    kept = cache_folder() / "data" / f"semeval-{digest(inputs, size=8)}"
    found = Published(kept / "train.csv", kept / "valid.csv")
    _write(found.train, [row for path in official for row in tweets(path)])
    _write(found.valid, list(validation(released)))
    return found


def check_unseen(valid: Path, train: Path) -> None:
    """An error where a table to validate on repeats what is learned from, as the official dev files would."""
    table = read_table(valid)
    learned = set(read_table(train)["text"])
    seen = max(sum(cell in learned for cell in table[name]) for name in table.columns)
    if 2 * seen >= table.height:
        raise InputError(
            f"{seen} of the {table.height} texts of {valid} are among those to learn from",
            accepted=f"texts that are not: {VALIDATION}",
            todo="leave --valid out",
        )


def tweets(path: Path) -> Iterator[tuple[str, str]]:
    """Tweet and emotion of every line of an official EI-oc file."""
    lines = path.read_text(encoding="utf-8").splitlines()[1:]
    for line in lines:
        cells = line.split("\t")
        if len(cells) == 4:
            yield cells[1], cells[2]


def validation(path: Path) -> Iterator[tuple[str, str]]:
    """Tweet and emotion of every row of the released test file, repaired."""
    table = read_table(path)
    text, label = table.columns[:2]
    for words, number in table.select(text, label).iter_rows():
        yield repaired(words or ""), EMOTIONS[int(number)]


def _files(folder: Path) -> list[Path]:
    return sorted([*folder.glob("*"), *folder.glob("*/*")])


def _write(path: Path, rows: list[tuple[str, str]]) -> None:
    if not path.exists():
        table = pl.DataFrame(rows, schema=["text", "label"], orient="row")
        write_text(path, table.write_csv())
