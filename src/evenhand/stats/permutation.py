"""Cluster permutation test, a check on the default test: how extreme is the gap among permuted labels?"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.stats._arrays import (
    Bools,
    Floats,
    Ids,
    Ints,
    RandomSource,
    check_binary,
    check_group,
    check_values,
    encode_clusters,
    weighted_counts,
)
from evenhand.stats.contrasts import GAP
from evenhand.stats.intervals import NewcombeIntervals, effective_sizes
from evenhand.stats.results import NO_VALUES, NO_VARIATION, ONE_CLUSTER

_BLOCK = 2_000_000
"""Number of cluster labels held in memory at once."""
_CANCELLED = 1e-13
"""A variance below this share of its terms is cancellation error."""
_TIE = 1e-9
"""Statistics within this relative distance are ties, separated only by rounding."""


class Permutation(NamedTuple):
    """A p-value from exchanging group labels."""

    estimate: float | None = None
    """Mean of the group minus mean of the others."""
    p: float | None = None
    """Two-sided. Never below 1 / (arrangements + 1) unless exact."""
    arrangements: int = 0
    """Number of label arrangements evaluated."""
    is_exact: bool = False
    """True if every possible arrangement was evaluated."""
    null_reason: str | None = None


def cluster_permutation(
    y: npt.ArrayLike,
    group: npt.ArrayLike,
    clusters: Ids = None,
    *,
    rng: RandomSource,
    is_share: bool = False,
    resamples: int = 10_000,
) -> Permutation:
    """The two-sided permutation p-value of the gap between ``group`` (True) and the rest.

    Labels are permuted among clusters that lie on one side; a cluster that spans both exchanges its two
    sides or not (for pairs: a sign flip). The statistic is the gap over its cluster-robust standard error, so
    the test is also valid where only the variances of the groups differ (Janssen 1997). For shares
    (``is_share``; values of 0 and 1) it is the quantile at which the default test's interval touches 0: a
    rare label is absent from the group in most arrangements, which makes the standard error 0, so that no
    real gap would ever be significant.
    All arrangements are enumerated if there are at most ``resamples``; else p = (1 + number as extreme) /
    (resamples + 1).
    """
    values = (check_binary if is_share else check_values)(y, "y")
    in_group = check_group(group, values.size)
    sides = _Sides.of(values, in_group, encode_clusters(clusters, values.size))
    if not sides.n_clusters or sides.sizes.sum(axis=0).min() == 0:
        return Permutation(null_reason=NO_VALUES)
    inside, outside = sides.sums.sum(axis=0) / sides.sizes.sum(axis=0)
    gap, is_single = float(inside - outside), np.count_nonzero(sides.sizes, axis=0).min() < 2
    if is_single or float(np.ptp(values)) == 0:
        return Permutation(gap, null_reason=ONE_CLUSTER if is_single else NO_VARIATION)
    statistics = partial(_judge_shares, centre=float(values.mean())) if is_share else _judge_means
    observed = float(statistics(sides.totals(np.zeros((1, sides.n_clusters), dtype=np.bool_)))[0])
    total = math.comb(sides.inside.size, int(sides.inside.sum())) << int(np.count_nonzero(sides.spans))
    is_exact = total <= resamples
    blocks = sides.enumerate_totals() if is_exact else sides.draw(rng, resamples)
    threshold = observed * (1 - _TIE)
    extreme = sum(int(np.count_nonzero(statistics(block) >= threshold)) for block in blocks)
    p = extreme / total if is_exact else (1 + extreme) / (resamples + 1)
    return Permutation(gap, p, total if is_exact else resamples, is_exact)


class _Sides(NamedTuple):
    """Each cluster's sums and sizes inside (column 0) and outside (column 1) the group."""

    sums: Floats
    sizes: Floats

    @classmethod
    def of(cls, y: Floats, group: Bools, codes: Ints) -> _Sides:
        """Clusters sorted by content, so the draws do not depend on row order or names."""
        key = codes * 2 + ~group
        length = 2 * (int(codes.max(initial=-1)) + 1)
        sizes = np.bincount(key, minlength=length).reshape(-1, 2).astype(np.float64)
        centred = y - y.mean() if y.size else y
        sums = weighted_counts(key, centred, length).reshape(-1, 2)
        order = np.lexsort((sums[:, 1], sums[:, 0], sizes[:, 1], sizes[:, 0]))
        order = order[sizes[order].sum(axis=1) > 0]
        return cls(sums[order], sizes[order])

    @property
    def n_clusters(self) -> int:
        return int(self.sums.shape[0])

    @property
    def spans(self) -> Bools:
        """Which clusters span both sides."""
        both: Bools = self.sizes.min(axis=1) > 0
        return both

    @property
    def inside(self) -> Bools:
        """Which of the one-sided clusters are in the group."""
        inside: Bools = self.sizes[~self.spans, 0] > 0
        return inside

    def enumerate_totals(self) -> Iterator[Floats]:
        """The totals of every arrangement, in blocks."""
        spans, inside = self.spans, self.inside
        one_sided, two_sided = np.flatnonzero(~spans), np.flatnonzero(spans)
        chosen = itertools.combinations(one_sided.tolist(), int(inside.sum()))
        flips = itertools.product((False, True), repeat=two_sided.size)
        arrangements = itertools.product(chosen, flips)
        while rows := list(itertools.islice(arrangements, max(1, _BLOCK // self.n_clusters))):
            block = np.zeros((len(rows), self.n_clusters), dtype=np.bool_)
            for row, (members, flipped) in zip(block, rows, strict=True):
                row[list(members)] = True
                row[two_sided] = flipped
            block[:, one_sided] ^= inside
            yield self.totals(block)

    def draw(self, rng: RandomSource, resamples: int) -> Iterator[Floats]:
        """The totals of random arrangements, in blocks."""
        # Imported here: numba takes half a second, and most runs do not need it.
        from evenhand.stats import _random_draws

        rows, generator = max(1, _BLOCK // self.n_clusters), np.random.default_rng(rng)
        one_sided, two_sided = np.flatnonzero(~self.spans), np.flatnonzero(self.spans)
        straight, change = self._products()
        for start in range(0, resamples, rows):
            totals = np.tile(straight.sum(axis=0), (min(rows, resamples - start), 1))
            _random_draws.permute_totals(self.inside, one_sided, two_sided, change, generator, totals)
            yield totals

    def totals(self, exchanged: Bools) -> Floats:
        """For each arrangement the sums of (s, m, t, n), then the sums of their products."""
        straight, change = self._products()
        totals: Floats = straight.sum(axis=0) + exchanged.astype(np.float64) @ change
        return totals

    def _products(self) -> tuple[Floats, Floats]:
        """Each cluster's contribution to the totals, and the change in it when its sides are exchanged."""
        parts = np.stack([self.sums, self.sizes], axis=2).reshape(-1, 4)
        straight, crossed = (
            np.concatenate([side, np.einsum("gi,gj->gij", side, side).reshape(-1, 16)], axis=1)
            for side in (parts, parts[:, [2, 3, 0, 1]])
        )
        return straight, crossed - straight


def _judge_means(totals: Floats) -> Floats:
    """|gap| / standard error under each arrangement (a row of ``totals``).

    With a cluster's sums s, t and sizes m, n on the two sides, its influence on the gap is (s - A m) / M -
    (t - B n) / N. The sum of its squares needs only the sums of the products of (s, m, t, n), and each of
    those is one matrix product with the exchanged labels.
    """
    s, m, t, n = totals[:, :4].T
    gap = np.abs(s / m - t / n)
    weights = np.stack([1 / m, -s / m**2, -1 / n, t / n**2], axis=1)
    terms = weights[:, :, None] * weights[:, None, :] * totals[:, 4:].reshape(-1, 4, 4)
    variance = terms.sum(axis=(1, 2))
    has_spread = variance > _CANCELLED * np.abs(terms).sum(axis=(1, 2))
    ratio = np.divide(gap, np.sqrt(np.abs(variance)), out=np.zeros_like(gap), where=has_spread)
    return np.where(has_spread, ratio, np.where(gap > 0, np.inf, 0.0))


@np.errstate(divide="ignore", invalid="ignore")
def _judge_shares(totals: Floats, *, centre: float) -> Floats:
    """The quantile at which the interval of the gap touches 0; values were centred at ``centre``."""
    successes, rows, products = totals[:, :4:2], totals[:, 1:4:2], totals[:, 4:].reshape(-1, 4, 4)
    means = successes / rows
    shares = np.rint(successes + centre * rows) / rows
    # Effective numbers of clusters.
    kish = rows**2 / products[:, [1, 3], [1, 3]]
    # The influence of a cluster on the two means is (s - A m) / M and (t - B n) / N.
    influence = np.zeros((len(totals), 2, 4))
    influence[:, [0, 1], [0, 2]], influence[:, [0, 1], [1, 3]] = 1 / rows, -means / rows
    covariance = influence @ products @ influence.transpose(0, 2, 1)
    variances = np.diagonal(covariance, axis1=1, axis2=2)
    variances = np.where((shares > 0) & (shares < 1) & (variances > _CANCELLED), variances, 0.0)
    independent = variances.sum(axis=1)
    # The variance of the gap, with the covariance from clusters on both sides.
    variance = independent - 2 * np.where(variances.all(axis=1), covariance[:, 0, 1], 0.0)
    shared = np.where(independent > 0, np.maximum(variance, 0) / independent, 1.0)
    correction = np.where(kish > 1 + _TIE, kish / (kish - 1), 1.0)
    sizes = effective_sizes(shares, rows, kish, variances * correction)
    return NewcombeIntervals(shares, sizes, GAP, shared).touching_quantile()
