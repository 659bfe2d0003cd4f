"""A classifier whose answers are in a file: predictions made elsewhere, looked up by text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, cast

import numpy as np
import polars as pl

from evenhand.core.digests import digest, file_digest
from evenhand.core.errors import InputError
from evenhand.neural.classifier import Probabilities
from evenhand.store.files import read_table

TEXT: Final = ("text", "sentence")
LABEL: Final = ("prediction", "predicted", "predicted_label", "label")
INTENSITY: Final = ("prediction_intensity", "intensity", "score", "probability")

Synonyms = Mapping[str, Sequence[str]]


class ReplayReader:
    """Predictions from a table: a column for each label, or the predicted label and its intensity.

    Columns are found by name, in any case: ``text`` or ``sentence``; those named as a label or as a name for
    it, which are added up; else
    ``prediction`` (a label, or its number in the order of ours) with ``prediction_intensity`` or ``score``.
    What the table does not say is NaN, also for a text it does not have.
    """

    def __init__(self, path: Path, synonyms: Synonyms) -> None:
        table = read_table(path)
        names = {_plain(name): name for name in reversed(table.columns)}
        text = _first(names, TEXT)
        columns = _columns(names, synonyms)
        said, strength = _first(names, LABEL), _first(names, INTENSITY)
        if text is None or not (columns or (said and strength)):
            raise InputError(
                f"{path} has the columns {', '.join(table.columns)}",
                accepted=f"{' or '.join(TEXT)}; and {', '.join(synonyms)}, or {LABEL[0]} with {INTENSITY[0]}",
                todo="rename the columns, or say what they mean with --label THEIRS=OURS",
            )
        rows = (
            _wide(table, columns, path)
            if columns
            else _labelled(table.select(said or "", strength or ""), synonyms, path)
        )
        self.labels = tuple(columns or _used(table, said or "", synonyms, path))
        found: dict[str, tuple[float, ...]] = {}
        for place, (words, row) in enumerate(zip(table[text], rows, strict=True), start=1):
            answer = tuple(row.get(label, np.nan) for label in self.labels)
            _check_twin(found.setdefault((words or "").strip(), answer), answer, path, place)
        self._found = found
        self.digest = digest([file_digest(path), list(self.labels)])

    def read(self, texts: Sequence[str]) -> Probabilities:
        """One row a text, one column a label; NaN where the file says nothing."""
        nothing = (np.nan,) * len(self.labels)
        rows = [self._found.get(text.strip(), nothing) for text in texts]
        # As the file has them: what was written with eight digits is not cut to seven.
        return cast(Probabilities, np.array(rows, dtype=np.float64).reshape(len(rows), len(self.labels)))


def _columns(names: Mapping[str, str], synonyms: Synonyms) -> dict[str, list[str]]:
    """For each label that has them its columns, as a classifier's labels are told in ours."""
    found = {
        label: [names[name] for name in dict.fromkeys(map(_plain, (label, *others))) if name in names]
        for label, others in synonyms.items()
    }
    return {label: columns for label, columns in found.items() if columns}


def _wide(
    table: pl.DataFrame, columns: Mapping[str, Sequence[str]], path: Path
) -> Iterator[dict[str, float]]:
    for place, row in enumerate(table.iter_rows(named=True), start=1):
        said = {
            label: [_number(row[name], path, place) for name in own if row[name] not in (None, "")]
            for label, own in columns.items()
        }
        yield {label: min(1.0, sum(values)) for label, values in said.items() if values}


def _labelled(table: pl.DataFrame, synonyms: Synonyms, path: Path) -> Iterator[dict[str, float]]:
    for place, (said, strength) in enumerate(table.iter_rows(), start=1):
        yield {_label(said, synonyms, path, place): _number(strength, path, place)}


def _used(table: pl.DataFrame, column: str, synonyms: Synonyms, path: Path) -> list[str]:
    """The labels that occur, and the others up to the last of them: a number stands for a place."""
    used = {_label(said, synonyms, path, 0) for said in table[column].unique().to_list()}
    labels = list(synonyms)
    return labels[: 1 + max(labels.index(label) for label in used)]


def _label(said: str | None, synonyms: Synonyms, path: Path, place: int) -> str:
    given = (said or "").strip().lower().removesuffix(".0")
    labels = list(synonyms)
    if given.isdigit() and int(given) < len(labels):
        return labels[int(given)]
    for label, names in synonyms.items():
        if given == label or given in names:
            return label
    where = f" row {place}" if place else ""
    raise InputError(
        f"{path}{where} predicts {given!r}",
        accepted=", ".join(f"{number} or {label}" for number, label in enumerate(labels)),
        todo="say what it means with --label THEIRS=OURS",
    )


def _number(cell: str | None, path: Path, place: int) -> float:
    try:
        value = float(cell or "")
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise InputError(
            f"{path} row {place} has the intensity {cell!r}",
            accepted="numbers from 0 to 1",
            todo="repair that row",
        )
    return value


def _check_twin(first: tuple[float, ...], second: tuple[float, ...], path: Path, place: int) -> None:
    if not np.array_equal(first, second, equal_nan=True):
        raise InputError(
            f"{path} row {place} has other predictions for a text that is there before",
            accepted="one prediction a text",
            todo="keep the predictions of one model",
        )


def _first(names: Mapping[str, str], wanted: Sequence[str]) -> str | None:
    return next((names[name] for name in wanted if name in names), None)


def _plain(name: str) -> str:
    return "_".join(name.lower().split())
