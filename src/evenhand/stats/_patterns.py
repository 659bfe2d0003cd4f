"""Numbers that follow from sums over items, resampled by items, where many items look alike.

Items of the same row are exchangeable, so it is the number of times each different row is drawn that is
resampled: the same distribution as drawing items one by one, at a cost that does not grow with the items.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from evenhand.core.records import Estimate
from evenhand.stats._arrays import Floats, RandomSource, checked_level
from evenhand.stats.bootstrap import widened_tails
from evenhand.stats.results import NO_VALUES, NO_VARIATION, ONE_CLUSTER

_BLOCK = 2_000_000
"""Draws held in memory at a time."""


@dataclass(frozen=True, slots=True)
class Patterns:
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
        level, items = checked_level(self.level), len(rows)
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
        low, high = np.quantile(draws, widened_tails(level, items))
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


def share(sums: Floats) -> Floats:
    """The first column over the second."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(sums[:, 1] > 0, sums[:, 0] / sums[:, 1], np.nan)
