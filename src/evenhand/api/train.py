"""``train``: classifiers, emotion lexicons and word vectors from your own data, each with a card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, TypedDict, Unpack

from evenhand.api.parts import SILENT, Plan
from evenhand.core.assets import ROOT
from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.core.protocols import Progress
from evenhand.core.registry import need
from evenhand.store.folder import default_folder
from evenhand.training.classifier_job import LINEAR, ClassifierJob, read_examples
from evenhand.training.job_folder import JobFolder
from evenhand.training.recipe import Recipe
from evenhand.training.tasks import TASKS, task_of
from evenhand.training.word_jobs import EmbeddingsJob, NormsJob, check_files

WORDS: Final = ("norms", "embeddings")
MAX_LENGTH: Final = 128
RATES: Final = {"builtin": 1e-4, "builtin:masked": 2e-4}
"""Learning rates that suit the small embedded networks; other backbones have 2e-5, usual for BERT's size."""

_DEFAULT: Final = Recipe()
_NEURAL: Final = ("epochs", "batch", "learning_rate", "max_length", "patience")
_UNUSED: Final = {
    LINEAR: _NEURAL,
    "norms": ("text", "label", "valid", *_NEURAL),
    "embeddings": ("backbone", "text", "label", "valid", "batch", "learning_rate", "max_length", "patience"),
}
"""Options that would be ignored; they are refused instead."""


class TrainOptions(TypedDict, total=False):
    """The options of ``train``; None is the default."""

    backbone: str | None
    out: Path | str | None
    text: str | None
    label: str | None
    valid: Path | str | None
    epochs: int | None
    batch: int | None
    learning_rate: float | None
    max_length: int | None
    patience: int | None
    seed: int
    device: str | None
    offline: bool
    fresh: bool


class Job(Protocol):
    """A training that is ready to start."""

    def identity(self) -> dict[str, Json]:
        """What decides the result."""
        ...

    def lines(self) -> tuple[str, ...]:
        """What will be done."""
        ...

    def run(self, folder: JobFolder, progress: Progress) -> Mapping[str, float]:
        """Do it; the measures by name."""
        ...


@dataclass(frozen=True, slots=True)
class Trained:
    """What a training left behind."""

    task: str
    folder: Path
    """Weights or words, ``card.md`` and ``training.json``."""
    measures: Mapping[str, float]
    """Held-out measures: ``accuracy`` (with ``_low``, ``_high``), ``macro_f1``, ``calibration_error``,
    ``majority``, ``n``; for norms ``r_VARIABLE``; for embeddings ``analogies`` and ``similarity``."""

    @property
    def card(self) -> str:
        """The card in Markdown."""
        return (self.folder / "card.md").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Training:
    """A training with everything read and checked."""

    task: str
    job: Job
    folder: Path
    fresh: bool

    def plan(self) -> Plan:
        """What will be done, before it is done."""
        return Plan(f"train {self.task}", (*self.job.lines(), f"folder   {self.folder}"), self.folder)

    def run(self, progress: Progress = SILENT) -> Trained:
        """Train, or go on with a training that was stopped; a finished one is not done again."""
        with JobFolder(self.folder, identity=self.job.identity(), fresh=self.fresh) as folder:
            measures = folder.measures
            if measures is None:
                measures = self.job.run(folder, progress)
        return Trained(self.task, self.folder, dict(measures))


def train(
    task: str,
    data: Path | str | Sequence[Path | str],
    *,
    progress: Progress = SILENT,
    **options: Unpack[TrainOptions],
) -> Trained:
    """The folder of a trained classifier, lexicon or vector file, and its held-out measures.

    Arguments are those of ``evenhand train``. ``data`` is a table of texts and labels (regard, toxicity,
    emotion, ideology), tables of rated words (norms), or files of running text (embeddings).
    """
    return prepare(task, data, **options).run(progress)


def prepare(task: str, data: Path | str | Sequence[Path | str], **options: Unpack[TrainOptions]) -> Training:
    """A training with everything read and checked, so that ``plan`` can be shown before ``run``."""
    paths = tuple(map(Path, [data] if isinstance(data, Path | str) else data))
    if task not in (*TASKS, *WORDS):
        raise InputError(
            f"there is nothing named {task!r} to train",
            accepted=", ".join((*TASKS, *WORDS)),
            todo="name one of these",
        )
    _check_options(task, options)
    check_files(paths)
    job = _word_job(task, paths, options) if task in WORDS else _classifier_job(task, paths, options)
    out = options.get("out")
    name = f"{task}-{Path(options.get('backbone') or '').name or 'default'}"
    folder = Path(out) if out else default_folder("train", name, job.identity())
    return Training(task, job, folder, options.get("fresh", False))


def _classifier_job(task: str, paths: Sequence[Path], options: TrainOptions) -> ClassifierJob:
    if len(paths) != 1:
        raise InputError(
            f"{len(paths)} files to train {task} on",
            accepted="one table, and another to test on with --valid",
            todo="join the files",
        )
    backbone = options.get("backbone") or default_backbone()
    given = options.get("valid")
    valid = Path(given) if given else None
    columns = (options.get("text") or "text", options.get("label") or "label")
    seed = options.get("seed", 0)
    examples = read_examples(
        paths[0], task_of(task), valid=valid, text=columns[0], label=columns[1], seed=seed
    )
    for library in () if backbone == LINEAR else ("torch", "tokenizers", "transformers"):
        need(library)
    return ClassifierJob(
        task=task_of(task),
        data=paths[0],
        valid=valid,
        columns=columns,
        examples=examples,
        backbone=backbone,
        recipe=Recipe(
            epochs=options.get("epochs") or _DEFAULT.epochs,
            batch=options.get("batch") or _DEFAULT.batch,
            rate=options.get("learning_rate") or RATES.get(backbone, _DEFAULT.rate),
            patience=options.get("patience"),
            seed=seed,
        ),
        longest=options.get("max_length") or MAX_LENGTH,
        device=options.get("device") or "auto",
        offline=options.get("offline", False),
    )


def _word_job(task: str, paths: tuple[Path, ...], options: TrainOptions) -> Job:
    need("torch" if task == "norms" else "numba")
    if task == "norms":
        from evenhand.training import norms

        backbone = options.get("backbone")
        vectors = Path(backbone) if backbone else None
        check_files([vectors] if vectors else [])
        return NormsJob(paths, vectors, norms.Recipe(seed=options.get("seed", 0)))
    from evenhand.training import embeddings

    epochs = options.get("epochs") or embeddings.Recipe().epochs
    return EmbeddingsJob(paths, embeddings.Recipe(epochs=epochs, seed=options.get("seed", 0)))


def default_backbone() -> str:
    """``builtin`` where this installation has the embedded encoder, else ``builtin:masked``."""
    return "builtin" if (ROOT / "classifiers" / "model.safetensors").is_file() else "builtin:masked"


def _check_options(task: str, options: TrainOptions) -> None:
    """An error for a number out of range, or an option that this training would ignore."""
    kind = LINEAR if options.get("backbone") == LINEAR else task
    for name in _UNUSED.get(kind, ()):
        if options.get(name) is not None:
            flag = "--" + name.replace("_", "-")
            raise InputError(f"{flag} means nothing for {kind}", todo=f"leave {flag} out")
    for name, least in (("epochs", 1), ("batch", 1), ("max_length", 4), ("patience", 1), ("seed", 0)):
        number = options.get(name)
        if isinstance(number, int) and number < least:
            flag = "--" + name.replace("_", "-")
            raise InputError(
                f"{flag} {number}", accepted=f"{least} or more", todo=f"give {flag} a larger number"
            )
    rate = options.get("learning_rate")
    if rate is not None and not 0 < rate <= 1:
        raise InputError(f"--learning-rate {rate}", accepted="above 0 and at most 1", todo="try 2e-5")
