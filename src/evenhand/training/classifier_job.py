"""One training of a classifier: its data divided, a backbone fitted, measured, stored with a card."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from evenhand.core.digests import Json, file_digest
from evenhand.core.protocols import Progress
from evenhand.store.atomic import naming_storage_errors, write_text
from evenhand.training import predictions
from evenhand.training.analysers import ANALYSERS, CUTS
from evenhand.training.card import classifier_card
from evenhand.training.ceiling import ceiling
from evenhand.training.examples import Examples
from evenhand.training.fitting import LINEAR, LSTM, Fit, Fitted, kind_of
from evenhand.training.held_out import HeldOut
from evenhand.training.job_folder import JobFolder
from evenhand.training.labelled_table import LabelledTexts
from evenhand.training.linear_text import LinearText
from evenhand.training.recipe import Recipe
from evenhand.training.split import SHARE
from evenhand.training.tasks import Task

BUILTIN: Final = "builtin"
"""What was said of every unseen text: ``part, text, label, said`` and a probability a label."""


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
    test: Path | None = None
    """A table of further texts to test on."""

    def identity(self) -> dict[str, Json]:
        """What decides the result, apart from the machine."""
        neural = {**asdict(self.recipe), "max_length": self.longest} if self._is_trained() else {}
        further = {"test": file_digest(self.test)} if self.test else {}
        vectors = {"vectors": self._vectors()} if kind_of(self.backbone) == LSTM else {}
        return {
            "task": self.task.name,
            "data": file_digest(self.data),
            "valid": file_digest(self.valid) if self.valid else None,
            "columns": list(self.columns),
            "backbone": self.backbone,
            "seed": self.recipe.seed,
            **further,
            **vectors,
            **neural,
        }

    def _vectors(self) -> str:
        from evenhand.training.lstm import vectors_identity

        return vectors_identity(self.backbone.partition(":")[2])

    def lines(self) -> tuple[str, ...]:
        """What will be done."""
        examples = self.examples
        train, held_out = len(examples.train.texts), len(examples.held_out.texts)
        return (
            f"texts    {train:,} to learn from, {held_out:,} held out{self._further()}; labels "
            f"{', '.join(examples.labels)}",
            f"backbone {self.backbone}"
            + (f", {self._recipe()}: {self._steps():,} steps" if self._is_trained() else ""),
            *(f"note     {note}" for note in (*examples.notes, *self._ceiling_note())),
        )

    def _further(self) -> str:
        return "" if self.examples.test is None else f", {len(self.examples.test.texts):,} to test on"

    def run(self, folder: JobFolder, progress: Progress) -> Mapping[str, float]:
        """Train, store, measure; the measures by name."""
        with progress.step("yardstick", None):
            linear = self._linear()
        if self.backbone == LINEAR:
            with naming_storage_errors(folder.path):
                linear.save(folder.path)
            return self._finish(folder, Fitted(linear.probabilities, {}), None)
        fitted = self.fit().run(self.examples, folder.path, progress, checkpoint=folder.checkpoint)
        yardstick = self._outcome(self.examples.held_out, linear.probabilities(self.examples.held_out.texts))
        return self._finish(folder, fitted, yardstick)

    def fit(self) -> Fit:
        """How the backbone is fitted."""
        return Fit(self.task.name, self.backbone, self.recipe, self.longest, self.device, self.offline)

    def _linear(self) -> LinearText:
        train = self.examples.train
        return LinearText.fitted(train.texts, self.examples.truth(train), self.examples.labels)

    def _outcome(self, data: LabelledTexts, probabilities: NDArray[np.floating]) -> HeldOut:
        examples = self.examples
        truth = examples.truth(data)
        return HeldOut.of(probabilities, truth, examples.labels, majority_label=examples.majority_label)

    def _finish(self, folder: JobFolder, fitted: Fitted, yardstick: HeldOut | None) -> Mapping[str, float]:
        said = {part: fitted.probabilities(data.texts) for part, data in self.examples.unseen().items()}
        outcomes = {part: self._outcome(data, said[part]) for part, data in self.examples.unseen().items()}
        write_text(folder.path / predictions.FILE, self._predictions(said))
        text = classifier_card(
            title=f"Classifier `{self.task.name}`",
            settings=self._settings() | dict(fitted.used),
            held_out=outcomes["dev"],
            yardstick=yardstick,
            history=fitted.history,
            notes=(*self.examples.notes, *self._honesty(), *self._ceiling_note(), *_further(outcomes)),
            use=_use(self.task.name, folder.path, self.backbone),
        )
        write_text(folder.path / "card.md", text)
        measures = outcomes["dev"].measures() | self._ceilings()
        if yardstick is not None:
            measures |= {"linear_accuracy": yardstick.measures()["accuracy"]}
        if "test" in outcomes:
            measures |= {f"test_{name}": value for name, value in outcomes["test"].measures().items()}
        details = {"held_out" if part == "dev" else part: found.to_json() for part, found in outcomes.items()}
        folder.finish(measures, details)
        return measures

    def _ceilings(self) -> dict[str, float]:
        """The largest possible accuracy of each part whose texts stand under several labels."""
        found = {part: ceiling(data.texts, data.labels) for part, data in self.examples.unseen().items()}
        return {
            f"{part}_ceiling" if part != "dev" else "ceiling": top for part, top in found.items() if top < 1
        }

    def _ceiling_note(self) -> tuple[str, ...]:
        return tuple(
            f"Some held-out texts stand under several labels: no classifier with one answer a text can be "
            f"right "
            f"on more than {top:.3f} of them."
            for name, top in self._ceilings().items()
            if name == "ceiling"
        )

    def _predictions(self, said: Mapping[str, NDArray[np.floating]]) -> str:
        labels = self.examples.labels
        rows = (
            (predictions.Prediction(part, text, label, labels[int(row.argmax())]), row)
            for part, data in self.examples.unseen().items()
            for text, label, row in zip(data.texts, data.labels, said[part], strict=True)
        )
        return predictions.predictions_csv(labels, rows)

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
            **({"training": self._recipe()} if self._is_trained() else {}),
        }

    def _steps(self) -> int:
        return self.fit().steps(len(self.examples.train.texts))

    def _is_trained(self) -> bool:
        return self.backbone not in (LINEAR, *ANALYSERS)

    def _recipe(self) -> str:
        recipe = self.recipe
        stop = "" if recipe.patience is None else f", stops after {recipe.patience} epochs without gain"
        optimiser = "AdamW" if recipe.weight_decay else "Adam"
        kept = " kept" if recipe.is_constant else ""
        return (
            f"{optimiser}, {recipe.epochs} epochs, batch {recipe.batch}, learning rate "
            f"{recipe.rate:g}{kept}, "
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


def _further(outcomes: Mapping[str, HeldOut]) -> list[str]:
    """The result on further test texts, in a sentence."""
    if "test" not in outcomes:
        return []
    found = outcomes["test"].accuracy
    return [f"On the {found.n} further test texts: {found.value:.3f} ({found.low:.3f} to {found.high:.3f})."]


def _use(task: str, folder: Path, backbone: str) -> str:
    if backbone in ANALYSERS:
        return (
            f"A yardstick: nothing was trained and nothing is stored. A text is negative or positive beyond "
            f"{CUTS[backbone]:g}."
        )
    if backbone != LINEAR:
        return f"```console\nevenhand score FILE --group AXIS=COLUMN --metrics {task}={folder}\n```"
    return (
        "A yardstick for other backbones, not a metric. From Python: "
        "`evenhand.training.linear_text.LinearText.load(folder).probabilities(texts)`."
    )
