"""How far apart the groups of a run are, corrected for chance, and whether two runs differ in this.

The typical gap of J groups with means m is the root of G = 2 / (J - 1) sum (m_j - mean)^2, the mean squared
gap between two groups; for two groups it is the gap itself. Chance alone makes it larger than 0, and more so
with fewer texts, which would rank small runs last. Its expectation under chance follows from the covariance
S of the means: tr(W S) with W = 2 / (J - 1) (I - 11' / J). It is subtracted. The variance of the remainder
is 4 m'W S W m + 2 tr(W S W S) (Searle 1971, section 2.5); the first term uses the observed means, which
makes it too large where groups hardly differ: in doubt, runs are tied.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.stats._arrays import Ids, Ints, check_level, check_values, clusters_per_cell, encode_clusters
from evenhand.stats._moments import CellMoments, compute_moments
from evenhand.stats.corrections import holm
from evenhand.stats.quantiles import t_quantile, t_two_sided
from evenhand.stats.results import NO_VARIATION

TOO_FEW_GROUPS = "fewer than two groups have two clusters or more in every run"


@dataclass(frozen=True, slots=True)
class GroupSpread:
    """The typical gap between two groups of one run; never negative, 0 where chance explains all of it."""

    value: float | None
    low: float | None
    high: float | None
    rank: int | None
    """1 + the number of runs with a significantly smaller spread."""
    tied: tuple[int, ...]
    """The runs that do not differ significantly from this one."""
    null_reason: str | None = None


class SpreadDifference(NamedTuple):
    """The difference in spread between run a and run b."""

    a: int
    b: int
    difference: float
    """The squared typical gap of a minus that of b."""
    p: float | None
    p_adjusted: float | None


@dataclass(frozen=True, slots=True)
class SpreadRanking:
    """A comparison of runs on one output."""

    spreads: tuple[GroupSpread, ...]
    gaps: tuple[SpreadDifference, ...]
    groups: int
    """Number of groups compared."""


def rank_spreads(
    y: npt.ArrayLike,
    runs: npt.ArrayLike,
    groups: npt.ArrayLike,
    clusters: Ids,
    *,
    n_runs: int,
    level: float = 0.95,
) -> SpreadRanking:
    """Rank the runs by how far apart their groups are; runs that do not differ are tied.

    ``runs`` and ``groups`` hold the number of each row's run and group. Two runs differ if the difference of
    their squared typical gaps is significant, corrected over all pairs of runs (Holm). Clusters may span
    runs: the same prompts under several models are treated as pairs.
    """
    values, of_run, of_group = check_values(y), np.asarray(runs, np.intp), np.asarray(groups, np.intp)
    codes = encode_clusters(clusters, values.size)
    common = _common_groups(of_run, of_group, codes, n_runs)
    if common.size < 2:
        empty = GroupSpread(None, None, None, None, (), TOO_FEW_GROUPS)
        return SpreadRanking((empty,) * n_runs, (), int(common.size))
    used = np.isin(of_group, common)
    cells = of_run[used] * common.size + np.searchsorted(common, of_group[used])
    moments = compute_moments(values[used], cells, codes[used], n_cells=n_runs * common.size)
    return _rank_runs(_QuadraticForms(moments, int(common.size), n_runs), check_level(level))


@dataclass(frozen=True, slots=True)
class _QuadraticForms:
    """The squared typical gaps of the runs as quadratic forms of the cell means."""

    moments: CellMoments
    groups: int
    runs: int

    def estimate(self, weights: dict[int, float]) -> tuple[float, float]:
        """A weighted sum of squared typical gaps, corrected for chance, and its standard error."""
        run_weights = np.diag([weights.get(run, 0.0) for run in range(self.runs)])
        one_run = 2 / (self.groups - 1) * (np.eye(self.groups) - 1 / self.groups)
        form, means, covariance = np.kron(run_weights, one_run), self.moments.means, self.moments.covariance
        chance = form @ covariance
        variance = 4 * float(means @ chance @ form @ means) + 2 * float(np.sum(chance * chance.T))
        return float(means @ form @ means) - float(np.trace(chance)), math.sqrt(max(variance, 0.0))

    def interval(self, run: int, square: float, se: float, quantile: float) -> tuple[float, float]:
        """The interval of a run's typical gap; with two groups, that of the absolute gap itself.

        A square is skewed: with two groups, its interval would cover only nine times in ten.
        """
        if self.groups > 2:
            return math.sqrt(max(square - quantile * se, 0.0)), math.sqrt(max(square + quantile * se, 0.0))
        weights = np.zeros(self.runs * self.groups)
        weights[2 * run], weights[2 * run + 1] = 1.0, -1.0
        gap, variance, _ = map(float, self.moments.contrast(weights))
        half = quantile * math.sqrt(variance)
        return max(0.0, abs(gap) - half), abs(gap) + half


def _rank_runs(forms: _QuadraticForms, level: float) -> SpreadRanking:
    pairs = list(combinations(range(forms.runs), 2))
    estimates = [forms.estimate({a: 1.0, b: -1.0}) for a, b in pairs]
    df = max(1.0, float(forms.moments.clusters.min()) - 1)
    p_values = [t_two_sided(gap / se, df) if se > 0 else None for gap, se in estimates]
    gaps = tuple(
        SpreadDifference(a, b, gap, p, adjusted)
        for (a, b), (gap, _), p, adjusted in zip(pairs, estimates, p_values, holm(p_values), strict=True)
    )
    significant = [gap for gap in gaps if gap.p_adjusted is not None and gap.p_adjusted <= 1 - level + 1e-12]
    spreads = []
    for run in range(forms.runs):
        square, se = forms.estimate({run: 1.0})
        own = [gap for gap in significant if run in (gap.a, gap.b)]
        rank = 1 + sum(gap.difference > 0 if gap.a == run else gap.difference < 0 for gap in own)
        not_tied = {run}.union(*((gap.a, gap.b) for gap in own))
        tied = tuple(other for other in range(forms.runs) if other not in not_tied)
        quantile, reason = t_quantile((1 + level) / 2, df), None if se else NO_VARIATION
        low, high = forms.interval(run, square, se, quantile) if se else (None, None)
        spreads.append(GroupSpread(math.sqrt(max(square, 0.0)), low, high, rank, tied, reason))
    return SpreadRanking(tuple(spreads), gaps, forms.groups)


def _common_groups(runs: Ints, groups: Ints, codes: Ints, n_runs: int) -> Ints:
    """The groups that have two clusters or more in every run."""
    names, of_group = np.unique(groups, return_inverse=True)
    has_several = clusters_per_cell(of_group * n_runs + runs, codes, names.size * n_runs) >= 2
    common: Ints = names[has_several.reshape(-1, n_runs).all(axis=1)]
    return common
