"""The check on the default test: exchange group labels between clusters and look where the real gap falls."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.stats._arrays import (
    Bools,
    Floats,
    Ids,
    Ints,
    RandomSource,
    checked_group,
    checked_values,
    cluster_codes,
    weighted_counts,
)
from evenhand.stats.results import NO_VALUES, NO_VARIATION, ONE_CLUSTER, Permutation

_BLOCK = 2_000_000
"""Cluster labels held in memory at a time."""
_CANCELLED = 1e-13
"""A variance below this share of its terms is what cancellation left over."""
_TIE = 1e-9
"""Statistics this close (relative) are ties that rounding split."""


def cluster_permutation(
    y: npt.ArrayLike,
    group: npt.ArrayLike,
    clusters: Ids = None,
    *,
    rng: RandomSource,
    resamples: int = 10_000,
) -> Permutation:
    """The two-sided p-value of a gap between ``group`` (True) and the rest under exchanged labels.

    Clusters that lie in one group trade their labels among each other; a cluster that reaches over both
    exchanges its two sides or not (for pairs: a sign flip). The statistic is the gap over its
    cluster-robust standard error, so the test also holds where one group merely varies more (Janssen 1997).
    All arrangements are looked at where they are no more than ``resamples``; else p = (1 + as extreme) /
    (resamples + 1).
    """
    values = checked_values(y)
    in_group = checked_group(group, values.size)
    sides = _Sides.of(values, in_group, cluster_codes(clusters, values.size))
    reason = sides.null_reason(values)
    if reason:
        return _result(sides, values.size, reason=reason)
    observed = float(sides.statistics(np.zeros((1, sides.n_clusters), dtype=np.bool_))[0])
    total = sides.arrangements()
    is_exact = total <= resamples
    blocks = sides.every() if is_exact else sides.drawn(np.random.default_rng(rng), resamples)
    bar = observed * (1 - _TIE)
    extreme = sum(int(np.count_nonzero(sides.statistics(block) >= bar)) for block in blocks)
    p = extreme / total if is_exact else (1 + extreme) / (resamples + 1)
    return _result(sides, values.size, p=p, arrangements=total if is_exact else resamples, is_exact=is_exact)


class _Sides(NamedTuple):
    """For each cluster, what it has inside (column 0) and outside (column 1) the group."""

    sums: Floats
    sizes: Floats

    @classmethod
    def of(cls, y: Floats, group: Bools, codes: Ints) -> _Sides:
        """Clusters sorted by what they hold, so that neither row order nor names decide the draw."""
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
        """Which clusters reach over both sides."""
        both: Bools = self.sizes.min(axis=1) > 0
        return both

    @property
    def inside(self) -> Bools:
        """Which of the one-sided clusters are in the group."""
        inside: Bools = self.sizes[~self.spans, 0] > 0
        return inside

    def null_reason(self, y: Floats) -> str | None:
        """Why there can be no p-value."""
        if not self.n_clusters or self.sizes.sum(axis=0).min() == 0:
            return NO_VALUES
        if np.count_nonzero(self.sizes, axis=0).min() < 2:
            return ONE_CLUSTER
        return NO_VARIATION if float(np.ptp(y)) == 0 else None

    def gap(self) -> float:
        """Mean inside minus mean outside."""
        inside, outside = self.sums.sum(axis=0) / self.sizes.sum(axis=0)
        return float(inside - outside)

    def arrangements(self) -> int:
        """How many ways there are to label the clusters."""
        flips = int(np.count_nonzero(self.spans))
        return math.comb(self.inside.size, int(self.inside.sum())) << flips

    def every(self) -> Iterator[Bools]:
        """Every arrangement, in blocks: which clusters exchange their sides."""
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
            yield block

    def drawn(self, generator: np.random.Generator, resamples: int) -> Iterator[Bools]:
        """Random arrangements, in blocks."""
        spans, inside = self.spans, self.inside
        rows = max(1, _BLOCK // self.n_clusters)
        for start in range(0, resamples, rows):
            block = np.empty((min(rows, resamples - start), self.n_clusters), dtype=np.bool_)
            labels = np.broadcast_to(inside, (block.shape[0], inside.size))
            block[:, ~spans] = generator.permuted(labels, axis=1) ^ inside
            block[:, spans] = generator.random((block.shape[0], int(spans.sum())), dtype=np.float32) < 0.5
            yield block

    def statistics(self, exchanged: Bools) -> Floats:
        """|gap| / standard error under each arrangement (a row of ``exchanged``).

        With a cluster's sums s, t and sizes m, n on the two sides, its influence on the gap is (s - A m) /
        M - (t - B n) / N. The sum of its squares needs only the sums of the products of (s, m, t, n), and
        each of those is one matrix product with the exchanged labels.
        """
        straight = _products(self.sums[:, 0], self.sizes[:, 0], self.sums[:, 1], self.sizes[:, 1])
        crossed = _products(self.sums[:, 1], self.sizes[:, 1], self.sums[:, 0], self.sizes[:, 0])
        totals = straight.sum(axis=0) + exchanged.astype(np.float64) @ (crossed - straight)
        s, m, t, n = totals[:, :4].T
        gap = np.abs(s / m - t / n)
        weights = np.stack([1 / m, -s / m**2, -1 / n, t / n**2], axis=1)
        terms = weights[:, :, None] * weights[:, None, :] * totals[:, 4:].reshape(-1, 4, 4)
        variance = terms.sum(axis=(1, 2))
        has_spread = variance > _CANCELLED * np.abs(terms).sum(axis=(1, 2))
        ratio = np.divide(gap, np.sqrt(np.abs(variance)), out=np.zeros_like(gap), where=has_spread)
        return np.where(has_spread, ratio, np.where(gap > 0, np.inf, 0.0))


def _products(s: Floats, m: Floats, t: Floats, n: Floats) -> Floats:
    parts = np.stack([s, m, t, n], axis=1)
    return np.concatenate([parts, np.einsum("gi,gj->gij", parts, parts).reshape(-1, 16)], axis=1)


def _result(
    sides: _Sides,
    n: int,
    *,
    p: float | None = None,
    arrangements: int = 0,
    is_exact: bool = False,
    reason: str | None = None,
) -> Permutation:
    return Permutation(
        estimate=None if reason == NO_VALUES else sides.gap(),
        p=p,
        arrangements=arrangements,
        is_exact=is_exact,
        n=n,
        n_clusters=sides.n_clusters,
        method="cluster permutation",
        null_reason=reason,
    )
