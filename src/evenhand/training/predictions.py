"""What a training said of its unseen texts: the file ``predictions.csv`` of its folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import polars as pl

from evenhand.store.files import read_cells
from evenhand.store.spreadsheets import spreadsheet_csv, unguarded

FILE: Final = "predictions.csv"


class Prediction(NamedTuple):
    """A text of a part, its label, and the label that was said."""

    part: str
    text: str
    label: str
    said: str


def predictions_csv(labels: Sequence[str], rows: Iterable[tuple[Prediction, Sequence[float]]]) -> str:
    """The predictions with the probability of each label, for a person's spreadsheet as much as for us."""
    columns = dict.fromkeys(Prediction._fields, pl.String()) | {
        f"p_{label}": pl.Float64() for label in labels
    }
    cells = [(*prediction, *map(float, shares)) for prediction, shares in rows]
    return spreadsheet_csv(pl.DataFrame(cells, schema=columns, orient="row"), decimals=4)


def read_predictions(path: Path) -> list[Prediction]:
    """The predictions of a file that ``predictions_csv`` made."""
    return [Prediction(*map(unguarded, row)) for row in read_cells(path, Prediction._fields)]
