"""Numbers that follow from sums over clusters, resampled by whole clusters: a matrix product, no loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from evenhand.core.records import Estimate
from evenhand.stats._arrays import Floats, Ints, RandomSource, checked_level
from evenhand.stats._patterns import share
from evenhand.stats.bootstrap import widened_tails
from evenhand.stats.results import NO_VALUES, ONE_CLUSTER


@dataclass(frozen=True, slots=True)
class Resampled:
    """Means over rows, with percentile intervals over resampled clusters."""

    codes: Ints
    rng: RandomSource
    resamples: int
    level: float

    def mean(self, values: Floats, weights: Floats, *, reason: str = NO_VALUES) -> Estimate:
        """Sum of the values over sum of the weights."""
        return self.ratio(np.stack([values, weights], axis=1), share, int(weights.sum()), reason)

    def ratio(self, columns: Floats, statistic: Callable[[Floats], Floats], n: int, reason: str) -> Estimate:
        """A number that follows from column sums; ``statistic`` gets sums (draws, columns)."""
        names, codes = np.unique(self.codes, return_inverse=True)
        sums = np.zeros((names.size, columns.shape[1]))
        np.add.at(sums, codes, columns)
        value = float(statistic(sums.sum(axis=0)[None])[0]) if names.size else float("nan")
        of = partial(
            Estimate,
            level=checked_level(self.level),
            method="cluster bootstrap (percentile)",
            n=n,
            n_null=0,
            n_clusters=names.size,
        )
        if np.isnan(value):
            return of(None, None, None, null_reason=reason)
        if names.size < 2:
            return of(value, None, None, null_reason=ONE_CLUSTER)
        # Columns in a fixed order, so that neither names nor order of clusters change the draws.
        ranked = sums[np.lexsort(sums.T)]
        drawn = np.random.default_rng(self.rng).multinomial(
            names.size, np.full(names.size, 1 / names.size), size=self.resamples
        )
        draws = statistic(drawn @ ranked)
        draws = draws[np.isfinite(draws)]
        if draws.size < self.resamples / 2:
            return of(value, None, None, null_reason="too few resamples have a value")
        low, high = np.quantile(draws, widened_tails(self.level, names.size))
        return of(value, float(low), float(high))
