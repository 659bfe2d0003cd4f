"""How well a classifier does on held-out texts: arrays in, one number or a number with its interval out."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Measured(NamedTuple):
    """A number with its 95 % bootstrap interval over texts."""

    value: float
    low: float
    high: float
    n: int


def roc_auc(scores: Floats, truth: NDArray[np.bool_]) -> float:
    """The chance that a true text scores above a false one, ties counting half; 0.5 is guessing.

    NaN where all texts are true or all are false.

    >>> roc_auc(np.array([0.1, 0.4, 0.35, 0.8]), np.array([False, False, True, True]))
    0.75
    """
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    positives = int(truth.sum())
    negatives = len(truth) - positives
    if not positives or not negatives:
        return float("nan")
    return float((ranks[truth].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def accuracy(predicted: NDArray[np.int64], truth: NDArray[np.int64]) -> float:
    """The share of texts whose label is right."""
    return float((predicted == truth).mean())


def macro_f1(predicted: NDArray[np.int64], truth: NDArray[np.int64]) -> float:
    """The mean over labels of F1 = 2 hits / (predicted + true); labels that never occur are left out."""
    found = []
    for label in np.union1d(predicted, truth):
        hits = int(((predicted == label) & (truth == label)).sum())
        found.append(2 * hits / int((predicted == label).sum() + (truth == label).sum()))
    return float(np.mean(found))


def calibration_error(probabilities: Floats, truth: Floats, *, bins: int = 15) -> float:
    """Expected calibration error: the mean gap of probability and truth over equal-width bins, in [0, 1].

    ``truth`` may be graded. Each bin weighs as many texts as fall into it (Guo et al. 2017, section 2).
    """
    place = np.minimum((probabilities * bins).astype(int), bins - 1)
    said = np.bincount(place, probabilities, minlength=bins)
    seen = np.bincount(place, truth, minlength=bins)
    return float(np.abs(said - seen).sum() / len(truth))


def pearson(predicted: Floats, truth: Floats) -> float:
    """The linear correlation, -1 to 1."""
    return float(np.corrcoef(predicted, truth)[0, 1])


def measured(
    measure: Callable[..., float], *arrays: NDArray[np.generic], rounds: int = 1000, seed: int = 0
) -> Measured:
    """The measure of the arrays, one entry a text, with a percentile interval from resampling texts.

    Draws in which the measure is not defined (NaN) count for nothing.
    """
    rng = np.random.default_rng(seed)
    n = len(arrays[0])
    drawn = [measure(*(array[at] for array in arrays)) for at in rng.integers(0, n, (rounds, n))]
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    return Measured(measure(*arrays), float(low), float(high), n)
