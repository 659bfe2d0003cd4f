"""What a training said of its unseen texts: the file ``predictions.csv`` of its folder."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from evenhand.store.files import read_cells
from evenhand.store.spreadsheets import guarded, unguarded

FILE: Final = "predictions.csv"


class Prediction(NamedTuple):
    """A text of a part, its label, and the label that was said."""

    part: str
    text: str
    label: str
    said: str


def predictions_csv(labels: Sequence[str], rows: Iterable[tuple[Prediction, Sequence[float]]]) -> str:
    """The predictions with the probability of each label, for a person's spreadsheet as much as for us."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow((*Prediction._fields, *(f"p_{label}" for label in labels)))
    for prediction, shares in rows:
        writer.writerow((*map(guarded, prediction), *(f"{share:.4f}" for share in shares)))
    return buffer.getvalue()


def read_predictions(path: Path) -> list[Prediction]:
    """The predictions of a file that ``predictions_csv`` made."""
    return [Prediction(*map(unguarded, row)) for row in read_cells(path, Prediction._fields)]
