"""Train a classifier whose labels do not exclude each other: a yes or no to toxic, threat, insult ..."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand.core.digests import Json, file_digest
from evenhand.core.errors import InputError
from evenhand.core.protocols import Progress
from evenhand.store.table_files import read_table
from evenhand.text.data_splits import divide_texts
from evenhand.training.classifier_job import ClassifierFit, LabelledPart
from evenhand.training.job_folder import TrainingFolder
from evenhand.training.labelled_table import LEAST
from evenhand.training.model_card import describe_file, score_command, write_classifier_card
from evenhand.training.test_measures import HeldOutResult, roc_auc

KINDS: Final[Mapping[str, Mapping[str, str]]] = {
    "toxicity": {
        "toxic": "toxic",
        "severe_toxic": "severe_toxic",
        "obscene": "obscene",
        "threat": "threat",
        "insult": "insult",
        "identity_hate": "identity_attack",
        "identity_attack": "identity_attack",
    }
}
"""Task to the columns it can have, and what its metric calls them."""

LabelMatrix = NDArray[np.float32]


class MultilabelTexts(NamedTuple):
    """Texts, and for each a 0 or 1 for every label."""

    texts: tuple[str, ...]
    truth: LabelMatrix

    def any(self) -> NDArray[np.int64]:
        """1 where a text has at least one label."""
        return np.asarray(self.truth.max(1, initial=0), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class MultilabelExamples:
    """Texts to learn from and texts to test on."""

    train: MultilabelTexts
    held_out: MultilabelTexts
    labels: tuple[str, ...]
    notes: tuple[str, ...] = ()


def read_multilabel(
    data: Path, task: str, columns: Sequence[str], *, valid: Path | None, text: str, seed: int
) -> MultilabelExamples:
    """The examples of a table with a column of 0 and 1 a label; held out is a fifth, or ``valid``."""
    labels = _map_labels(task, columns)
    whole, skipped = _read(data, columns, text)
    if len(whole.texts) < LEAST or len(set(whole.any().tolist())) < 2:
        raise InputError(
            f"{data} has {len(whole.texts)} usable texts, {int(whole.any().sum())} of them with a label",
            expected=f"at least {LEAST}, some with and some without",
            fix="check the columns, or label more texts",
        )
    if valid is not None:
        held_out, _ = _read(valid, columns, text)
        train = whole
    else:
        split = divide_texts(whole.texts, ["yes" if one else "no" for one in whole.any()], seed=seed)
        train, held_out = (
            MultilabelTexts(tuple(whole.texts[place] for place in places), whole.truth[list(places)])
            for places in (split.train, split.held_out)
        )
    notes = (f"{skipped} rows left out: no text, or a label that is not 0 or 1.",) if skipped else ()
    return MultilabelExamples(train, held_out, labels, notes)


@dataclass(frozen=True, slots=True)
class MultilabelTraining:
    """A training with its data read and checked."""

    task: str
    data: Path
    valid: Path | None
    examples: MultilabelExamples
    fit: ClassifierFit

    def identity(self) -> dict[str, Json]:
        """What decides the result, apart from the machine."""
        return {
            "task": self.task,
            "labels": list(self.examples.labels),
            "data": file_digest(self.data),
            "valid": file_digest(self.valid) if self.valid else None,
            "backbone": self.fit.backbone,
            **asdict(self.fit.recipe),
            "max_length": self.fit.longest,
        }

    def lines(self) -> tuple[str, ...]:
        """What will be done."""
        train, held_out = self.examples.train, self.examples.held_out
        fit, recipe = self.fit, self.fit.recipe
        return (
            f"texts    {len(train.texts):,} to learn from, {len(held_out.texts):,} held out; a yes or no to "
            f"each of {', '.join(self.examples.labels)}",
            f"backbone {fit.backbone}, {recipe.epochs} epochs, batch {recipe.batch}, learning rate "
            f"{recipe.rate:g}, at most {fit.longest} tokens: {fit.steps(len(train.texts)):,} steps",
        )

    def run(self, folder: TrainingFolder, progress: Progress) -> Mapping[str, float]:
        """Train, store, measure; the measures by name."""
        train, held_out, labels = self.examples.train, self.examples.held_out, self.examples.labels
        parts = LabelledPart(*train), LabelledPart(*held_out)
        fitted = self.fit.run(*parts, folder.path, progress, checkpoint=folder.checkpoint)
        shares = fitted.probabilities(held_out.texts)
        worst = shares.max(1)
        outcome = HeldOutResult.of(
            np.stack([1 - worst, worst], axis=1), held_out.any(), ("none", "any"), majority_label="none"
        )
        areas, notes = {}, []
        for label, answers, truth in zip(labels, shares.T, held_out.truth.T, strict=True):
            area = roc_auc(answers, truth > 0)
            shown = "undefined" if math.isnan(area) else f"{area:.3f}"
            notes.append(f"{label}: area under the curve {shown}, {int(truth.sum())} held-out texts have it.")
            if not math.isnan(area):
                areas[f"auc_{label}"] = area
        counts = [f"{label} {int(count):,}" for label, count in zip(labels, train.truth.sum(0), strict=True)]
        settings = {
            "data": describe_file(self.data),
            "texts to learn from": f"{', '.join(counts)}, none {int((1 - train.any()).sum()):,}",
            "backbone": self.fit.backbone,
            "training": self.lines()[1],
        }
        card = write_classifier_card(
            title=f"Classifier `{self.task}`, several labels",
            settings=settings | dict(fitted.settings),
            held_out=outcome,
            yardstick=None,
            history=fitted.history,
            notes=(*self.examples.notes, "A text counts as *any* where one label has 0.5 or more.", *notes),
            use=score_command(f"{self.task}={folder.path}"),
        )
        return folder.finish(outcome.measures() | areas, card=card, held_out=outcome.to_json())


def _map_labels(task: str, columns: Sequence[str]) -> tuple[str, ...]:
    known = KINDS.get(task, {})
    for column in columns:
        if column not in known:
            raise InputError(
                f"{task} has no label {column!r} that others may accompany",
                expected=", ".join(known) or f"one column of labels for {task}",
                fix="name columns with --label",
            )
    return tuple(dict.fromkeys(known[column] for column in columns))


def _read(path: Path, columns: Sequence[str], text: str) -> tuple[MultilabelTexts, int]:
    table = read_table(path, {"--text": text, **{f"--label {name}": name for name in columns}})
    values = {"0": 0.0, "1": 1.0, "0.0": 0.0, "1.0": 1.0, "false": 0.0, "true": 1.0}
    texts: list[str] = []
    rows: list[list[float]] = []
    for words, *cells in table.select(text, *columns).iter_rows():
        marks = [values.get((cell or "").strip().lower()) for cell in cells]
        if (words or "").strip() and None not in marks:
            texts.append(words)
            rows.append([mark for mark in marks if mark is not None])
    truth = np.array(rows, dtype=np.float32).reshape(len(rows), len(columns))
    return MultilabelTexts(tuple(texts), truth), table.height - len(texts)
