"""One training of a classifier: its data divided, a backbone fitted, measured, stored with a card."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import numpy as np
from numpy.typing import NDArray

from evenhand.core.digests import Json, file_digest
from evenhand.core.errors import InputError
from evenhand.core.protocols import Progress
from evenhand.store.atomic_writes import storage_errors, write_text
from evenhand.text.data_splits import SHARE
from evenhand.training import job_folder
from evenhand.training.job_folder import CHECKPOINT, TrainingFolder
from evenhand.training.labelled_table import LabelledExamples, LabelledTexts
from evenhand.training.linear_text import LinearText
from evenhand.training.model_card import write_classifier_card
from evenhand.training.presets import EpochLosses, FineTuningConfig
from evenhand.training.sentiment_analysers import ANALYSERS, CUTS, SentimentAnalyser
from evenhand.training.tasks import ClassificationTask
from evenhand.training.test_measures import HeldOutResult, accuracy_ceiling

if TYPE_CHECKING:
    from evenhand.classifiers.word_networks import Kind
    from evenhand.training.backbones import Backbone


LINEAR: Final = "linear"
LSTM: Final = "lstm"
OVER_WORDS: Final = ("fasttext", "attention", "small-transformer")
"""Networks over the words of the training texts, beside the LSTM."""
ENSEMBLE: Final = "ensemble"
MEMBERS: Final = 3
_VOTERS: Final = "builtin:masked"
"""What three copies of vote where nothing else is named."""

Probabilities = NDArray[np.floating]


@dataclass(frozen=True, slots=True)
class FittedClassifier:
    """A classifier that has learned, and how that went."""

    probabilities: Callable[[Sequence[str]], Probabilities]
    """One row a text, one column a label."""
    settings: Mapping[str, str]
    """What a card says of the fit."""
    history: tuple[EpochLosses, ...] = ()


@dataclass(frozen=True, slots=True)
class ClassifierFit:
    """How a classifier is fitted to examples."""

    task: str
    backbone: str
    recipe: FineTuningConfig
    longest: int
    device: str = "auto"
    offline: bool = False

    def run(
        self, examples: LabelledExamples, folder: Path, progress: Progress, *, checkpoint: Path
    ) -> FittedClassifier:
        """The fitted classifier, stored in the folder; goes on from a checkpoint where there is one."""
        if self.backbone in ANALYSERS:
            return FittedClassifier(SentimentAnalyser(self.backbone, examples.labels).probabilities, {})
        if backbone_kind(self.backbone) == ENSEMBLE:
            return self._vote(examples, folder, progress)
        return self._tune(examples, folder, progress, checkpoint)

    def steps(self, texts: int) -> int:
        """Steps of all networks together."""
        networks = len(ensemble_members(self.backbone)) if backbone_kind(self.backbone) == ENSEMBLE else 1
        return -(-texts // self.recipe.batch) * self.recipe.epochs * networks

    def _tune(
        self, examples: LabelledExamples, folder: Path, progress: Progress, checkpoint: Path
    ) -> FittedClassifier:
        from evenhand.tensors.devices import select_device
        from evenhand.training.finetuning import EncodedTexts, FineTuner

        backbone = self._open_backbone(examples)
        coded = [
            EncodedTexts(backbone.encode(data.texts), examples.truth(data))
            for data in (examples.train, examples.held_out)
        ]
        device = select_device(self.device)
        tuning = FineTuner(backbone.network, self.recipe, padding=backbone.padding, device=device)
        started = time.monotonic()
        steps = self.steps(len(examples.train.texts))
        with progress.step("training", steps) as advance, storage_errors(folder):
            history = tuning.run(*coded, checkpoint=checkpoint, on_step=advance)
            backbone.save(folder)
        used = {
            "weights at the start": backbone.revision,
            "tokens read": str(backbone.longest),
            "time": f"{time.monotonic() - started:,.0f} s on {device.type}, since it was last started",
        }

        def probabilities(texts: Sequence[str]) -> Probabilities:
            found: Probabilities = tuning.logits(backbone.encode(texts)).softmax(-1).numpy()
            return found

        return FittedClassifier(probabilities, used, tuple(history))

    def _vote(self, examples: LabelledExamples, folder: Path, progress: Progress) -> FittedClassifier:
        from evenhand.classifiers import ensemble

        names = [f"member-{number}" for number in range(MEMBERS)]
        fits = []
        for number, (name, backbone) in enumerate(zip(names, ensemble_members(self.backbone), strict=True)):
            (folder / name).mkdir(exist_ok=True)
            # Seeds far apart: the members of the next run must not be members of this one.
            recipe = replace(self.recipe, seed=self.recipe.seed + 1000 * (number + 1))
            member = replace(self, backbone=backbone, recipe=recipe)
            checkpoint = folder / name / CHECKPOINT
            fits.append(member.run(examples, folder / name, progress, checkpoint=checkpoint))
        for name in names:
            (folder / name / CHECKPOINT).unlink(missing_ok=True)
        ensemble.save_ensemble(folder, members=names, labels=examples.labels)
        used = {
            f"member {number + 1}": fit.settings.get("weights at the start", "")
            for number, fit in enumerate(fits)
        }

        def probabilities(texts: Sequence[str]) -> Probabilities:
            return ensemble.vote_shares([fit.probabilities(texts) for fit in fits])

        return FittedClassifier(probabilities, used)

    def _open_backbone(self, examples: LabelledExamples) -> Backbone:
        from evenhand.training.backbones import open_backbone
        from evenhand.training.word_backbone import LstmBackbone, WordBackbone

        if backbone_kind(self.backbone) == LSTM:
            return LstmBackbone(
                examples.train.texts,
                examples.labels,
                vectors=self.backbone.partition(":")[2],
                longest=self.longest,
                seed=self.recipe.seed,
            )
        if backbone_kind(self.backbone) in OVER_WORDS:
            return WordBackbone(
                cast("Kind", self.backbone),
                examples.train.texts,
                examples.labels,
                longest=self.longest,
                seed=self.recipe.seed,
            )
        return open_backbone(
            self.backbone,
            task=self.task,
            labels=examples.labels,
            longest=self.longest,
            seed=self.recipe.seed,
            offline=self.offline,
        )


def backbone_kind(backbone: str) -> str:
    """``linear``, an analyser, ``lstm``, a network over words, ``ensemble``, or else ``transformer``."""
    if backbone in OVER_WORDS:
        return backbone
    first = backbone.partition(":")[0]
    return first if first in (LINEAR, LSTM, ENSEMBLE, *ANALYSERS) else "transformer"


def ensemble_members(backbone: str) -> tuple[str, ...]:
    """The three that vote: ``ensemble:A+B+C``, or three copies of one name with seeds of their own.

    >>> members_of("ensemble:lstm")
    ('lstm', 'lstm', 'lstm')
    """
    names = (backbone.partition(":")[2] or _VOTERS).split("+")
    members = tuple(names * MEMBERS if len(names) == 1 else names)
    if (
        len(members) != MEMBERS
        or not all(members)
        or any(backbone_kind(name) not in (LSTM, *OVER_WORDS, "transformer") for name in members)
    ):
        raise InputError(
            f"the ensemble {backbone!r} has {len(names)} member(s)",
            expected="one name, or three joined by +, each a transformer or a network over words",
            fix="for example ensemble:builtin:masked or ensemble:lstm+lstm:embedded+builtin:masked",
        )
    return members


BUILTIN: Final = "builtin"
"""What was said of every unseen text: ``part, text, label, said`` and a probability a label."""


@dataclass(frozen=True, slots=True)
class ClassifierTraining:
    """A training with its data read and checked."""

    task: ClassificationTask
    data: Path
    valid: Path | None
    columns: tuple[str, str]
    examples: LabelledExamples
    backbone: str
    recipe: FineTuningConfig
    longest: int
    device: str = "auto"
    offline: bool = False
    test: Path | None = None
    """A table of further texts to test on."""

    def identity(self) -> dict[str, Json]:
        """What decides the result, apart from the machine."""
        neural = {**asdict(self.recipe), "max_length": self.longest} if self._is_trained() else {}
        further = {"test": file_digest(self.test)} if self.test else {}
        vectors = {"vectors": self._vectors()} if backbone_kind(self.backbone) == LSTM else {}
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
        from evenhand.training.word_backbone import vectors_identity

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

    def run(self, folder: TrainingFolder, progress: Progress) -> Mapping[str, float]:
        """Train, store, measure; the measures by name."""
        with progress.step("yardstick", None):
            linear = self._linear()
        if self.backbone == LINEAR:
            with storage_errors(folder.path):
                linear.save(folder.path)
            return self._finish(folder, FittedClassifier(linear.probabilities, {}), None)
        fitted = self.fit().run(self.examples, folder.path, progress, checkpoint=folder.checkpoint)
        yardstick = self._outcome(self.examples.held_out, linear.probabilities(self.examples.held_out.texts))
        return self._finish(folder, fitted, yardstick)

    def fit(self) -> ClassifierFit:
        """How the backbone is fitted."""
        return ClassifierFit(
            self.task.name, self.backbone, self.recipe, self.longest, self.device, self.offline
        )

    def _linear(self) -> LinearText:
        train = self.examples.train
        return LinearText.fit(train.texts, self.examples.truth(train), self.examples.labels)

    def _outcome(self, data: LabelledTexts, probabilities: NDArray[np.floating]) -> HeldOutResult:
        examples = self.examples
        truth = examples.truth(data)
        return HeldOutResult.of(probabilities, truth, examples.labels, majority_label=examples.majority_label)

    def _finish(
        self, folder: TrainingFolder, fitted: FittedClassifier, yardstick: HeldOutResult | None
    ) -> Mapping[str, float]:
        said = {part: fitted.probabilities(data.texts) for part, data in self.examples.unseen_parts().items()}
        outcomes = {
            part: self._outcome(data, said[part]) for part, data in self.examples.unseen_parts().items()
        }
        write_text(folder.path / job_folder.PREDICTIONS_FILE, self._predictions(said))
        text = write_classifier_card(
            title=f"Classifier `{self.task.name}`",
            settings=self._settings() | dict(fitted.settings),
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
        found = {
            part: accuracy_ceiling(data.texts, data.labels)
            for part, data in self.examples.unseen_parts().items()
        }
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
            (job_folder.TextPrediction(part, text, label, labels[int(row.argmax())]), row)
            for part, data in self.examples.unseen_parts().items()
            for text, label, row in zip(data.texts, data.labels, said[part], strict=True)
        )
        return job_folder.write_predictions_csv(labels, rows)

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


def _further(outcomes: Mapping[str, HeldOutResult]) -> list[str]:
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
