"""Does a gap survive inside strata, or did the mix of strata make it (Simpson's paradox)?"""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from evenhand.stats._arrays import (
    Bools,
    Floats,
    Ids,
    Ints,
    checked_group,
    checked_values,
    cluster_codes,
    clusters_per_cell,
    weighted_counts,
)
from evenhand.stats.contrasts import clustered_contrast
from evenhand.stats.results import Difference, Stratified, StratumGap


def stratified_difference(
    y: npt.ArrayLike,
    group: npt.ArrayLike,
    strata: npt.ArrayLike,
    clusters: Ids = None,
    *,
    is_share: bool = False,
    level: float = 0.95,
) -> Stratified:
    """The gap between ``group`` (True) and the others, over all rows and inside strata.

    The adjusted gap gives each stratum the weight of its rows, the same for both sides (direct
    standardisation). Both gaps come with cluster-robust intervals, of means or (``is_share``) of shares.
    """
    values = checked_values(y)
    others = (~checked_group(group, values.size)).astype(np.intp)
    codes = cluster_codes(clusters, values.size)
    names, of_stratum = np.unique(np.asarray(strata), return_inverse=True)
    cells = 2 * of_stratum + others
    usable = _usable(cells, codes, names.size)
    judge = partial(clustered_contrast, is_share=is_share, level=level)
    crude = judge(values, others, codes, weights=(1.0, -1.0))
    weights = np.repeat(np.bincount(of_stratum, minlength=names.size) * usable, 2).astype(np.float64)
    weights[1::2] *= -1
    weights /= max(float(weights[::2].sum()), 1.0)
    adjusted = judge(values, cells, codes, weights=weights.tolist())
    gaps = _gaps(values, cells, names, usable)
    return Stratified(crude, adjusted, gaps, names.size - len(gaps), _disagree(crude, adjusted))


def _gaps(y: Floats, cells: Ints, names: npt.NDArray[np.generic], usable: Bools) -> tuple[StratumGap, ...]:
    rows = np.bincount(cells, minlength=2 * names.size)
    sums = weighted_counts(cells, y, 2 * names.size)
    means = np.divide(sums, rows, out=np.zeros_like(sums), where=rows > 0)
    return tuple(
        StratumGap(
            str(names[i]), float(means[2 * i] - means[2 * i + 1]), int(rows[2 * i]), int(rows[2 * i + 1])
        )
        for i in np.flatnonzero(usable)
    )


def _usable(cells: Ints, codes: Ints, n_strata: int) -> Bools:
    """Which strata have two clusters or more on both sides."""
    usable: Bools = clusters_per_cell(cells, codes, 2 * n_strata).reshape(-1, 2).min(axis=1) >= 2
    return usable


def _disagree(crude: Difference, adjusted: Difference) -> bool:
    if crude.estimate is None or adjusted.estimate is None or crude.estimate * adjusted.estimate >= 0:
        return False
    return _excludes_zero(crude) or _excludes_zero(adjusted)


def _excludes_zero(gap: Difference) -> bool:
    return gap.low is not None and gap.high is not None and (gap.low > 0 or gap.high < 0)
