"""Measure sizes: how large a gap is, whatever the number of texts. Positive: a is higher."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from evenhand.core.errors import InputError
from evenhand.stats._arrays import checked_values
from evenhand.stats.results import NO_VALUES, NO_VARIATION, Measure


def cohens_h(share_a: float, share_b: float) -> float:
    """Cohen's h of two shares, 2 asin(sqrt a) - 2 asin(sqrt b): from -pi to pi, 0.2 is small, 0.8 large.

    >>> round(cohens_h(0.5, 0.25), 4)
    0.5236
    """
    for share in (share_a, share_b):
        if not 0 <= share <= 1:
            raise InputError(f"a share of {share}", accepted="shares from 0 to 1")
    return 2 * math.asin(math.sqrt(share_a)) - 2 * math.asin(math.sqrt(share_b))


def hedges_g(a: npt.ArrayLike, b: npt.ArrayLike) -> Measure:
    """Hedges' g: the difference of means in pooled standard deviations, without small-sample bias.

    The correction is the exact one, with gamma functions (Hedges 1981). 0.2 is small, 0.8 large.
    """
    first, second = checked_values(a, "a"), checked_values(b, "b")
    if not first.size or not second.size:
        return Measure(None, NO_VALUES)
    df = first.size + second.size - 2
    squares = float(np.sum((first - first.mean()) ** 2) + np.sum((second - second.mean()) ** 2))
    if df < 2:
        return Measure(None, "fewer than four values")
    if float(np.ptp(first)) == 0 and float(np.ptp(second)) == 0:
        return Measure(None, NO_VARIATION)
    d = float(first.mean() - second.mean()) / math.sqrt(squares / df)
    return Measure(d * math.exp(math.lgamma(df / 2) - math.lgamma((df - 1) / 2)) / math.sqrt(df / 2))


def cliffs_delta(a: npt.ArrayLike, b: npt.ArrayLike) -> Measure:
    """Cliff's delta: P(a > b) - P(a < b) for one value drawn from each; from -1 to 1, ties count for neither.

    By sorting, in O(n log n); exact.
    """
    first, second = checked_values(a, "a"), np.sort(checked_values(b, "b"))
    if not first.size or not second.size:
        return Measure(None, NO_VALUES)
    below = np.searchsorted(second, first, side="left").sum(dtype=np.int64)
    above = second.size * first.size - np.searchsorted(second, first, side="right").sum(dtype=np.int64)
    return Measure(float(below - above) / (first.size * second.size))
