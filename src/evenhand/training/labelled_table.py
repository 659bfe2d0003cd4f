"""Read a table of texts and labels that people bring, and say clearly what is wrong with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenhand.core.errors import InputError
from evenhand.store.table_files import read_lines, read_table, unguard_table
from evenhand.text.data_splits import divide_texts, find_near_duplicates
from evenhand.training.tasks import ClassificationTask

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


def read_labelled_texts(
    path: Path, task: ClassificationTask, *, text: str = "text", label: str = "label"
) -> LabelledTexts:
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
    yield from zip(unguard_table(table.select(text))[text], table[label], strict=True)


def _study_table(path: Path, task: ClassificationTask, text: str, label: str) -> pl.DataFrame | None:
    """The lines of a file without names of columns, a label and a text each; None for any other file."""
    if path.suffix.lower() != ".tsv" or not path.is_file():
        return None
    rows = [line.split("\t", 1) for line in read_lines(path) if line.strip()]
    if not rows or len(rows[0]) != 2 or task.map_label(rows[0][0]) is None:
        return None
    cells = {label: [row[0] for row in rows], text: [row[1] if len(row) > 1 else None for row in rows]}
    return pl.DataFrame(cells, schema=dict.fromkeys(cells, pl.String))


def check_enough(data: LabelledTexts, path: Path) -> None:
    """An error where too few texts, or texts of one label alone, are left to learn from."""
    if len(data.texts) < LEAST:
        said = ", ".join(f"{count} rows with {reason}" for reason, count in data.skipped.items())
        raise InputError(
            f"{path} has {len(data.texts)} labelled texts" + (f" ({said} left out)" if said else ""),
            expected=f"at least {LEAST}",
            fix="label more texts; a few hundred a label is a good start",
        )
    if len(data.counts()) < 2:
        raise InputError(
            f"all texts of {path} have the label {data.labels[0]!r}",
            expected="texts of two labels or more",
            fix="add texts of the other labels, or name another column with --label",
        )


def _our_label(given: str, task: ClassificationTask, number: int, path: Path) -> str:
    ours = task.map_label(given)
    if ours is None:
        raise InputError(
            f"{path} row {number} has the label {given!r}, which {task.name} does not know",
            expected=task.describe_labels(),
            fix="rename the label in the table, or name another column with --label",
        )
    return ours


MASK: Final = "XYZ"


@dataclass(frozen=True, slots=True)
class LabelledExamples:
    """Texts to learn from, texts to test on, and what was noticed about them."""

    train: LabelledTexts
    held_out: LabelledTexts
    labels: tuple[str, ...]
    """The labels that occur, in the task's order."""
    notes: tuple[str, ...]
    test: LabelledTexts | None = None
    """Further texts to test on."""

    def truth(self, data: LabelledTexts) -> NDArray[np.int64]:
        """The labels of texts by number."""
        return np.array([self.labels.index(label) for label in data.labels], dtype=np.int64)

    @property
    def majority_label(self) -> str:
        """The most frequent label of the training texts; the first of the task's order on a tie."""
        counts = self.train.counts()
        return max(self.labels, key=lambda label: counts[label])

    def unseen_parts(self) -> dict[str, LabelledTexts]:
        """The parts that nothing was learned from: ``dev`` and, where there is one, ``test``."""
        return {"dev": self.held_out} | ({"test": self.test} if self.test is not None else {})


def read_examples(
    data: Path,
    task: ClassificationTask,
    *,
    valid: Path | None,
    test: Path | None = None,
    text: str,
    label: str,
    seed: int,
) -> LabelledExamples:
    """The examples of a table: divided by seed, or held out as the table ``valid``; ``test`` is a third."""
    whole = read_labelled_texts(data, task, text=text, label=label)
    check_enough(whole, data)
    notes = [f"{count} rows left out: {reason}" for reason, count in whole.skipped.items()]
    if valid is None:
        found = divide_texts(whole.texts, whole.labels, seed=seed)
        train, held_out = _select_texts(whole, found.train), _select_texts(whole, found.held_out)
    else:
        train, held_out = whole, read_labelled_texts(valid, task, text=text, label=label)
        notes += _check_unseen(train, held_out, valid, "held-out")
    further = read_labelled_texts(test, task, text=text, label=label) if test else None
    if further is not None and test is not None:
        notes += _check_unseen(train, further, test, "test")
    known = {*train.labels, *held_out.labels}
    labels = tuple(name for name in task.labels if name in known)
    return LabelledExamples(train, held_out, labels, (*notes, *_note_unmasked(task, whole)), further)


def _check_unseen(train: LabelledTexts, unseen: LabelledTexts, path: Path, what: str) -> list[str]:
    """Notes on the texts to test on; an error where there are none, or a label that was never learned."""
    if not unseen.texts:
        raise InputError(f"{path} has no labelled texts", expected="at least one", fix="check the file")
    for label in unseen.counts():
        if label not in train.labels:
            raise InputError(
                f"{path} has the label {label!r}, which no text to learn from has",
                expected=", ".join(train.counts()),
                fix="add texts of that label to the training data, or leave it out of the test",
            )
    twins = sum(find_near_duplicates(unseen.texts, train.texts))
    said = f"{twins} of the {len(unseen.texts)} {what} texts nearly repeat a training text"
    return [said] if twins else []


def _note_unmasked(task: ClassificationTask, data: LabelledTexts) -> list[str]:
    """A note where texts on the regard towards XYZ do not name XYZ."""
    count = sum(MASK not in text for text in data.texts)
    if task.name != "regard" or not count:
        return []
    return [
        f"{count:,} of {len(data.texts):,} texts have no {MASK}: the classifier reads what is said of "
        f"{MASK}, mask the person with it"
    ]


def _select_texts(data: LabelledTexts, places: Sequence[int]) -> LabelledTexts:
    return LabelledTexts(
        tuple(data.texts[place] for place in places), tuple(data.labels[place] for place in places), {}
    )
