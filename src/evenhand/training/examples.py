"""The texts of one training: to learn from, held out, and further ones, with what was noticed about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from evenhand.core.errors import InputError
from evenhand.training.labelled_table import LabelledTexts, check_enough, read_labelled
from evenhand.training.split import divide, repeated
from evenhand.training.tasks import Task

MASK: Final = "XYZ"


@dataclass(frozen=True, slots=True)
class Examples:
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

    def unseen(self) -> dict[str, LabelledTexts]:
        """The parts that nothing was learned from: ``dev`` and, where there is one, ``test``."""
        return {"dev": self.held_out} | ({"test": self.test} if self.test is not None else {})


def read_examples(
    data: Path,
    task: Task,
    *,
    valid: Path | None,
    test: Path | None = None,
    text: str,
    label: str,
    seed: int,
) -> Examples:
    """The examples of a table: divided by seed, or held out as the table ``valid``; ``test`` is a third."""
    whole = read_labelled(data, task, text=text, label=label)
    check_enough(whole, data)
    notes = [f"{count} rows left out: {reason}" for reason, count in whole.skipped.items()]
    if valid is None:
        found = divide(whole.texts, whole.labels, seed=seed)
        train, held_out = _chosen(whole, found.train), _chosen(whole, found.held_out)
    else:
        train, held_out = whole, read_labelled(valid, task, text=text, label=label)
        notes += _check_unseen(train, held_out, valid, "held-out")
    further = read_labelled(test, task, text=text, label=label) if test else None
    if further is not None and test is not None:
        notes += _check_unseen(train, further, test, "test")
    known = {*train.labels, *held_out.labels}
    labels = tuple(name for name in task.labels if name in known)
    return Examples(train, held_out, labels, (*notes, *_unmasked(task, whole)), further)


def _check_unseen(train: LabelledTexts, unseen: LabelledTexts, path: Path, what: str) -> list[str]:
    """Notes on the texts to test on; an error where there are none, or a label that was never learned."""
    if not unseen.texts:
        raise InputError(f"{path} has no labelled texts", accepted="at least one", todo="check the file")
    for label in unseen.counts():
        if label not in train.labels:
            raise InputError(
                f"{path} has the label {label!r}, which no text to learn from has",
                accepted=", ".join(train.counts()),
                todo="add texts of that label to the training data, or leave it out of the test",
            )
    twins = repeated(unseen.texts, train.texts)
    said = f"{twins} of the {len(unseen.texts)} {what} texts nearly repeat a training text"
    return [said] if twins else []


def _unmasked(task: Task, data: LabelledTexts) -> list[str]:
    """A note where texts on the regard towards XYZ do not name XYZ."""
    count = sum(MASK not in text for text in data.texts)
    if task.name != "regard" or not count:
        return []
    return [
        f"{count:,} of {len(data.texts):,} texts have no {MASK}: the classifier reads what is said of "
        f"{MASK}, mask the person with it"
    ]


def _chosen(data: LabelledTexts, places: Sequence[int]) -> LabelledTexts:
    return LabelledTexts(
        tuple(data.texts[place] for place in places), tuple(data.labels[place] for place in places), {}
    )
