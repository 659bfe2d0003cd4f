"""One training of a classifier: its data divided, a backbone tuned, measured, stored with a card."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from evenhand.core.digests import Json, file_digest
from evenhand.core.errors import InputError
from evenhand.core.protocols import Progress
from evenhand.store.atomic import naming_storage_errors, write_text
from evenhand.training.card import classifier_card
from evenhand.training.held_out import HeldOut
from evenhand.training.job_folder import JobFolder
from evenhand.training.labelled_table import LabelledTexts, check_enough, read_labelled
from evenhand.training.linear_text import LinearText
from evenhand.training.recipe import Epoch, Recipe
from evenhand.training.split import SHARE, divide, repeated
from evenhand.training.tasks import Task

BUILTIN: Final = "builtin"
LINEAR: Final = "linear"


@dataclass(frozen=True, slots=True)
class Examples:
    """Texts to learn from, texts to test on, and what was noticed about them."""

    train: LabelledTexts
    held_out: LabelledTexts
    labels: tuple[str, ...]
    """The labels that occur, in the task's order."""
    notes: tuple[str, ...]

    def truth(self, data: LabelledTexts) -> NDArray[np.int64]:
        """The labels of texts by number."""
        return np.array([self.labels.index(label) for label in data.labels], dtype=np.int64)

    @property
    def majority_label(self) -> str:
        """The most frequent label of the training texts; the first of the task's order on a tie."""
        counts = self.train.counts()
        return max(self.labels, key=lambda label: counts[label])


@dataclass(frozen=True, slots=True)
class ClassifierJob:
    """A training with its data read and checked."""

    task: Task
    data: Path
    valid: Path | None
    columns: tuple[str, str]
    examples: Examples
    backbone: str
    recipe: Recipe
    longest: int
    device: str = "auto"
    offline: bool = False

    def identity(self) -> dict[str, Json]:
        """What decides the result, apart from the machine."""
        neural = {} if self.backbone == LINEAR else {**asdict(self.recipe), "max_length": self.longest}
        return {
            "task": self.task.name,
            "data": file_digest(self.data),
            "valid": file_digest(self.valid) if self.valid else None,
            "columns": list(self.columns),
            "backbone": self.backbone,
            "seed": self.recipe.seed,
            **neural,
        }

    def lines(self) -> tuple[str, ...]:
        """What will be done."""
        examples = self.examples
        train, held_out = len(examples.train.texts), len(examples.held_out.texts)
        return (
            f"texts    {train:,} to learn from, {held_out:,} held out; labels {', '.join(examples.labels)}",
            f"backbone {self.backbone}"
            + ("" if self.backbone == LINEAR else f", {self._recipe()}: {self._steps():,} steps"),
            *(f"note     {note}" for note in examples.notes),
        )

    def run(self, folder: JobFolder, progress: Progress) -> Mapping[str, float]:
        """Train, store, measure; the measures by name."""
        with progress.step("yardstick", None):
            linear = self._linear()
        yardstick = self._outcome(linear.probabilities(self.examples.held_out.texts))
        if self.backbone == LINEAR:
            with naming_storage_errors(folder.path):
                linear.save(folder.path)
            return self._finish(folder, yardstick, None, {}, [])
        return self._tune(folder, yardstick, progress)

    def _tune(self, folder: JobFolder, yardstick: HeldOut, progress: Progress) -> Mapping[str, float]:
        from evenhand.neural.devices import device_of
        from evenhand.training.backbones import open_backbone
        from evenhand.training.finetune import Coded, FineTuning

        examples = self.examples
        backbone = open_backbone(
            self.backbone,
            task=self.task.name,
            labels=examples.labels,
            longest=self.longest,
            seed=self.recipe.seed,
            offline=self.offline,
        )
        coded = [
            Coded(backbone.encode(data.texts), examples.truth(data))
            for data in (examples.train, examples.held_out)
        ]
        device = device_of(self.device)
        tuning = FineTuning(backbone.network, self.recipe, padding=backbone.padding, device=device)
        started = time.monotonic()
        with progress.step("training", self._steps()) as advance, naming_storage_errors(folder.path):
            history = tuning.run(*coded, checkpoint=folder.checkpoint, on_step=advance)
            backbone.save(folder.path)
        outcome = self._outcome(tuning.logits(coded[1].rows).softmax(-1).numpy())
        seconds = f"{time.monotonic() - started:,.0f} s on {device.type}, since it was last started"
        used = {
            "weights at the start": backbone.revision,
            "tokens read": str(backbone.longest),
            "time": seconds,
        }
        return self._finish(folder, outcome, yardstick, used, history)

    def _linear(self) -> LinearText:
        train = self.examples.train
        return LinearText.fitted(train.texts, self.examples.truth(train), self.examples.labels)

    def _outcome(self, probabilities: NDArray[np.floating]) -> HeldOut:
        examples = self.examples
        truth = examples.truth(examples.held_out)
        return HeldOut.of(probabilities, truth, examples.labels, majority_label=examples.majority_label)

    def _finish(
        self,
        folder: JobFolder,
        held_out: HeldOut,
        yardstick: HeldOut | None,
        used: Mapping[str, str],
        history: Sequence[Epoch],
    ) -> Mapping[str, float]:
        text = classifier_card(
            title=f"Classifier `{self.task.name}`",
            settings=self._settings() | dict(used),
            held_out=held_out,
            yardstick=yardstick,
            history=history,
            notes=(*self.examples.notes, *self._honesty()),
            use=_use(self.task.name, folder.path, loadable=self.backbone != LINEAR),
        )
        write_text(folder.path / "card.md", text)
        measures = held_out.measures()
        if yardstick is not None:
            measures |= {"linear_accuracy": yardstick.measures()["accuracy"]}
        folder.finish(measures, {"held_out": held_out.to_json()})
        return measures

    def _settings(self) -> dict[str, object]:
        train, held_out = self.examples.train.counts(), self.examples.held_out.counts()
        counts = ", ".join(
            f"{label} {train[label]:,} + {held_out[label]:,}" for label in self.examples.labels
        )
        how = (
            f"from {self.valid.name}" if self.valid else f"{SHARE:.0%} of each label, seed {self.recipe.seed}"
        )
        return {
            "data": f"{self.data.name}, BLAKE2b-128 {file_digest(self.data)}",
            **(
                {"test data": f"{self.valid.name}, BLAKE2b-128 {file_digest(self.valid)}"}
                if self.valid
                else {}
            ),
            "texts (training + held out)": counts,
            "held out": how + "; near-identical texts stay on one side" * (self.valid is None),
            "backbone": self.backbone,
            **({} if self.backbone == LINEAR else {"training": self._recipe()}),
        }

    def _steps(self) -> int:
        return -(-len(self.examples.train.texts) // self.recipe.batch) * self.recipe.epochs

    def _recipe(self) -> str:
        recipe = self.recipe
        stop = "" if recipe.patience is None else f", stops after {recipe.patience} epochs without gain"
        return (
            f"AdamW, {recipe.epochs} epochs, batch {recipe.batch}, learning rate {recipe.rate:g}, "
            f"at most {self.longest} tokens a text, seed {recipe.seed}{stop}"
        )

    def _honesty(self) -> tuple[str, ...]:
        """What makes the held-out figures look better than they are."""
        notes = []
        if self.recipe.patience is not None:
            notes.append(
                "The epoch was chosen by the held-out loss: the held-out figures are a little too good."
            )
        if self.backbone == BUILTIN:
            notes.append(
                "The embedded encoder has itself learned from the data sets named on its card: texts of "
                "those are not unseen, whichever side of the split they stand on."
            )
        return tuple(notes)


def read_examples(
    data: Path, task: Task, *, valid: Path | None, text: str, label: str, seed: int
) -> Examples:
    """The examples of a table: divided by seed, or tested on the table ``valid``."""
    whole = read_labelled(data, task, text=text, label=label)
    check_enough(whole, data)
    notes = [f"{count} rows left out: {reason}" for reason, count in whole.skipped.items()]
    if valid is None:
        found = divide(whole.texts, whole.labels, seed=seed)
        train, held_out = _chosen(whole, found.train), _chosen(whole, found.held_out)
    else:
        train, held_out = whole, read_labelled(valid, task, text=text, label=label)
        notes += _check_valid(train, held_out, valid)
    known = {*train.labels, *held_out.labels}
    return Examples(train, held_out, tuple(name for name in task.labels if name in known), tuple(notes))


def _check_valid(train: LabelledTexts, held_out: LabelledTexts, valid: Path) -> list[str]:
    """Notes on the texts to test on; an error where there are none, or a label that was never learned."""
    if not held_out.texts:
        raise InputError(f"{valid} has no labelled texts", accepted="at least one", todo="check the file")
    for label in held_out.counts():
        if label not in train.labels:
            raise InputError(
                f"{valid} has the label {label!r}, which no text to learn from has",
                accepted=", ".join(train.counts()),
                todo="add texts of that label to the training data, or leave it out of the test",
            )
    twins = repeated(held_out.texts, train.texts)
    said = f"{twins} of the {len(held_out.texts)} held-out texts nearly repeat a training text"
    return [said] if twins else []


def _chosen(data: LabelledTexts, places: Sequence[int]) -> LabelledTexts:
    return LabelledTexts(
        tuple(data.texts[place] for place in places), tuple(data.labels[place] for place in places), {}
    )


def _use(task: str, folder: Path, *, loadable: bool) -> str:
    if loadable:
        return f"```console\nevenhand score FILE --group AXIS=COLUMN --metrics {task}={folder}\n```"
    return (
        "A yardstick for other backbones, not a metric. From Python: "
        "`evenhand.training.linear_text.LinearText.load(folder).probabilities(texts)`."
    )
