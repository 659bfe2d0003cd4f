"""The affective paper's fine-tuning data (Table 5), from the SemEval-2018 Task 1 EI-oc files.

Training: the official train and dev files of the four emotions, 8,566 tweets. Validation: the released
``semeval_test.csv``, 1,464 tweets, with its UTF-7 artefacts repaired. A tweet's label is the emotion of its
file, whatever its intensity; many tweets are in several files, so that no single label is always correct.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

import polars as pl

from evenhand.core.digests import digest, file_digest
from evenhand.core.errors import InputError
from evenhand.store.atomic_writes import write_text
from evenhand.store.cache import cache_folder
from evenhand.store.table_files import read_lines, read_table

_RESIDUE: Final = re.compile(r"\+[A-Za-z0-9/]+-")
EMOTIONS: Final = ("anger", "fear", "joy", "sadness")
"""In the order of the released files' label numbers."""
VALIDATION: Final = "semeval_test.csv"
_OFFICIAL: Final = re.compile(rf"EI-oc.*({'|'.join(EMOTIONS)}).*(train|dev)\.txt$")


class SemevalTables(NamedTuple):
    """Two tables with the columns ``text`` and ``label``, kept in the cache folder."""

    train: Path
    valid: Path


def prepare_tables(folder: Path) -> SemevalTables:
    """The paper's training and validation tables, from a folder with the published files."""
    files = sorted([*folder.glob("*"), *folder.glob("*/*")])
    parts = {path: match.groups() for path in files if (match := _OFFICIAL.search(path.name))}
    released = next((path for path in files if path.name == VALIDATION), None)
    if len(set(parts.values())) < 2 * len(EMOTIONS) or released is None:
        raise InputError(
            f"{folder} has {len(set(parts.values()))} of the 8 EI-oc train and dev files and "
            f"{'no ' if released is None else ''}{VALIDATION}",
            expected=f"EI-oc files of {', '.join(EMOTIONS)}, train and dev, and {VALIDATION}",
            fix="name a folder that contains them, or one table with the columns text and label",
        )
    inputs = [file_digest(path) for path in (*parts, released)]
    cached = cache_folder() / "data" / f"semeval-{digest(inputs, size=8)}"
    tables = SemevalTables(cached / "train.csv", cached / "valid.csv")
    rows = chain.from_iterable(map(read_tweets, parts)), read_validation(released)
    for path, part in zip(tables, rows, strict=True):
        table = pl.DataFrame(list(part), schema=["text", "label"], orient="row")
        if not path.exists():
            write_text(path, table.write_csv())
    return tables


def check_unseen(valid: Path, train: Path) -> None:
    """Raise an error if a validation table repeats training texts, as the official dev files would."""
    table = read_table(valid)
    learned = set(read_table(train)["text"])
    repeated = max(sum(cell in learned for cell in table[name]) for name in table.columns)
    if 2 * repeated >= table.height:
        raise InputError(
            f"{repeated} of the {table.height} texts of {valid} are training texts",
            expected=f"unseen texts: {VALIDATION}",
            fix="remove --valid",
        )


def read_tweets(path: Path) -> Iterator[tuple[str, str]]:
    """Tweet and emotion from every line of an official EI-oc file."""
    for number, line in enumerate(read_lines(path)[1:], start=2):
        cells = line.split("\t")
        if len(cells) != 4:
            continue
        if cells[2] not in EMOTIONS:
            raise _unknown_label(f"line {number} of {path}", cells[2], ", ".join(EMOTIONS))
        yield cells[1], cells[2]


def read_validation(path: Path) -> Iterator[tuple[str, str]]:
    """Tweet and emotion from every row of the released test file, repaired."""
    table = read_table(path)
    if table.width < 2:
        raise InputError(
            f"{path} has one column", expected="a tweet and the number of its emotion", fix="get a new copy"
        )
    numbers = {str(number): emotion for number, emotion in enumerate(EMOTIONS)}
    for row, (words, number) in enumerate(table.select(table.columns[:2]).iter_rows(), start=1):
        if number not in numbers:
            raise _unknown_label(f"row {row} of {path}", number, f"0 to {len(EMOTIONS) - 1}")
        yield repair_utf7(words or ""), numbers[number]


def _unknown_label(where: str, label: str | None, accepted: str) -> InputError:
    return InputError(
        f"{where} has the emotion {str(label)[:80]!r}", expected=accepted, fix="get the published file again"
    )


def repair_utf7(text: str) -> str:
    """The text with UTF-7 artefacts decoded.

    >>> repair_utf7("so +ACM-happy+ACE-")
    'so #happy!'
    """
    return _RESIDUE.sub(_decode_match, text)


def _decode_match(match: re.Match[str]) -> str:
    try:
        return match[0].encode("ascii").decode("utf-7")
    except UnicodeError:
        # A plus sign, letters and a dash that are not a code: left unchanged.
        return match[0]
