"""Read a table of texts and labels that people bring, and say clearly what is wrong with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from evenhand.core.errors import InputError
from evenhand.store.files import read_lines, read_table
from evenhand.store.spreadsheets import unguarded_table
from evenhand.training.tasks import Task

LEAST: Final = 20
"""Texts below which there is nothing to learn from and nothing to measure on."""


@dataclass(frozen=True, slots=True)
class LabelledTexts:
    """Texts and the label of each."""

    texts: tuple[str, ...]
    labels: tuple[str, ...]
    skipped: Mapping[str, int]
    """Rows left out, by reason."""

    def counts(self) -> Counter[str]:
        """How many texts each label has."""
        return Counter(self.labels)


def read_labelled(path: Path, task: Task, *, text: str = "text", label: str = "label") -> LabelledTexts:
    """The texts of a table with their labels told in our words.

    A ``.tsv`` file whose first line is a label and a text has no names of columns: the layout in which the
    regard study published its annotations. Rows without a text or without a label are left out and counted; a
    label that means nothing for the task is an error, since it is more often the wrong column than a slip.
    """
    table = _study_table(path, task, text, label)
    if table is None:
        table = read_table(path, {"--text": text, "--label": label})
    kept: list[tuple[str, str]] = []
    skipped: Counter[str] = Counter()
    for number, (words, given) in enumerate(_cells(table, text, label), start=1):
        if words is None or not words.strip():
            skipped["empty text"] += 1
        elif given is None or not given.strip():
            skipped["no label"] += 1
        else:
            kept.append((words, _our_label(given, task, number, path)))
    return LabelledTexts(tuple(words for words, _ in kept), tuple(ours for _, ours in kept), dict(skipped))


def _cells(table: pl.DataFrame, text: str, label: str) -> Iterator[tuple[str | None, str | None]]:
    """Text and label of each row; tables of ours are guarded against formulas."""
    yield from zip(unguarded_table(table.select(text))[text], table[label], strict=True)


def _study_table(path: Path, task: Task, text: str, label: str) -> pl.DataFrame | None:
    """The lines of a file without names of columns, a label and a text each; None for any other file."""
    if path.suffix.lower() != ".tsv" or not path.is_file():
        return None
    rows = [line.split("\t", 1) for line in read_lines(path) if line.strip()]
    if not rows or len(rows[0]) != 2 or task.label_of(rows[0][0]) is None:
        return None
    cells = {label: [row[0] for row in rows], text: [row[1] if len(row) > 1 else None for row in rows]}
    return pl.DataFrame(cells, schema=dict.fromkeys(cells, pl.String))


def check_enough(data: LabelledTexts, path: Path) -> None:
    """An error where too few texts, or texts of one label alone, are left to learn from."""
    if len(data.texts) < LEAST:
        said = ", ".join(f"{count} rows with {reason}" for reason, count in data.skipped.items())
        raise InputError(
            f"{path} has {len(data.texts)} labelled texts" + (f" ({said} left out)" if said else ""),
            accepted=f"at least {LEAST}",
            todo="label more texts; a few hundred a label is a good start",
        )
    if len(data.counts()) < 2:
        raise InputError(
            f"all texts of {path} have the label {data.labels[0]!r}",
            accepted="texts of two labels or more",
            todo="add texts of the other labels, or name another column with --label",
        )


def _our_label(given: str, task: Task, number: int, path: Path) -> str:
    ours = task.label_of(given)
    if ours is None:
        raise InputError(
            f"{path} row {number} has the label {given!r}, which {task.name} does not know",
            accepted=task.accepted(),
            todo="rename the label in the table, or name another column with --label",
        )
    return ours
