"""Training of a classifier: its data split, a backbone fitted, measured, and stored with a card."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenhand.core.digests import Json, file_digest
from evenhand.core.errors import InputError
from evenhand.core.protocols import Progress
from evenhand.core.registry import require_library
from evenhand.stats.intervals import clustered_proportion
from evenhand.store.atomic_writes import storage_errors, write_text
from evenhand.store.table_files import spreadsheet_csv
from evenhand.suites.regard import RegardSuite
from evenhand.text.data_splits import SHARE
from evenhand.training import job_folder
from evenhand.training.labelled_table import LabelledExamples
from evenhand.training.linear_text import ANALYSERS, CUT, LinearText, judge_sentiment
from evenhand.training.options import LSTM_RECIPE, EpochLosses, FineTuningConfig
from evenhand.training.test_measures import HeldOutResult, roc_auc

BUILTIN: Final = "builtin"
LINEAR: Final = "linear"
LSTM: Final = "lstm"
OVER_WORDS: Final = ("fasttext", "attention", "small-transformer")
"""Networks over the words of the training texts, besides the LSTM."""
ENSEMBLE: Final = "ensemble"
MEMBERS: Final = 3
UNTRAINED: Final = (LINEAR, *ANALYSERS)
"""Baselines without a network; only the first of them learns anything."""
RATES: Final = {"builtin": 1e-4, "builtin:masked": 2e-4}
"""Learning rates for the small embedded networks; other backbones use 2e-5, usual for BERT's size."""
_VOTERS: Final = "builtin:masked"
"""The backbone of an ensemble's three copies by default."""

Probabilities = NDArray[np.floating]


@dataclass(frozen=True, slots=True)
class FittedClassifier:
    """A trained classifier and a record of its training."""

    probabilities: Callable[[Sequence[str]], Probabilities]
    """One row per text, one column per label."""
    settings: Mapping[str, str]
    """Details of the fit for the card."""
    history: tuple[EpochLosses, ...] = ()


@dataclass(frozen=True, slots=True)
class ClassifierFit:
    """How a classifier is fitted to examples."""

    task: str
    backbone: str
    labels: Sequence[str]
    recipe: FineTuningConfig
    longest: int
    device: str = "auto"
    offline: bool = False
    each: bool = False
    """Whether every label is binary on its own."""

    def run(self, examples: LabelledExamples, folder: Path, progress: Progress) -> FittedClassifier:
        """The fitted classifier, stored in the folder; resumes from a checkpoint if there is one."""
        if self.backbone in ANALYSERS:
            return FittedClassifier(partial(judge_sentiment, self.backbone, self.labels), {})
        if self.backbone == LINEAR and not self.each:
            with progress.step("training", None), storage_errors(folder):
                linear = LinearText.fit(examples.train.texts, examples.train.numbers, self.labels)
                linear.save(folder)
            return FittedClassifier(linear.probabilities, {})
        fit = self._vote if backbone_kind(self.backbone) == ENSEMBLE else self._tune
        return fit(examples, folder, progress)

    def steps(self, texts: int) -> int:
        """The total number of steps of all networks."""
        networks = MEMBERS if backbone_kind(self.backbone) == ENSEMBLE else 1
        return -(-texts // self.recipe.batch) * self.recipe.epochs * networks

    def _tune(self, examples: LabelledExamples, folder: Path, progress: Progress) -> FittedClassifier:
        from torch import Tensor

        from evenhand.tensors.devices import select_device
        from evenhand.training.backbones import open_backbone
        from evenhand.training.finetuning import EncodedTexts, FineTuner

        parts = (examples.train, examples.unseen["dev"])
        backbone = open_backbone(self, examples.train.texts)
        coded = [EncodedTexts(backbone.encode(part.texts), part.truth) for part in parts]
        device = select_device(self.device)
        tuning = FineTuner(backbone.network, self.recipe, padding=backbone.padding, device=device)
        started = time.monotonic()
        with progress.step("training", self.steps(len(coded[0].rows))) as advance, storage_errors(folder):
            history = tuning.run(*coded, checkpoint=folder / job_folder.CHECKPOINT, on_step=advance)
            backbone.save(folder)
        settings = {
            "weights at the start": backbone.revision,
            "tokens read": str(backbone.longest),
            "time": f"{time.monotonic() - started:,.0f} s on {device.type}, since it was last started",
        }
        activate = Tensor.sigmoid if self.each else partial(Tensor.softmax, dim=-1)
        return FittedClassifier(
            lambda texts: activate(tuning.logits(backbone.encode(texts))).numpy(), settings, tuple(history)
        )

    def _vote(self, examples: LabelledExamples, folder: Path, progress: Progress) -> FittedClassifier:
        from evenhand.classifiers.hub_classifier import save_ensemble, vote_shares

        fits = {}
        for number, backbone in enumerate(ensemble_members(self.backbone)):
            own = folder / f"member-{number}"
            own.mkdir(exist_ok=True)
            # Seeds far apart, so that the members of one run are not members of the next.
            recipe = replace(self.recipe, seed=self.recipe.seed + 1000 * (number + 1))
            fits[own] = replace(self, backbone=backbone, recipe=recipe).run(examples, own, progress)
        for own in fits:
            (own / job_folder.CHECKPOINT).unlink(missing_ok=True)
        save_ensemble(folder, members=[own.name for own in fits], labels=self.labels)
        starts = [fit.settings.get("weights at the start", "") for fit in fits.values()]
        return FittedClassifier(
            lambda texts: vote_shares([fit.probabilities(texts) for fit in fits.values()]),
            {f"member {number}": start for number, start in enumerate(starts, 1)},
        )


def backbone_kind(backbone: str) -> str:
    """``linear``, an analyser, ``lstm``, a network over words, ``ensemble``, or else ``transformer``."""
    if backbone in OVER_WORDS:
        return backbone
    first = backbone.partition(":")[0]
    return first if first in (LSTM, ENSEMBLE, *UNTRAINED) else "transformer"


def ensemble_members(backbone: str) -> tuple[str, ...]:
    """The three members that vote: ``ensemble:A+B+C``, or three copies of one name with different seeds.

    >>> ensemble_members("ensemble:lstm")
    ('lstm', 'lstm', 'lstm')
    """
    names = (backbone.partition(":")[2] or _VOTERS).split("+")
    members = tuple(names * MEMBERS if len(names) == 1 else names)
    able = (LSTM, *OVER_WORDS, "transformer")
    if len(members) != MEMBERS or not all(name and backbone_kind(name) in able for name in members):
        raise InputError(
            f"the ensemble {backbone!r} has {len(names)} member(s)",
            expected="one name, or three joined by +, each a transformer or a network over words",
            fix="for example ensemble:builtin:masked or ensemble:lstm+lstm:embedded+builtin:masked",
        )
    return members


def default_recipe(backbone: str) -> FineTuningConfig:
    """The default recipe of the backbone's kind."""
    if backbone_kind(backbone) in (LSTM, *OVER_WORDS):
        return LSTM_RECIPE
    rated = ensemble_members(backbone)[0] if backbone_kind(backbone) == ENSEMBLE else backbone
    return FineTuningConfig(rate=RATES.get(rated, FineTuningConfig().rate))


def check_backbone(backbone: str) -> None:
    """Import the backbone's libraries; raises an error that names the missing extra."""
    kind = backbone_kind(backbone)
    if kind == ENSEMBLE:
        ensemble_members(backbone)
    needs: dict[str, tuple[str, ...]] = {LINEAR: (), "vader": (), "textblob": ("textblob",)}
    needs |= dict.fromkeys((LSTM, *OVER_WORDS), ("torch",))
    for library in needs.get(kind, ("torch", "tokenizers", "transformers")):
        require_library(library)


@dataclass(frozen=True, slots=True)
class ClassifierTraining:
    """Training of a classifier, with its data read and checked."""

    task: str
    data: Path
    valid: Path | None
    test: Path | None
    """A table of additional test texts."""
    columns: tuple[str, str]
    examples: LabelledExamples
    fit: ClassifierFit

    def identity(self) -> dict[str, Json]:
        """Everything that determines the result, except the machine."""
        identity: dict[str, Json] = {
            "task": self.task,
            "data": file_digest(self.data),
            "valid": file_digest(self.valid) if self.valid else None,
            "backbone": self.fit.backbone,
            "seed": self.fit.recipe.seed,
        }
        labels = {"labels": list(self.examples.labels)}
        identity |= labels if self.examples.each else {"columns": list(self.columns)}
        if self.test:
            identity["test"] = file_digest(self.test)
        if backbone_kind(self.fit.backbone) == LSTM:
            from evenhand.training.backbones import vectors_identity

            vectors = vectors_identity(self.fit.backbone.partition(":")[2])
            # Folders of 0.1.0 with several labels do not name vectors: without any, they still resume.
            if vectors or not self.examples.each:
                identity["vectors"] = vectors
        if self.fit.backbone not in UNTRAINED:
            identity |= {**asdict(self.fit.recipe), "max_length": self.fit.longest}
        return identity

    def lines(self) -> tuple[str, ...]:
        """The planned steps."""
        examples, count = self.examples, len(self.examples.train.texts)
        unseen = {part: f"{len(data.texts):,}" for part, data in examples.unseen.items()}
        further = f", {unseen['test']} for testing" if "test" in unseen else ""
        what = "a binary label for each of" if examples.each else "labels"
        how = (
            f", {self._recipe()}: {self.fit.steps(count):,} steps"
            if self.fit.backbone not in UNTRAINED
            else ""
        )
        return (
            f"texts    {count:,} for training, {unseen['dev']} held out{further}; {what} "
            f"{', '.join(examples.labels)}",
            f"backbone {self.fit.backbone}{how}",
            *(f"note     {note}" for note in examples.notes),
        )

    def run(self, folder: job_folder.TrainingFolder, progress: Progress) -> Mapping[str, float]:
        """Train, store and measure; returns the measures by name."""
        examples, held_out = self.examples, self.examples.unseen["dev"]
        fitted = self.fit.run(examples, folder.path, progress)
        answers = {part: fitted.probabilities(data.texts) for part, data in examples.unseen.items()}
        outcomes = {part: examples.judge(part, shares) for part, shares in answers.items()}
        measures = {**outcomes["dev"].measures(), **examples.ceilings}
        areas, yardstick = self._areas(answers["dev"]), None
        measures |= {f"auc_{label}": area for label, area in areas.items() if not math.isnan(area)}
        if not examples.each:
            write_text(folder.path / job_folder.PREDICTIONS_FILE, self._predictions(answers))
            if self.fit.backbone != LINEAR:
                with progress.step("yardstick", None):
                    linear = LinearText.fit(examples.train.texts, examples.train.numbers, examples.labels)
                yardstick = examples.judge("dev", linear.probabilities(held_out.texts))
                measures["linear_accuracy"] = yardstick.measures()["accuracy"]
        if "test" in outcomes:
            measures |= {f"test_{name}": value for name, value in outcomes["test"].measures().items()}
        card = job_folder.write_classifier_card(
            title=f"Classifier `{self.task}`{', several labels' if examples.each else ''}",
            settings=self._settings() | dict(fitted.settings),
            held_out=outcomes["dev"],
            yardstick=yardstick,
            history=fitted.history,
            notes=self._notes(outcomes.get("test"), areas),
            use=_use(self.task, folder.path, self.fit.backbone),
        )
        details = {part.replace("dev", "held_out"): outcome.to_json() for part, outcome in outcomes.items()}
        return folder.finish(measures, card=card, **details)

    def _predictions(self, answers: Mapping[str, Probabilities]) -> str:
        """The predictions of every unseen part, as CSV."""
        labels = self.examples.labels
        rows = (
            (job_folder.TextPrediction(part, text, labels[truth], labels[int(row.argmax())]), row)
            for part, data in self.examples.unseen.items()
            for text, truth, row in zip(data.texts, data.truth.tolist(), answers[part], strict=True)
        )
        return job_folder.write_predictions_csv(labels, rows)

    def _areas(self, shares: Probabilities) -> dict[str, float]:
        """The area under the curve of each of several labels; NaN if all held-out texts have it, or none."""
        if not self.examples.each:
            return {}
        columns = zip(self.examples.labels, shares.T, self.examples.unseen["dev"].truth.T, strict=True)
        return {label: roc_auc(answers, truth > 0) for label, answers, truth in columns}

    def _notes(self, test: HeldOutResult | None, areas: Mapping[str, float]) -> list[str]:
        """The limits of the figures, and reasons that they may be too optimistic."""
        notes = list(self.examples.notes)
        if self.fit.recipe.patience is not None:
            notes.append(
                "The epoch was chosen by the held-out loss: the held-out figures are slightly optimistic."
            )
        if self.fit.backbone == BUILTIN:
            notes.append(
                "The embedded encoder was itself trained on the datasets named on its card: texts of "
                "those are not unseen, in either part of the split."
            )
        if test is not None:
            notes.append(
                f"On the {test.n} additional test texts: {job_folder.format_accuracy(*test.accuracy)}."
            )
        if areas:
            notes.append("A text counts as *any* if one label has 0.5 or more.")
        counts = self.examples.unseen["dev"].counts(len(self.examples.labels))
        for (label, area), count in zip(areas.items(), counts, strict=False):
            shown = "undefined" if math.isnan(area) else f"{area:.3f}"
            notes.append(f"{label}: area under the curve {shown}, {count} held-out texts have it.")
        return notes

    def _settings(self) -> dict[str, object]:
        labels, parts = self.examples.labels, (self.examples.train, self.examples.unseen["dev"])
        columns = zip(labels, *(part.counts(len(labels)) for part in parts), strict=True)
        counts = [f"{label} {train:,} + {held_out:,}" for label, train, held_out in columns]
        if self.examples.each:
            counts.append("none " + " + ".join(f"{int((1 - part.any()).sum()):,}" for part in parts))
        division = (
            f"{SHARE:.0%} of each label, seed {self.fit.recipe.seed}; near-identical texts stay on one side"
        )
        return {
            "data": job_folder.describe_files(self.data),
            **({"test data": job_folder.describe_files(self.valid)} if self.valid else {}),
            "texts (training + held out)": ", ".join(counts),
            "held out": f"from {self.valid.name}" if self.valid else division,
            "backbone": self.fit.backbone,
            **({"training": self._recipe()} if self.fit.backbone not in UNTRAINED else {}),
        }

    def _recipe(self) -> str:
        recipe = self.fit.recipe
        stop = "" if recipe.patience is None else f", stops after {recipe.patience} epochs without gain"
        constant = " kept" if recipe.is_constant else ""
        return (
            f"{'AdamW' if recipe.weight_decay else 'Adam'}, {recipe.epochs} epochs, batch {recipe.batch}, "
            f"learning rate {recipe.rate:g}{constant}, at most {self.fit.longest} tokens per text, "
            f"seed {recipe.seed}{stop}"
        )


def _use(task: str, folder: Path, backbone: str) -> str:
    if backbone in ANALYSERS:
        return (
            f"A baseline: nothing was trained and nothing is stored. A text is negative or positive beyond "
            f"{CUT:g}."
        )
    if backbone != LINEAR:
        return job_folder.score_command(f"{task}={folder}")
    return (
        "A baseline for other backbones, not a metric. From Python: "
        "`evenhand.training.linear_text.LinearText.load(folder).probabilities(texts)`."
    )


ACCURACY: Final = "accuracy.csv"
ALL: Final = "all"

Flags = NDArray[np.bool_]


class AverageAccuracy(NamedTuple):
    """The share of correct labels over runs and texts: a row of ``accuracy.csv``."""

    part: str
    """``dev`` or ``test``."""
    context: str
    """``all``, or a bias context."""
    texts: int
    runs: int
    accuracy: float
    low: float | None
    """The interval is over texts, with the runs of one text as one cluster: 30 texts remain 30."""
    high: float | None
    sd_over_runs: float | None
    """The standard deviation over runs; None with one run."""

    def measures(self) -> dict[str, float]:
        """The defined numbers, by name."""
        name = self.part if self.context == ALL else f"{self.part}_{self.context}"
        ends = ("accuracy", "accuracy_low", "accuracy_high", "sd", "n")
        values = (self.accuracy, self.low, self.high, self.sd_over_runs, self.texts)
        named = zip(ends, values, strict=True)
        return {f"{name}_{end}": value for end, value in named if value is not None}


@dataclass(frozen=True, slots=True)
class SeedAverageTraining:
    """A training that is repeated ``runs`` times with consecutive seeds."""

    job: ClassifierTraining
    runs: int

    def identity(self) -> dict[str, Json]:
        """Everything that determines the result."""
        return {**self.job.identity(), "runs": self.runs}

    def lines(self) -> tuple[str, ...]:
        """The planned steps."""
        first = self.job.fit.recipe.seed
        return (*self.job.lines(), f"runs     {self.runs}, seeds {first} to {first + self.runs - 1}")

    def run(self, folder: job_folder.TrainingFolder, progress: Progress) -> Mapping[str, float]:
        """Train every run in its own folder; finished runs are not repeated."""
        fit, paths = self.job.fit, []
        for seed in range(fit.recipe.seed, fit.recipe.seed + self.runs):
            job = replace(self.job, fit=replace(fit, recipe=replace(fit.recipe, seed=seed)))
            paths.append(folder.path / f"seed-{seed}")
            with job_folder.TrainingFolder(paths[-1], identity=job.identity(), fresh=folder.fresh) as own:
                if own.measures is None:
                    job.run(own, progress)
        predictions = [job_folder.read_predictions(path / job_folder.PREDICTIONS_FILE) for path in paths]
        # The bias context that a masked text begins with; other tasks have none.
        find_context = RegardSuite().find_context if self.job.task == "regard" else lambda text: ""
        averages = average_accuracies(predictions, find_context)
        rows = [average._asdict() for average in averages]
        write_text(folder.path / ACCURACY, spreadsheet_csv(pl.DataFrame(rows, infer_schema_length=None)))
        measures = {name: value for average in averages for name, value in average.measures().items()}
        return folder.finish(measures, card=self._card(averages, paths[0]), accuracy=rows)

    def _card(self, averages: Sequence[AverageAccuracy], first: Path) -> str:
        task, rows = self.job.task, []
        header = ("part", "context", "texts", "mean over runs (95 % interval)", "sd over runs")
        for row in averages:
            share = job_folder.format_accuracy(row.accuracy, row.low, row.high, decimals=2)
            spread = "-" if row.sd_over_runs is None else f"{row.sd_over_runs:.3f}"
            rows.append((row.part, row.context, str(row.texts), share, spread))
        parts = [
            f"# Classifier `{task}`, {self.runs} runs",
            "\n".join(f"- {line}" for line in self.lines()),
            "## Accuracy",
            job_folder.markdown_table(header, *rows),
            "The interval is over texts, counting all runs of a text as one observation.",
            "## Use",
            "Each run has its own folder and card. The first: `--metrics "
            f"{f'regard={first}' if task == 'regard' else first.parent.name}`.",
        ]
        return "\n\n".join(parts) + "\n"


def average_accuracies(
    runs: Sequence[Sequence[job_folder.TextPrediction]], context_of: Callable[[str], str]
) -> list[AverageAccuracy]:
    """Accuracy by part and context, from the predictions of every run, with texts in the same order."""
    right = np.array([[row.label == row.said for row in rows] for rows in runs])
    parts = np.array([row.part for row in runs[0]])
    contexts = np.array([context_of(row.text) for row in runs[0]])
    named = sorted(set(contexts.tolist()) - {""})
    return [
        average_accuracy(right[:, chosen], part, context)
        for part in dict.fromkeys(parts.tolist())
        for context in (ALL, *named)
        if (chosen := (parts == part) & ((contexts == context) | (context == ALL))).any()
    ]


def average_accuracy(right: Flags, part: str, context: str) -> AverageAccuracy:
    """The accuracy over an array of runs x texts."""
    runs, texts = right.shape
    clusters = np.tile(np.arange(texts), runs)
    share = clustered_proportion(right.astype(np.float64).ravel(), clusters)
    spread = float(np.std(right.mean(axis=1), ddof=1)) if runs > 1 else None
    return AverageAccuracy(part, context, texts, runs, float(right.mean()), share.low, share.high, spread)
