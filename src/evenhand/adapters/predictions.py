"""Predictions of 0 and 1 as a metric: what a classifier said of each row, beside what is true of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from evenhand.core.digests import digest
from evenhand.core.errors import InputError
from evenhand.core.records import MetricInfo, OutputInfo, Text, Value

_ROW = re.compile(r"row (\d+)")
_SELECTED = OutputInfo("prediction", "label", "more rows are given a 1", labels=("not_selected", "selected"))
_JUDGED = (
    OutputInfo("agreement", "label", "more predictions are right", labels=("wrong", "correct")),
    OutputInfo(
        "negatives",
        "label",
        "more rows that are 0 are given a 1",
        labels=("true_negative", "false_positive"),
    ),
    OutputInfo(
        "positives", "label", "more rows that are 1 are given a 1", labels=("false_negative", "true_positive")
    ),
)


def row_text(number: int, texts: Sequence[str] | None) -> str:
    """What stands for a row: its number, by which its prediction is found, then its text."""
    return f"row {number}" + (f": {texts[number]}" if texts is not None else "")


class Predictions:
    """The metric that looks a row's prediction up."""

    def __init__(self, y_true: Sequence[float] | None, y_pred: Sequence[float]) -> None:
        """The predictions, and what is true where it is known."""
        self._pred = _flags(y_pred, "y_pred")
        self._true = None if y_true is None else _flags(y_true, "y_true")
        if self._true is not None and len(self._true) != len(self._pred):
            raise InputError(
                f"y_true has {len(self._true):,} rows and y_pred {len(self._pred):,}",
                accepted="as many of one as of the other",
                todo="check which rows belong together",
            )
        judged = self._true is not None
        self.info = MetricInfo(
            name="predictions",
            version="1",
            outputs=(_SELECTED, *_JUDGED) if judged else (_SELECTED,),
            summary="what a classifier predicted, by group",
            primary=("selected", *(("correct", "false_positive", "true_positive") if judged else ())),
            null_when="the rate does not speak of the row: a false positive is a row that is 0",
            weights=digest([self._pred, self._true]),
            cheap=True,
        )

    @property
    def rows(self) -> int:
        """How many predictions there are."""
        return len(self._pred)

    def columns(self) -> dict[str, list[str]]:
        """The predictions as columns, so that other predictions are another run."""
        known = {"y_pred": self._pred, "y_true": self._true}
        return {
            name: [str(value) for value in values] for name, values in known.items() if values is not None
        }

    def score(self, texts: Sequence[Text]) -> list[Mapping[str, Value]]:
        """The prediction of each row, and whether it is right."""
        return [self._row(text.text) for text in texts]

    def _row(self, text: str) -> Mapping[str, Value]:
        found = _ROW.match(text)
        if found is None:
            raise ValueError("no row of the predictions")
        number = int(found[1])
        pred = self._pred[number]
        values = {"prediction": _label(_SELECTED, pred)}
        if self._true is None:
            return values
        true = self._true[number]
        agreement, negatives, positives = _JUDGED
        values["agreement"] = _label(agreement, int(pred == true))
        values["negatives"] = Value(None, None, "not a negative") if true else _label(negatives, pred)
        values["positives"] = _label(positives, pred) if true else Value(None, None, "not a positive")
        return values


def _label(output: OutputInfo, value: int) -> Value:
    return Value(float(value), output.labels[value])


def _flags(values: Sequence[float], name: str) -> list[int]:
    found = np.asarray(values)
    other = found[~np.isin(found, (0, 1))]
    if found.ndim != 1 or found.size == 0 or other.size:
        raise InputError(
            f"{name} holds {other[0]}" if other.size else f"{name} is no list of numbers",
            accepted="one 0 or 1 a row",
            todo="compare one class with the rest, or cut scores at a threshold",
        )
    return [int(value) for value in found]
