"""Distances between two samples of numbers."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from evenhand.stats._arrays import Floats, checked_values
from evenhand.stats.results import NO_VALUES, Measure


def wasserstein2_1d(a: npt.ArrayLike, b: npt.ArrayLike) -> Measure:
    """The second-order Wasserstein distance of two samples, exact, in the unit of the values.

    The root mean square gap between the two quantile functions. In one dimension the sliced distance of the
    political paper (equation 2) is this one. For probabilities it lies in [0, 1]. Never negative: it has no
    sign, and two samples of one distribution have a small positive distance.
    """
    first, second = np.sort(checked_values(a, "a")), np.sort(checked_values(b, "b"))
    if not first.size or not second.size:
        return Measure(None, NO_VALUES)
    if first.size == second.size:
        return Measure(math.sqrt(float(np.mean((first - second) ** 2))))
    return Measure(math.sqrt(_merged_mean_square(first, second)))


def _merged_mean_square(first: Floats, second: Floats) -> float:
    """Mean square gap of two step functions, over the union of their steps.

    Steps are counted in units of 1 / (m n), as integers: no step is lost or doubled by rounding.
    """
    m, n = first.size, second.size
    ends = np.union1d(np.arange(1, m + 1) * n, np.arange(1, n + 1) * m)
    widths = np.diff(ends, prepend=0)
    gaps = first[(ends - 1) // n] - second[(ends - 1) // m]
    return float(gaps**2 @ widths) / (m * n)
