"""How often a trained classifier is right on texts it did not learn from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.core.digests import Json
from evenhand.core.records import Estimate
from evenhand.stats.intervals import wilson
from evenhand.training.measures import calibration_error


@dataclass(frozen=True, slots=True)
class LabelScore:
    """How well one label is found, each in [0, 1]; null where there is nothing to divide by."""

    label: str
    precision: float | None
    recall: float | None
    f1: float | None
    n: int
    """Texts that truly have the label."""


@dataclass(frozen=True, slots=True)
class HeldOut:
    """What happened on the held-out texts; all measures follow from the confusion matrix."""

    labels: tuple[str, ...]
    confusion: tuple[tuple[int, ...], ...]
    """Texts by true label (row) and predicted label (column)."""
    calibration_error: float
    """Expected calibration error of the predicted label's probability, in [0, 1]; 0 is best."""
    majority_label: str
    """The most frequent label of the training texts."""

    @classmethod
    def of(
        cls,
        probabilities: NDArray[np.floating],
        truth: NDArray[np.int64],
        labels: Sequence[str],
        *,
        majority_label: str,
    ) -> HeldOut:
        """The outcome of probabilities (texts x labels) for texts whose labels are known by number."""
        said = probabilities.argmax(1)
        size = len(labels)
        table = np.bincount(truth * size + said, minlength=size * size).reshape(size, size)
        error = calibration_error(probabilities.max(1).astype(np.float64), (said == truth).astype(np.float64))
        rows = tuple(tuple(int(count) for count in row) for row in table)
        return cls(tuple(labels), rows, error, majority_label)

    @property
    def n(self) -> int:
        """The number of held-out texts."""
        return sum(map(sum, self.confusion))

    @property
    def accuracy(self) -> Estimate:
        """The share of right labels with Wilson's 95 % interval, texts taken as independent."""
        return wilson(sum(row[place] for place, row in enumerate(self.confusion)), self.n)

    @property
    def majority(self) -> float:
        """The accuracy of always saying the most frequent training label."""
        return sum(self.confusion[self.labels.index(self.majority_label)]) / self.n

    @property
    def classes(self) -> tuple[LabelScore, ...]:
        """Precision, recall and F1 of every label."""
        return tuple(self._class(place) for place in range(len(self.labels)))

    @property
    def macro_f1(self) -> float:
        """The mean F1 over the labels that occur or were predicted."""
        found = [score.f1 for score in self.classes if score.f1 is not None]
        return sum(found) / len(found)

    def measures(self) -> dict[str, float]:
        """The numbers of the whole, by name."""
        accuracy = self.accuracy
        found = {"accuracy": accuracy.value, "accuracy_low": accuracy.low, "accuracy_high": accuracy.high}
        return {name: value for name, value in found.items() if value is not None} | {
            "macro_f1": self.macro_f1,
            "calibration_error": self.calibration_error,
            "majority": self.majority,
            "n": self.n,
        }

    def to_json(self) -> Mapping[str, Json]:
        """Labels and counts, from which all measures follow."""
        return {"labels": self.labels, "confusion": self.confusion, **self.measures()}

    def _class(self, place: int) -> LabelScore:
        hits = self.confusion[place][place]
        true = sum(self.confusion[place])
        said = sum(row[place] for row in self.confusion)
        return LabelScore(
            self.labels[place],
            hits / said if said else None,
            hits / true if true else None,
            2 * hits / (true + said) if true + said else None,
            true,
        )
