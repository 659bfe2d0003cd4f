"""Numbers that follow from sums over items, resampled by items, where many items look alike.

Items of the same row are exchangeable, so it is the number of times each different row is drawn that is
resampled: the same distribution as drawing items one by one, at a cost that does not grow with the items.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from evenhand.core.records import Estimate
from evenhand.stats._arrays import Floats, Ints, RandomSource, check_level
from evenhand.stats.bootstrap import widen_tails
from evenhand.stats.results import NO_VALUES, NO_VARIATION, ONE_CLUSTER

_BLOCK = 2_000_000
"""Draws held in memory at a time."""


@dataclass(frozen=True, slots=True)
class ItemResampling:
    """How a statistic over items is resampled."""

    rng: RandomSource
    resamples: int
    level: float

    def estimate(
        self,
        rows: Floats,
        statistic: Callable[[Floats], Floats],
        *,
        n: int,
        method: str,
        reason: str = NO_VALUES,
        n_null: int = 0,
    ) -> Estimate:
        """A number of the column sums of ``rows`` (items x columns), with a percentile interval over items.

        ``statistic`` gets sums (draws x columns) and gives one number a draw, NaN where there is none.
        """
        level, items = check_level(self.level), len(rows)
        name = f"{method}, cluster bootstrap (percentile)"
        value = float(statistic(rows.sum(axis=0)[None])[0]) if items else float("nan")
        if np.isnan(value):
            return Estimate(None, None, None, level, name, n, n_null, items, reason)
        if items < 2:
            return Estimate(value, None, None, level, name, n, n_null, items, ONE_CLUSTER)
        draws = self._draws(rows, statistic)
        if draws.size < self.resamples / 2:
            why = "too few resamples have a value"
            return Estimate(value, None, None, level, name, n, n_null, items, why)
        if draws.max() - draws.min() <= 1e-12:
            # Full agreement stays full however items are drawn: that is no certainty.
            return Estimate(value, None, None, level, name, n, n_null, items, NO_VARIATION)
        low, high = np.quantile(draws, widen_tails(level, items))
        return Estimate(value, float(low), float(high), level, name, n, n_null, items)

    def _draws(self, rows: Floats, statistic: Callable[[Floats], Floats]) -> Floats:
        # np.unique sorts the rows, so that neither names nor order of items change the draws.
        different, times = np.unique(rows, axis=0, return_counts=True)
        generator, shares = np.random.default_rng(self.rng), times / len(rows)
        step = max(1, _BLOCK // len(different))
        parts = [
            statistic(
                generator.multinomial(len(rows), shares, size=min(step, self.resamples - start)) @ different
            )
            for start in range(0, self.resamples, step)
        ]
        draws = np.concatenate(parts)
        return draws[np.isfinite(draws)]


def ratio_of_sums(sums: Floats) -> Floats:
    """The first column over the second."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(sums[:, 1] > 0, sums[:, 0] / sums[:, 1], np.nan)


@dataclass(frozen=True, slots=True)
class ClusterResampling:
    """Means over rows, with percentile intervals over resampled clusters."""

    codes: Ints
    rng: RandomSource
    resamples: int
    level: float

    def mean(self, values: Floats, weights: Floats, *, reason: str = NO_VALUES) -> Estimate:
        """Sum of the values over sum of the weights."""
        return self.ratio(np.stack([values, weights], axis=1), ratio_of_sums, int(weights.sum()), reason)

    def ratio(self, columns: Floats, statistic: Callable[[Floats], Floats], n: int, reason: str) -> Estimate:
        """A number that follows from column sums; ``statistic`` gets sums (draws, columns)."""
        names, codes = np.unique(self.codes, return_inverse=True)
        sums = np.zeros((names.size, columns.shape[1]))
        np.add.at(sums, codes, columns)
        value = float(statistic(sums.sum(axis=0)[None])[0]) if names.size else float("nan")
        of = partial(
            Estimate,
            level=check_level(self.level),
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
        low, high = np.quantile(draws, widen_tails(self.level, names.size))
        return of(value, float(low), float(high))
