"""The folder a training writes to: whose it is, whether it is finished, one process at a time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, cast

import polars as pl

from evenhand.core.digests import Json
from evenhand.core.errors import RunFolderError
from evenhand.core.regular_files import read_text
from evenhand.store.atomic_writes import storage_errors, write_text
from evenhand.store.run_folder import HOLDER, LOCK, FolderLock, foreign_names
from evenhand.store.table_files import read_cells, spreadsheet_csv, unguard_cell

RECORD: Final = "training.json"
CHECKPOINT: Final = "checkpoint.safetensors"
"""Where the state between epochs is kept until a training is finished."""
PREDICTIONS_FILE: Final = "predictions.csv"
"""What was said of every unseen text: ``part, text, label, said`` and a probability a label."""


class TrainingFolder:
    """A locked folder for one training. Use as a context manager; a kill releases the lock.

    ``training.json`` says what is trained (the identity) and, once finished, what was measured. The same
    training goes on in its folder; another one is refused.
    """

    def __init__(self, path: Path, *, identity: Mapping[str, Json], fresh: bool = False) -> None:
        self.path, self.checkpoint = path, path / CHECKPOINT
        self._identity = cast("dict[str, Json]", json.loads(json.dumps(identity)))
        with storage_errors(path):
            path.mkdir(parents=True, exist_ok=True)
        self._refuse_foreign_folder()
        self._lock = FolderLock(path)
        self._lock.acquire("training in")
        try:
            if fresh:
                self._empty()
            self.measures: Mapping[str, float] | None = self._resume()
        except BaseException:
            self._lock.release()
            raise

    def __enter__(self) -> TrainingFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release(remove=True)

    def finish(self, measures: Mapping[str, float], *, card: str, **details: Json) -> Mapping[str, float]:
        """Write the card and that the training is finished; the checkpoint goes. Returns the measures."""
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
                + "; ".join(f"{name} is {theirs.get(name)!r}" for name in differing),
                expected="the same data and settings, or another folder",
                fix="choose another folder with --out, or start again with --fresh",
            )
        measures = cast("Mapping[str, float] | None", record.get("measures"))
        if measures is not None:
            # Killed in `finish`, between the two: the training is done, its checkpoint is still there.
            self.checkpoint.unlink(missing_ok=True)
        return measures

    def _write(self, record: Mapping[str, object]) -> None:
        write_text(self.path / RECORD, json.dumps(record, indent=1, ensure_ascii=False) + "\n")

    def _refuse_foreign_folder(self) -> None:
        inside = foreign_names(self.path)
        if inside and RECORD not in inside:
            raise RunFolderError(
                f"{self.path} is not empty and no training of ours",
                expected="a new or empty folder, or the folder of an earlier training",
                fix="choose another folder with --out",
            )

    def _empty(self) -> None:
        # First the record, so that no finished training is claimed whose weights are gone.
        self._write({"identity": self._identity})
        # Files alone: a folder somebody put here was not made by a training.
        for entry in self.path.iterdir():
            if entry.is_file() and entry.name not in (LOCK, HOLDER, RECORD):
                entry.unlink()


class TextPrediction(NamedTuple):
    """A text of a part, its label, and the label that was said."""

    part: str
    text: str
    label: str
    said: str


def write_predictions_csv(
    labels: Sequence[str], rows: Iterable[tuple[TextPrediction, Sequence[float]]]
) -> str:
    """The predictions with the probability of each label, for a person's spreadsheet as much as for us."""
    columns = dict.fromkeys(TextPrediction._fields, pl.String()) | {
        f"p_{label}": pl.Float64() for label in labels
    }
    cells = [(*prediction, *map(float, shares)) for prediction, shares in rows]
    return spreadsheet_csv(pl.DataFrame(cells, schema=columns, orient="row"), decimals=4)


def read_predictions(path: Path) -> list[TextPrediction]:
    """The predictions of a file that ``write_predictions_csv`` made."""
    return [TextPrediction(*map(unguard_cell, row)) for row in read_cells(path, TextPrediction._fields)]
