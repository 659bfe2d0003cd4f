"""Distances between two samples of numbers, or of points of the probability simplex."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.core.errors import InputError
from evenhand.stats._arrays import Floats, Ints, RandomSource

LARGE = 200_000
"""Values above which the steps of two samples are not cached."""
DIRECTIONS = 128
"""Directions a sliced distance is the mean of."""


def simplex_directions(classes: int, *, rng: RandomSource, number: int = DIRECTIONS) -> Floats:
    """Directions inside the simplex as columns, each of length ``sqrt((classes - 1) / classes)``.

    That is the root mean square length of what a direction on the whole sphere leaves there.
    """
    if classes == 2:
        return np.array([[-0.5], [0.5]])
    drawn = np.random.default_rng(rng).normal(size=(classes, number))
    inside = drawn - drawn.mean(axis=0)
    directions: Floats = inside / np.linalg.norm(inside, axis=0) * math.sqrt((classes - 1) / classes)
    return directions


def check_simplex(points: npt.ArrayLike, name: str = "points") -> Floats:
    """The points as rows x classes; rows that are not probabilities are refused."""
    rows = np.asarray(points, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] < 2:
        raise InputError(f"{name} has the shape {rows.shape}", expected="rows x classes, two or more classes")
    wrong = int(np.sum((np.abs(rows.sum(axis=1) - 1) > 1e-4) | (rows < -1e-9).any(axis=1)))
    if wrong or not np.isfinite(rows).all():
        raise InputError(
            f"{name} holds {wrong or 'missing'} rows that are not probabilities",
            expected="rows of numbers from 0 to 1 that sum to 1",
            fix="divide each row by its sum, and drop rows without values",
        )
    return rows


def mean_square_gap(first: Floats, second: Floats) -> float:
    """The squared second-order Wasserstein distance of two sorted samples, exact, in the squared unit.

    The mean square gap of their quantile functions. In one dimension the sliced distance of the political
    paper (equation 2) is its root. For probabilities it lies in [0, 1]. It has no sign, and two samples of
    one distribution have a small positive distance.
    """
    if first.size == second.size:
        gaps = first - second
        return float(gaps @ gaps) / first.size
    is_large = first.size + second.size > LARGE
    steps = (_steps.__wrapped__ if is_large else _steps)(first.size, second.size)
    gaps = first[steps.first] - second[steps.second]
    return float(np.square(gaps) @ steps.widths)


class _Steps(NamedTuple):
    """Where two quantile functions are constant at once."""

    first: Ints
    second: Ints
    widths: Floats


@lru_cache(maxsize=256)
def _steps(m: int, n: int) -> _Steps:
    """The union of the steps of samples of m and n values, by a linear merge.

    Steps are counted in units of 1 / (m n), as integers: none is lost or doubled by rounding. Where both
    samples step at once, one of the two steps has no width. Steps are cached: a permutation asks for the same
    sizes thousands of times.
    """
    own, other = np.arange(1, m + 1, dtype=np.int64) * n, np.arange(1, n + 1, dtype=np.int64) * m
    ends = np.empty(m + n, dtype=np.int64)
    ends[np.arange(m) + (own - 1) // m] = own
    ends[np.arange(n) + other // n] = other
    widths = np.diff(ends, prepend=0) / (m * n)
    return _Steps((ends - 1) // n, (ends - 1) // m, widths)
