"""The folder of a training job: its record and lock, the predictions, and the card of the result."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple, cast

import polars as pl

from evenhand.core.digests import Json, file_digest
from evenhand.core.errors import RunFolderError
from evenhand.core.regular_files import read_text
from evenhand.store.atomic_writes import storage_errors, write_text
from evenhand.store.run_folder import HOLDER, LOCK, FolderLock, foreign_names
from evenhand.store.table_files import read_cells, spreadsheet_csv, unguard_cell
from evenhand.training.options import EpochLosses
from evenhand.training.test_measures import HeldOutResult

RECORD: Final = "training.json"
CHECKPOINT: Final = "checkpoint.safetensors"
"""The file with the state between epochs, until training is finished."""
PREDICTIONS_FILE: Final = "predictions.csv"
"""The predictions on all unseen texts: ``part, text, label, said`` and one probability per label."""


class TrainingFolder(ExitStack):
    """A locked folder for one training job. Use as a context manager; a kill releases the lock.

    ``training.json`` holds the identity of the job and, once finished, its measures. The same
    job resumes in its folder; a different one is rejected.
    """

    def __init__(self, path: Path, *, identity: Mapping[str, Json], fresh: bool = False) -> None:
        super().__init__()
        self.path, self.checkpoint, self.fresh = path, path / CHECKPOINT, fresh
        self._identity = cast("dict[str, Json]", json.loads(json.dumps(identity)))
        with storage_errors(path):
            path.mkdir(parents=True, exist_ok=True)
        inside = foreign_names(path)
        if inside and RECORD not in inside:
            raise RunFolderError(
                f"{path} is not empty and not a training folder",
                expected="a new or empty folder, or the folder of an earlier training",
                fix="choose another folder with --out",
            )
        lock = FolderLock(path)
        lock.acquire("training in")
        try:
            if fresh:
                self._empty()
            self.measures: Mapping[str, float] | None = self._resume()
        except BaseException:
            lock.release()
            raise
        self.callback(lock.release, remove=True)

    def finish(self, measures: Mapping[str, float], *, card: str, **details: Json) -> Mapping[str, float]:
        """Write the card, mark the job as finished and delete the checkpoint. Returns the measures."""
        write_text(self.path / "card.md", card)
        self._write({"identity": self._identity, "measures": dict(measures), **details})
        self.checkpoint.unlink(missing_ok=True)
        return measures

    def _resume(self) -> Mapping[str, float] | None:
        path = self.path / RECORD
        if not path.exists():
            self._write({"identity": self._identity})
            return None
        record = json.loads(read_text(path))
        theirs = record["identity"]
        differing = sorted(
            name for name in {*theirs, *self._identity} if theirs.get(name) != self._identity.get(name)
        )
        if differing:
            raise RunFolderError(
                f"{self.path} belongs to another training: "
                + "; ".join(f"{name} is {theirs.get(name)!r} there" for name in differing),
                expected="the same data and settings, or another folder",
                fix="choose another folder with --out, or start again with --fresh",
            )
        measures = cast("Mapping[str, float] | None", record.get("measures"))
        if measures is not None:
            # Killed in `finish` between the two writes: training is done, but its checkpoint still exists.
            self.checkpoint.unlink(missing_ok=True)
        return measures

    def _write(self, record: Mapping[str, object]) -> None:
        write_text(self.path / RECORD, json.dumps(record, indent=1, ensure_ascii=False) + "\n")

    def _empty(self) -> None:
        # The record first, so that no training whose weights are gone is marked as finished.
        self._write({"identity": self._identity})
        # Of folders, only what a killed ensemble would resume from: others may be somebody else's.
        for entry in (*self.path.iterdir(), *self.path.glob(f"member-*/{CHECKPOINT}")):
            if entry.is_file() and entry.name not in (LOCK, HOLDER, RECORD):
                entry.unlink()


class TextPrediction(NamedTuple):
    """A text of a part, its label, and the predicted label."""

    part: str
    text: str
    label: str
    said: str


def write_predictions_csv(
    labels: Sequence[str], rows: Iterable[tuple[TextPrediction, Sequence[float]]]
) -> str:
    """Write the predictions with the probability of each label, in a spreadsheet-safe form."""
    shares = dict.fromkeys((f"p_{label}" for label in labels), pl.Float64())
    columns = dict.fromkeys(TextPrediction._fields, pl.String()) | shares
    cells = [(*prediction, *map(float, shares)) for prediction, shares in rows]
    return spreadsheet_csv(pl.DataFrame(cells, schema=columns, orient="row"), decimals=4)


def read_predictions(path: Path) -> list[TextPrediction]:
    """The predictions in a file written by ``write_predictions_csv``."""
    return [TextPrediction(*map(unguard_cell, row)) for row in read_cells(path, TextPrediction._fields)]


_LIMITS = (
    "The figures hold for texts like these: results on other sources, lengths and years can be far worse. "
    "Texts of one author or source are not independent, so the interval may be too narrow. Before comparing "
    "groups, check how the classifier reacts when only the group is swapped."
)


def write_classifier_card(
    *,
    title: str,
    settings: Mapping[str, object],
    held_out: HeldOutResult,
    notes: Sequence[str],
    use: str,
    yardstick: HeldOutResult | None = None,
    history: Sequence[EpochLosses] = (),
) -> str:
    """The card of a classifier, in Markdown."""
    figures = [
        (f"{held_out.n:,} texts", ""),
        ("accuracy, 95 % interval (Wilson)", format_accuracy(*held_out.accuracy)),
        ("macro-F1", f"{held_out.macro_f1:.3f}"),
        ("expected calibration error (15 bins)", f"{held_out.calibration_error:.3f}"),
        (f"always predicting {held_out.majority_label}", f"{held_out.majority:.3f}"),
    ]
    if yardstick is not None:
        figures.append(("baseline: linear, hashed word n-grams", format_accuracy(*yardstick.accuracy)))
    classes, confusion = [], []
    for (label, *shares, count), counts in zip(held_out.classes, held_out.confusion, strict=True):
        cells = ("-" if share is None else f"{share:.3f}" for share in shares)
        classes.append((label, *cells, f"{count:,}"))
        confusion.append((label, *map("{:,}".format, counts)))
    results = [
        markdown_table(*figures),
        markdown_table(("label", "precision", "recall", "F1", "texts"), *classes),
        "Texts by true label (rows) and predicted label (columns):",
        markdown_table(("", *held_out.labels), *confusion),
    ]
    if history:
        epochs = [
            (str(n), f"{epoch.loss:.4f}", f"{epoch.held_out_loss:.4f}") for n, epoch in enumerate(history, 1)
        ]
        results.append(markdown_table(("epoch", "training loss", "held-out loss"), *epochs))
    return write_card(title=title, settings=settings, results=results, notes=(*notes, _LIMITS), use=use)


def write_card(
    *, title: str, settings: Mapping[str, object], results: Sequence[str], notes: Sequence[str], use: str
) -> str:
    """The card of any trained artefact, in Markdown."""
    parts = [
        f"# {title}",
        markdown_table(("", ""), *((name, str(value)) for name, value in settings.items())),
        "## Held-out results",
        *results,
        "## Limits",
        "\n".join(f"- {note}" for note in notes),
        "## Use",
        use,
    ]
    return "\n\n".join(parts) + "\n"


def describe_files(*paths: Path) -> str:
    """The files' names and digests, for a card."""
    return "; ".join(f"{path.name}, BLAKE2b-128 {file_digest(path)}" for path in paths)


def describe_settings(settings: Mapping[str, object]) -> str:
    """The settings as a comma-separated list, nested ones last."""
    plain = [f"{name} {value}" for name, value in settings.items() if not isinstance(value, dict)]
    inner = [describe_settings(value) for value in settings.values() if isinstance(value, dict)]
    return ", ".join([*plain, *inner])


def score_command(metric: str) -> str:
    """The console command that scores a file with a trained metric."""
    return f"```console\nevenhand score FILE --group AXIS=COLUMN --metrics {metric}\n```"


def markdown_table(header: Sequence[str], *rows: Sequence[str]) -> str:
    """A Markdown table; pipes in cells are escaped, so that a file name cannot break it."""
    cells = [[" ".join(cell.replace("|", "\\|").split()) for cell in row] for row in rows]
    lines = [header, ["---"] * len(header), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def format_accuracy(value: float, low: float | None, high: float | None, *, decimals: int = 3) -> str:
    """An accuracy with its interval, whose bounds have ``decimals``; without an interval if it has none."""
    spread = "" if low is None else f" ({low:.{decimals}f} to {high:.{decimals}f})"
    return f"{value:.3f}{spread}"
