"""Resampling of whole clusters, for means and for any other statistic of a set of texts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Required, TypedDict

import numpy as np
import numpy.typing as npt

from evenhand.core.errors import InputError
from evenhand.core.records import Estimate
from evenhand.stats._arrays import (
    Floats,
    Ids,
    Ints,
    RandomSource,
    check_level,
    divide,
    encode_clusters,
    weighted_counts,
)
from evenhand.stats.intervals import estimate_mean
from evenhand.stats.quantiles import normal_cdf, normal_quantile, widen_tails
from evenhand.stats.results import NO_VALUES, NO_VARIATION, ONE_CLUSTER

_BLOCK = 2_000_000
"""Number of draws held in memory at once."""
PERCENTILE = "cluster bootstrap (percentile)"
TOO_FEW_VALUES = "too few resamples have a value"
_TIE = 1e-12
"""Means within this relative distance are ties, separated only by rounding."""


def cluster_bootstrap_mean(
    y: npt.ArrayLike,
    clusters: Ids = None,
    *,
    rng: RandomSource,
    resamples: int = 10_000,
    level: float = 0.95,
    n_null: int = 0,
) -> Estimate:
    """The mean of ``y`` with a cluster bootstrap interval, for skewed values and means of counts.

    Whole clusters are drawn with replacement; a resampled mean is the ratio of drawn sums to drawn sizes.
    The interval is bias-corrected and accelerated (Efron 1987; the acceleration is the skewness of the
    clusters' influences / 6), and widened for few clusters by the t quantile and the CR2 factor (Hesterberg
    2015): in simulation its coverage matches that of a studentised bootstrap, and its ends stay inside the
    data. Clusters are sorted by size and sum before drawing, so the result does not depend on the order of
    rows or the names of clusters.
    """
    _check_resamples(resamples)

    def accelerate(values: Floats, codes: Ints, half: float) -> tuple[float, float]:
        rows = np.bincount(codes)
        sums, sizes = weighted_counts(codes, values)[rows > 0], rows[rows > 0].astype(np.float64)
        order = np.lexsort((sums, sizes))
        sums, sizes = sums[order], sizes[order]
        return _bca(_resample_means(sums, sizes, rng, resamples), sums, sizes, half)

    method = "cluster bootstrap (BCa)"
    return estimate_mean(y, clusters, accelerate, method=method, level=level, n_null=n_null)


def percentile_estimate(
    value: float | None,
    draws: Floats,
    missing: Estimate,
    *,
    resamples: int = 0,
    may_be_constant: bool = False,
) -> Estimate:
    """A statistic with the percentiles of its finite resamples, widened for few clusters.

    ``missing`` is the result if there is no value; its level, method and counts are kept. A statistic that is
    the same in every resample, such as full agreement, is not certain: it has no interval unless it
    ``may_be_constant``.
    """
    check_level(missing.level)
    draws = draws[np.isfinite(draws)]
    if value is None or math.isnan(value):
        return missing
    point = partial(replace, missing, value=value)
    if missing.n_clusters < 2:
        return point(null_reason=ONE_CLUSTER)
    if draws.size < max(1, resamples / 2):
        return point(null_reason=TOO_FEW_VALUES)
    if not may_be_constant and np.ptp(draws) <= 1e-12:
        return point(null_reason=NO_VARIATION)
    low, high = np.quantile(draws, widen_tails(missing.level, missing.n_clusters))
    return point(low=float(low), high=float(high), null_reason=None)


class ResamplingOptions(TypedDict, total=False):
    """The fields of `Resampling`, as keyword arguments of functions that resample."""

    rng: Required[RandomSource]
    resamples: int
    level: float


@dataclass(frozen=True, slots=True)
class Resampling:
    """How a statistic is resampled.

    A statistic of sums over items or clusters is a function of the column sums of a table of rows: it takes
    sums (draws x columns) and returns one number per draw, NaN where there is none.
    """

    rng: RandomSource
    resamples: int = 2_000
    level: float = 0.95

    def estimate_items(
        self,
        rows: Floats,
        statistic: Callable[[Floats], Floats],
        *,
        n: int,
        name: str,
        empty: str = NO_VALUES,
        n_null: int = 0,
    ) -> Estimate:
        """A statistic of items x columns, with an interval over items; ``empty`` is the reason for no items.

        Equal rows are exchangeable, so only the count of each distinct row is drawn: the same distribution
        as drawing items one by one, at a cost that does not grow with the number of items.
        """
        # np.unique sorts the rows, so the draws do not depend on the names or order of items.
        distinct, times = np.unique(rows, axis=0, return_counts=True)
        value, draws = self._draw(distinct, times, statistic)
        method, reason = f"{name}, {PERCENTILE}", NO_VARIATION if len(rows) else empty
        missing = Estimate(None, None, None, self.level, method, n, n_null, len(rows), reason)
        return percentile_estimate(value, draws, missing, resamples=self.resamples)

    def estimate_clusters(
        self,
        codes: Ints,
        columns: Floats,
        statistic: Callable[[Floats], Floats],
        *,
        n: int,
        reason: str = NO_VALUES,
    ) -> Estimate:
        """A statistic of rows x columns, with an interval over clusters, which may have zero width."""
        names, of_row = np.unique(codes, return_inverse=True)
        sums = np.zeros((names.size, columns.shape[1]))
        np.add.at(sums, of_row, columns)
        # Clusters in a fixed order, so the draws do not depend on the names or order of clusters.
        value, draws = self._draw(sums[np.lexsort(sums.T)], np.ones(names.size, dtype=np.intp), statistic)
        missing = Estimate(None, None, None, self.level, PERCENTILE, n, 0, names.size, reason)
        return percentile_estimate(value, draws, missing, resamples=self.resamples, may_be_constant=True)

    def _draw(
        self, rows: Floats, times: Ints, statistic: Callable[[Floats], Floats]
    ) -> tuple[float | None, Floats]:
        """The statistic of all rows, and of resamples if there are at least two rows."""
        if not len(rows):
            return None, np.zeros(0)
        value, total = float(statistic((times @ rows)[None])[0]), int(times.sum())
        if math.isnan(value) or total < 2:
            return value, np.zeros(0)
        generator, step = np.random.default_rng(self.rng), max(1, _BLOCK // len(rows))
        sizes = [min(step, self.resamples - start) for start in range(0, self.resamples, step)]
        parts = [statistic(generator.multinomial(total, times / total, size=size) @ rows) for size in sizes]
        return value, np.concatenate(parts)


def ratio_of_sums(sums: Floats) -> Floats:
    """The first column divided by the second."""
    return divide(sums[:, 0], sums[:, 1])


def resample_clusters(clusters: npt.ArrayLike, *, rng: RandomSource, resamples: int) -> Iterator[Ints]:
    """Row positions of ``resamples`` samples of whole clusters, drawn with replacement."""
    codes = encode_clusters(clusters, np.asarray(clusters).size)
    order = np.argsort(codes, kind="stable")
    _, starts, sizes = np.unique(codes[order], return_index=True, return_counts=True)
    generator = np.random.default_rng(rng)
    for _ in range(_check_resamples(resamples)):
        drawn = generator.integers(starts.size, size=starts.size)
        length = sizes[drawn]
        within = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
        yield order[np.repeat(starts[drawn], length) + within]


def _resample_means(sums: Floats, sizes: Floats, rng: RandomSource, resamples: int) -> Floats:
    # Imported here: numba takes half a second, and most of this module does not need it.
    from evenhand.stats import _random_draws

    generator = _random_draws.make_generator(rng)
    state, means = _random_draws.read_state(generator), np.empty(resamples)
    _random_draws.resample_means(sums, sizes, state, means)
    _random_draws.restore_state(generator, state)
    return means


def _bca(draws: Floats, sums: Floats, sizes: Floats, widened: float) -> tuple[float, float]:
    """The ends of the accelerated interval; ``widened`` is the half width of the t interval."""
    value = float(sums.sum() / sizes.sum())
    influences = (sums - value * sizes) / float(sizes.sum())
    spread = math.sqrt(float(influences @ influences))
    acceleration = float(np.sum(influences**3)) / (6 * spread**3)
    # Ties count half, so that discrete means do not look like bias.
    ties = np.abs(draws - value) <= _TIE * max(abs(value), spread)
    below = float(np.mean((draws < value) & ~ties) + np.mean(ties) / 2)
    bias = normal_quantile(min(max(below, 1 / draws.size), 1 - 1 / draws.size))
    tails = [_accelerate(bias + side * widened / spread, bias, acceleration) for side in (-1, 1)]
    low, high = np.quantile(draws, tails)
    return float(low), float(high)


def _accelerate(shifted: float, bias: float, acceleration: float) -> float:
    # Past the pole of the acceleration the interval extends to the end of the draws.
    slope = 1 - acceleration * shifted
    return normal_cdf(bias + shifted / slope) if slope > 0 else float(shifted > 0)


def _check_resamples(resamples: int) -> int:
    if resamples < 100:
        raise InputError(
            f"{resamples} resamples", expected="100 or more", fix="use 2,000 or more for a report"
        )
    return resamples
