"""Measures of a classifier on held-out texts: arrays in, a number or a number with its interval out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from evenhand.core.digests import Json
from evenhand.stats.intervals import wilson_interval
from evenhand.stats.quantiles import normal_quantile

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class MeasuredValue(NamedTuple):
    """A number with its 95 % bootstrap interval over texts."""

    value: float
    low: float
    high: float
    n: int


def roc_auc(scores: Floats, truth: NDArray[np.bool_]) -> float:
    """The probability that a positive text scores above a negative one, ties counting half; 0.5 is chance.

    NaN if all texts are positive or all are negative.

    >>> roc_auc(np.array([0.1, 0.4, 0.35, 0.8]), np.array([False, False, True, True]))
    0.75
    """
    positives = int(truth.sum())
    negatives = len(truth) - positives
    if not positives or not negatives:
        return float("nan")
    ranks = rankdata(scores)[truth].sum()
    return float((ranks - positives * (positives + 1) / 2) / (positives * negatives))


def macro_f1(predicted: Ints, truth: Ints) -> float:
    """The mean over labels of F1 = 2 hits / (predicted + true); labels that never occur are left out."""
    scores = []
    for label in np.union1d(predicted, truth):
        hits = int(((predicted == label) & (truth == label)).sum())
        scores.append(2 * hits / int((predicted == label).sum() + (truth == label).sum()))
    return float(np.mean(scores))


def calibration_error(probabilities: Floats, truth: Floats, *, bins: int = 15) -> float:
    """Expected calibration error: the mean gap of probability and truth over equal-width bins, in [0, 1].

    ``truth`` may be graded. Each bin is weighted by its number of texts (Guo et al. 2017, section 2).
    """
    place = np.minimum((probabilities * bins).astype(int), bins - 1)
    predicted = np.bincount(place, probabilities, minlength=bins)
    observed = np.bincount(place, truth, minlength=bins)
    return float(np.abs(predicted - observed).sum() / len(truth))


def bootstrap_measure(
    measure: Callable[..., float], *arrays: NDArray[np.generic], rounds: int = 1000, seed: int = 0
) -> MeasuredValue:
    """The measure of the arrays, one entry per text, with a percentile interval from resampling texts.

    Resamples in which the measure is undefined (NaN) are ignored.
    """
    rng = np.random.default_rng(seed)
    n = len(arrays[0])
    drawn = [measure(*(array[at] for array in arrays)) for at in rng.integers(0, n, (rounds, n))]
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    return MeasuredValue(measure(*arrays), float(low), float(high), n)


ClassScores = tuple[str, float | None, float | None, float | None, int]
"""A label, its precision, recall and F1 (None where the denominator is 0), and its number of texts."""


@dataclass(frozen=True, slots=True)
class HeldOutResult:
    """The results on the held-out texts; all measures but the calibration error follow from the confusion."""

    labels: tuple[str, ...]
    confusion: tuple[tuple[int, ...], ...]
    """Texts by true label (row) and predicted label (column)."""
    n: int
    accuracy: tuple[float, float, float]
    """The share of correct labels with Wilson's 95 % interval, assuming independent texts."""
    classes: tuple[ClassScores, ...]
    macro_f1: float
    """The mean F1 over the labels that occur or were predicted."""
    calibration_error: float
    """Expected calibration error of the predicted label's probability, in [0, 1]; 0 is best."""
    majority: float
    """The accuracy of always predicting the most frequent training label."""
    majority_label: str

    @classmethod
    def of(
        cls, probabilities: NDArray[np.floating], truth: Ints, labels: Sequence[str], *, majority_label: str
    ) -> HeldOutResult:
        """The result of probabilities (texts x labels) for texts with known label numbers."""
        answers, size, n = probabilities.argmax(1), len(labels), len(truth)
        table = np.bincount(truth * size + answers, minlength=size * size).reshape(size, size)
        is_right = (answers == truth).astype(np.float64)
        low, high = wilson_interval(is_right.mean(), n, normal_quantile(0.975))
        classes: list[ClassScores] = []
        for label, *counts in zip(labels, table.diagonal(), table.sum(0), table.sum(1), strict=True):
            hits, predicted, true = map(int, counts)
            parts = ((hits, predicted), (hits, true), (2 * hits, predicted + true))
            precision, recall, f1 = (part / whole if whole else None for part, whole in parts)
            classes.append((label, precision, recall, f1, true))
        scores = [f1 for *_, f1, _ in classes if f1 is not None]
        return cls(
            labels=tuple(labels),
            confusion=tuple(map(tuple, table.tolist())),
            n=n,
            accuracy=(float(is_right.mean()), float(low), float(high)),
            classes=tuple(classes),
            macro_f1=sum(scores) / len(scores),
            calibration_error=calibration_error(probabilities.max(1).astype(np.float64), is_right),
            majority=int(table[labels.index(majority_label)].sum()) / n,
            majority_label=majority_label,
        )

    def measures(self) -> dict[str, float]:
        """The overall numbers, by name."""
        return {
            **dict(zip(("accuracy", "accuracy_low", "accuracy_high"), self.accuracy, strict=True)),
            "macro_f1": self.macro_f1,
            "calibration_error": self.calibration_error,
            "majority": self.majority,
            "n": self.n,
        }

    def to_json(self) -> Mapping[str, Json]:
        """The labels and counts from which all measures follow."""
        return {"labels": self.labels, "confusion": self.confusion, **self.measures()}


def accuracy_ceiling(texts: Sequence[str], labels: Sequence[str]) -> float:
    """The maximum possible accuracy if the same text may have several labels; 1 if none does.

    For each text, its most frequent label counts as correct.

    >>> accuracy_ceiling(["a", "a", "b"], ["joy", "fear", "joy"])
    0.6666666666666666
    """
    most: dict[str, int] = {}
    for (text, _), count in Counter(zip(texts, labels, strict=True)).items():
        most[text] = max(count, most.get(text, 0))
    return sum(most.values()) / len(texts) if texts else 1.0
