"""Train a classifier whose labels do not exclude each other: a yes or no to toxic, threat, insult ..."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand.core.digests import Json, file_digest
from evenhand.core.errors import InputError
from evenhand.core.protocols import Progress
from evenhand.store.atomic_writes import storage_errors, write_text
from evenhand.store.table_files import read_table
from evenhand.text.data_splits import divide_texts
from evenhand.training.job_folder import TrainingFolder
from evenhand.training.labelled_table import LEAST
from evenhand.training.model_card import write_classifier_card
from evenhand.training.presets import EpochLosses, FineTuningConfig
from evenhand.training.test_measures import HeldOutResult

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
        train, held_out = _select_texts(whole, split.train), _select_texts(whole, split.held_out)
    notes = (f"{skipped} rows left out: no text, or a label that is not 0 or 1.",) if skipped else ()
    return MultilabelExamples(train, held_out, labels, notes)


@dataclass(frozen=True, slots=True)
class MultilabelTraining:
    """A training with its data read and checked."""

    task: str
    data: Path
    valid: Path | None
    examples: MultilabelExamples
    backbone: str
    recipe: FineTuningConfig
    longest: int
    device: str = "auto"
    offline: bool = False

    def identity(self) -> dict[str, Json]:
        """What decides the result, apart from the machine."""
        return {
            "task": self.task,
            "labels": list(self.examples.labels),
            "data": file_digest(self.data),
            "valid": file_digest(self.valid) if self.valid else None,
            "backbone": self.backbone,
            **asdict(self.recipe),
            "max_length": self.longest,
        }

    def lines(self) -> tuple[str, ...]:
        """What will be done."""
        train, held_out = self.examples.train, self.examples.held_out
        return (
            f"texts    {len(train.texts):,} to learn from, {len(held_out.texts):,} held out; a yes or no to "
            f"each of {', '.join(self.examples.labels)}",
            f"backbone {self.backbone}, {self.recipe.epochs} epochs, batch {self.recipe.batch}, learning "
            f"rate {self.recipe.rate:g}, at most {self.longest} tokens: {self._steps():,} steps",
        )

    def run(self, folder: TrainingFolder, progress: Progress) -> Mapping[str, float]:
        """Train, store, measure; the measures by name."""
        from evenhand.tensors.devices import select_device
        from evenhand.training.backbones import open_backbone
        from evenhand.training.finetuning import EncodedTexts, FineTuner

        examples = self.examples
        backbone = open_backbone(
            self.backbone,
            task=self.task,
            labels=examples.labels,
            longest=self.longest,
            seed=self.recipe.seed,
            offline=self.offline,
            each=True,
        )
        coded = [
            EncodedTexts(backbone.encode(part.texts), part.truth)
            for part in (examples.train, examples.held_out)
        ]
        device = select_device(self.device)
        tuning = FineTuner(backbone.network, self.recipe, padding=backbone.padding, device=device)
        started = time.monotonic()
        with progress.step("training", self._steps()) as advance, storage_errors(folder.path):
            history = tuning.run(*coded, checkpoint=folder.checkpoint, on_step=advance)
            backbone.save(folder.path)
        seconds = time.monotonic() - started
        said = tuning.logits(coded[1].rows).sigmoid().numpy()
        used = {"weights at the start": backbone.revision, "time": f"{seconds:,.0f} s on {device.type}"}
        return self._finish(folder, said, history, used)

    def _finish(
        self,
        folder: TrainingFolder,
        said: NDArray[np.floating],
        history: Sequence[EpochLosses],
        used: Mapping[str, str],
    ) -> Mapping[str, float]:
        truth = self.examples.held_out
        worst = said.max(1)
        outcome = HeldOutResult.of(
            np.stack([1 - worst, worst], axis=1), truth.any(), ("none", "any"), majority_label="none"
        )
        found = {
            label: roc_auc_or_none(said[:, place], truth.truth[:, place]) for place, label in self._places()
        }
        areas = {f"auc_{label}": value for label, value in found.items() if value is not None}
        notes = [
            f"{label}: area under the curve {'not to be told' if value is None else f'{value:.3f}'}, "
            f"{int(truth.truth[:, place].sum())} held-out texts have it."
            for (place, label), value in zip(self._places(), found.values(), strict=True)
        ]
        card = write_classifier_card(
            title=f"Classifier `{self.task}`, several labels",
            settings=self._settings() | dict(used),
            held_out=outcome,
            yardstick=None,
            history=tuple(history),
            notes=(*self.examples.notes, "A text counts as *any* where one label has 0.5 or more.", *notes),
            use="```console\n"
            f"evenhand score FILE --group AXIS=COLUMN --metrics {self.task}={folder.path}\n```",
        )
        write_text(folder.path / "card.md", card)
        measures = outcome.measures() | areas
        folder.finish(measures, {"held_out": outcome.to_json()})
        return measures

    def _places(self) -> list[tuple[int, str]]:
        return list(enumerate(self.examples.labels))

    def _settings(self) -> dict[str, object]:
        train = self.examples.train.truth
        return {
            "data": f"{self.data.name}, BLAKE2b-128 {file_digest(self.data)}",
            "texts to learn from": ", ".join(
                f"{label} {int(train[:, place].sum()):,}" for place, label in self._places()
            )
            + f", none {int((1 - self.examples.train.any()).sum()):,}",
            "backbone": self.backbone,
            "training": "; ".join(self.lines()[1:]),
        }

    def _steps(self) -> int:
        return -(-len(self.examples.train.texts) // self.recipe.batch) * self.recipe.epochs


def roc_auc_or_none(scores: NDArray[np.floating], truth: NDArray[np.floating]) -> float | None:
    """The share of pairs (a text with the label, one without) that are ranked rightly, ties half; in [0, 1].

    >>> area_under(np.array([0.9, 0.4, 0.4]), np.array([1.0, 1.0, 0.0]))
    0.75
    """
    from scipy.stats import rankdata

    yes = int(truth.sum())
    no = len(truth) - yes
    if not yes or not no:
        return None
    ranks = rankdata(scores)
    return float((ranks[truth > 0].sum() - yes * (yes + 1) / 2) / (yes * no))


def _map_labels(task: str, columns: Sequence[str]) -> tuple[str, ...]:
    known = KINDS.get(task, {})
    for column in columns:
        if column not in known:
            raise InputError(
                f"{task} has no label {column!r} that others may stand beside",
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


def _select_texts(data: MultilabelTexts, places: Sequence[int]) -> MultilabelTexts:
    return MultilabelTexts(tuple(data.texts[place] for place in places), data.truth[list(places)])
