"""``train``: classifiers, emotion lexicons and word vectors from your own data, each with a card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeVar, Unpack

from evenhand.audits.run_setup import SILENT_PROGRESS, RunPlan
from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.core.files import ASSETS_FOLDER
from evenhand.core.options import checks_options, split_names
from evenhand.core.protocols import Progress
from evenhand.core.records import Execution
from evenhand.core.registry import require_library
from evenhand.store.run_folder import default_folder
from evenhand.training import classifier_job
from evenhand.training.job_folder import TrainingFolder
from evenhand.training.labelled_table import read_examples, read_multilabel, resolve_training_data
from evenhand.training.options import TASKS, TrainOptions, find_preset

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

WORDS: Final = ("norms", "embeddings")
CALIBRATOR: Final = "calibrator"
MAX_LENGTH: Final = 128
_NEURAL: Final = ("epochs", "batch", "learning_rate", "max_length", "patience")
_CLASSIFIERS: Final = ("text", "label", "valid", "test", "runs", "preset")
_STUDIES: Final = ("consensus", "agreement")
_STEERING: Final = ("model", "sides")
_UNUSED: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(TASKS, _STEERING),
    **dict.fromkeys(classifier_job.UNTRAINED, _NEURAL),
    "norms": (*_STEERING, *_STUDIES, *_CLASSIFIERS, *_NEURAL),
    "embeddings": (*_STEERING, *_STUDIES, "backbone", *_CLASSIFIERS, *_NEURAL[1:]),
    CALIBRATOR: (*_STUDIES, "backbone", "valid", "test", "runs", "preset", "batch", "patience"),
}
"""Options that would be ignored; they are rejected instead."""


Config = TypeVar("Config", bound="DataclassInstance")


class TrainingProcedure(Protocol):
    """A training procedure that is ready to start."""

    def identity(self) -> dict[str, Json]:
        """Everything that determines the result."""

    def lines(self) -> tuple[str, ...]:
        """The planned steps."""

    def run(self, folder: TrainingFolder, progress: Progress) -> Mapping[str, float]:
        """Train, store and measure; returns the measures by name."""


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """The result of a training job."""

    task: str
    folder: Path
    """Weights or words, ``card.md`` and ``training.json``."""
    measures: Mapping[str, float]
    """Held-out measures: ``accuracy`` (with ``_low``, ``_high``), ``macro_f1``, ``calibration_error``,
    ``majority``, ``n``, the same of additional test texts with the prefix ``test_``; over several runs
    ``dev_accuracy`` and ``test_accuracy`` with ``_low``, ``_high``, ``_sd``, and by context; for norms
    ``r_VARIABLE``; for embeddings ``analogies`` and ``similarity``."""
    was_done: bool = False
    """Whether an earlier call finished this folder, so that nothing was trained."""

    @property
    def card(self) -> str:
        """The card, in Markdown."""
        return (self.folder / "card.md").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class TrainingJob:
    """A training job with its data read and checked."""

    task: str
    job: TrainingProcedure
    folder: Path
    fresh: bool
    notes: tuple[str, ...] = ()
    """Notes on data from a study."""

    def plan(self) -> RunPlan:
        """The plan, before anything is done."""
        lines = (*self.notes, *self.job.lines(), f"folder   {self.folder}")
        return RunPlan(f"train {self.task}", lines)

    def run(self, progress: Progress = SILENT_PROGRESS) -> TrainingResult:
        """Train, or resume an interrupted training; a finished one is not repeated."""
        with TrainingFolder(self.folder, identity=self.job.identity(), fresh=self.fresh) as folder:
            earlier = folder.measures
            measures = self.job.run(folder, progress) if earlier is None else earlier
        return TrainingResult(self.task, self.folder, dict(measures), was_done=earlier is not None)


@checks_options
def train(
    task: str,
    data: Path | str | Sequence[Path | str] = (),
    *,
    progress: Progress = SILENT_PROGRESS,
    **options: Unpack[TrainOptions],
) -> TrainingResult:
    """Train a classifier, lexicon or vector file; returns its folder and held-out measures.

    The arguments are those of ``evenhand train``. ``data`` is a table of texts and labels (regard, toxicity,
    emotion, ideology, calibrator), tables of rated words (norms), or files of running text (embeddings).
    ``study`` is a study or its export, used instead: the labels that most people chose.
    """
    return prepare(task, data, **options).run(progress)


@checks_options
def prepare(
    task: str, data: Path | str | Sequence[Path | str] = (), **options: Unpack[TrainOptions]
) -> TrainingJob:
    """A training job with its data read and checked, so that ``plan`` can be shown before ``run``."""
    paths = tuple(map(Path, [data] if isinstance(data, Path | str) else data))
    if task not in _UNUSED or task in classifier_job.UNTRAINED:
        raise InputError(
            f"there is no training task {task!r}",
            expected=", ".join((*TASKS, *WORDS, CALIBRATOR)),
            fix="name one of these",
        )
    _check_options(task, options)
    paths, notes = resolve_training_data(task, paths, options)
    if task == "emotion" and len(paths) == 1 and paths[0].is_dir():
        from evenhand.training.semeval import check_unseen, prepare_tables

        # The affective paper's own tables from a folder of published files; dev is then part of training.
        tables = prepare_tables(paths[0])
        if options["valid"] is not None:
            check_unseen(Path(options["valid"]), tables.train)
        paths, options = (tables.train,), {**options, "valid": options["valid"] or tables.valid}
    check_files(*paths)
    if task in WORDS:
        job = _word_job(task, paths, options)
    elif len(paths) == 1:
        job = (_calibrator_job if task == CALIBRATOR else _classifier_job)(task, paths[0], options)
    else:
        is_steered = task == CALIBRATOR
        further = " of texts and labels" if is_steered else ", and more for testing with --valid and --test"
        raise InputError(
            f"{len(paths)} files to train {'a ' if is_steered else ''}{task} on",
            expected=f"one table{further}",
            fix="join the files",
        )
    out = options["out"]
    name = f"{task}-{Path(options.get('backbone') or '').name or 'default'}"
    folder = Path(out) if out else default_folder("train", name, job.identity())
    return TrainingJob(task, job, folder, options["fresh"], notes)


def ignored_options(task: str) -> tuple[str, ...]:
    """The options of ``train`` that do not apply to a task and are rejected; none for an unknown task."""
    if task not in (*TASKS, *WORDS, CALIBRATOR):
        return ()
    return _UNUSED[task] if task in TASKS else ("study", *_UNUSED[task])


def _calibrator_job(task: str, data: Path, options: TrainOptions) -> TrainingProcedure:
    require_library("torch")
    from evenhand.training.calibrator_job import CalibratorConfig, CalibratorTraining, read_two_labels

    columns, sides = (options["text"] or "text", options["label"] or "label"), split_names(options["sides"])
    examples = read_two_labels(data, *columns, sides=sides or ())
    first, second = sides or sorted(set(examples.labels))
    recipe = _adjust(CalibratorConfig(), options, longest="max_length")
    execution = Execution(device=options["device"], offline=options["offline"])
    model = options["model"] or "builtin"
    return CalibratorTraining(model, data, columns, examples, (first, second), recipe, execution)


def _classifier_job(task: str, data: Path, options: TrainOptions) -> TrainingProcedure:
    preset = find_preset(name, task) if (name := options["preset"]) else None
    backbone = options["backbone"] or (preset.backbone if preset else default_backbone())
    classifier_job.check_backbone(backbone)
    valid, test = (Path(given) if given else None for given in (options["valid"], options["test"]))
    recipe = _adjust(preset.recipe if preset else classifier_job.default_recipe(backbone), options)
    longest = options["max_length"] or (preset.longest if preset else MAX_LENGTH)
    given, seed = options["label"], options["seed"]
    labels = tuple(map(str.strip, given.split(","))) if given else preset.labels if preset else ()
    text, label = options["text"] or (preset.text if preset and len(labels) > 1 else "text"), given or "label"
    for name in ("test", "runs") if len(labels) > 1 else ():
        if options.get(name) is not None:
            raise InputError(f"--{name} does not apply to several label columns", fix=f"remove --{name}")
    check_files(valid, test)
    if len(labels) > 1:
        examples = read_multilabel(data, task, labels, valid=valid, text=text, seed=seed)
    else:
        others = {"dev": valid, "test": test}
        examples = read_examples(data, TASKS[task], text, label, others=others, seed=seed)
    device, offline = options["device"], options["offline"]
    fit = classifier_job.ClassifierFit(
        task, backbone, examples.labels, recipe, longest, device, offline, examples.each
    )
    job = classifier_job.ClassifierTraining(task, data, valid, test, (text, label), examples, fit)
    runs = options["runs"] or (preset.runs if preset else 1)
    return classifier_job.SeedAverageTraining(job, runs) if runs > 1 else job


def _adjust(recipe: Config, options: TrainOptions, **others: str) -> Config:
    """The recipe overridden by the given options; ``others`` map further fields to their options."""
    names = {"epochs": "epochs", "batch": "batch", "rate": "learning_rate", "patience": "patience", **others}
    changes = {field: given for field, name in names.items() if (given := options.get(name))}
    return replace(recipe, **changes, seed=options["seed"])


def _word_job(task: str, paths: tuple[Path, ...], options: TrainOptions) -> TrainingProcedure:
    require_library("torch")
    from evenhand.training import embeddings, norm_prediction

    if task == "embeddings":
        return embeddings.WordVectorTraining(paths, _adjust(embeddings.WordVectorConfig(), options))
    vectors = Path(options["backbone"]) if options["backbone"] else None
    check_files(vectors)
    recipe = norm_prediction.NormNetworkConfig(seed=options["seed"])
    return norm_prediction.NormTraining(paths, vectors, recipe)


def check_files(*paths: Path | None) -> None:
    """Raise an error that names the first missing file."""
    for path in filter(None, paths):
        if not path.is_file():
            raise InputError(f"there is no file {path}", expected="existing files", fix="check the path")


def default_backbone() -> str:
    """``builtin`` if this installation has the embedded encoder, else ``builtin:masked``."""
    return "builtin" if (ASSETS_FOLDER / "classifiers" / "model.safetensors").is_file() else "builtin:masked"


def _check_options(task: str, options: TrainOptions) -> None:
    """Raise an error for an option that this training would ignore."""
    backbone = options["backbone"]
    for kind in (task, backbone) if backbone in classifier_job.UNTRAINED else (task,):
        for name in _UNUSED[kind]:
            if options.get(name) is not None:
                flag = "--" + name.replace("_", "-")
                raise InputError(f"{flag} does not apply to {kind}", fix=f"remove {flag}")
