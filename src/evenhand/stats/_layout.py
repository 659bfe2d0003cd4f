"""Every group of an axis against its baseline at once: the moments of many gaps from one table of sums.

A gap needs the sums of its two cells by cluster (`_moments`). The groups of an axis share those: the cell of
a group is its part of the table, the cell of the rest is what the clusters hold in all less that part. What
depends on who is where and not on any value (sizes, degrees of freedom) is found once a `Layout`, and serves
every output and every cut of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from evenhand.stats._arrays import Bools, Floats, Ints, weighted_counts
from evenhand.stats._moments import rounding_floor

_BLOCK = 250_000
"""Cluster sums worked on at a time: they stay in the cache of one core."""

_KEPT = 5_000_000
"""Groups x clusters up to which the cells of gaps are kept between outputs."""


class Cells(NamedTuple):
    """What the two cells of every gap are, whatever the values; axes: gaps, then cells."""

    sizes: Floats
    clusters: Ints
    kish: Floats
    n_clusters: Ints
    design: Floats
    """As in `Moments`, of shape (gaps, 2, 2)."""


class Spreads(NamedTuple):
    """What values make of every gap; axes: outputs, gaps, then cells."""

    means: Floats
    covariance: Floats
    fourth: Floats


class _Cell(NamedTuple):
    """One cell: its clusters, their rows, and what turns their residual sums into parts of the mean."""

    clusters: Ints
    n: Floats
    size: float
    scale: Floats

    @classmethod
    def of(cls, clusters: Ints, n: Floats) -> _Cell:
        size = float(n.sum())
        others = 1 - n / max(1.0, size)
        scale = np.zeros_like(n)
        np.divide(1, size * np.sqrt(np.maximum(others, 0)), out=scale, where=others > 0)
        return cls(clusters, n, size, scale)


@dataclass(frozen=True)
class Layout:
    """Rows in groups and clusters; each group stands against one other group, or against all other rows."""

    groups: Ints
    """The group of each row."""
    clusters: Ints
    """The cluster of each row."""
    n_groups: int
    baseline: int | None = None
    """The group that the others are compared with; None is all other rows."""

    @cached_property
    def _pairs(self) -> tuple[Ints, Ints, Ints, Floats]:
        """Where each row goes among the (group, cluster) pairs; starts of groups; clusters; rows a pair."""
        _, of_cluster = np.unique(self.clusters, return_inverse=True)
        n_clusters = int(of_cluster.max(initial=-1)) + 1
        found, place, n = np.unique(
            self.groups * n_clusters + of_cluster, return_inverse=True, return_counts=True
        )
        starts = np.searchsorted(found, np.arange(self.n_groups + 1) * n_clusters)
        return place, starts, found % max(1, n_clusters), n.astype(np.float64)

    @cached_property
    def n_clusters(self) -> int:
        """Clusters over all rows."""
        return int(self._pairs[2].max(initial=-1)) + 1

    def _own(self, group: int) -> slice:
        starts = self._pairs[1]
        return slice(int(starts[group]), int(starts[group + 1]))

    def _inside(self, group: int) -> _Cell:
        _, _, clusters, n = self._pairs
        own = self._own(group)
        return _Cell.of(clusters[own], n[own])

    def _outside(self, group: int) -> _Cell:
        if self.baseline is not None:
            return self._inside(self.baseline)
        _, _, clusters, n = self._pairs
        rows = weighted_counts(clusters, n, self.n_clusters)
        own = self._own(group)
        rows[clusters[own]] -= n[own]
        there = np.flatnonzero(rows)
        return _Cell.of(there, rows[there])

    @property
    def _gaps(self) -> Iterable[_Gap]:
        # Kept where they are not too large: each holds an entry for every cluster.
        if self.n_groups * self.n_clusters <= _KEPT:
            return self._kept
        return (self._gap(group) for group in range(self.n_groups))

    @cached_property
    def _kept(self) -> list[_Gap]:
        return [self._gap(group) for group in range(self.n_groups)]

    def _gap(self, group: int) -> _Gap:
        return _Gap.of(self._inside(group), self._outside(group))

    @cached_property
    def cells(self) -> Cells:
        """What the cells of every gap are; a cell without rows has zeros."""
        return Cells(*(np.array(part) for part in zip(*(gap.facts() for gap in self._gaps), strict=True)))

    def spreads(self, values: Floats) -> Spreads:
        """The means of every gap's cells and how far they are known, for each row of ``values``."""
        if not values.size:
            shape = (len(values), self.n_groups)
            return Spreads(np.zeros((*shape, 2)), np.zeros((*shape, 2, 2)), np.zeros((*shape, 2)))
        step = max(1, _BLOCK // self.n_clusters)
        parts = [self._spreads(values[start : start + step]) for start in range(0, len(values), step)]
        return Spreads(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def _spreads(self, values: Floats) -> Spreads:
        place, _, clusters, n = self._pairs
        low, high = self._ranges(values)
        # Equal values must come out as exactly equal means.
        centre = np.where(np.ptp(values, axis=1) > 0, values.mean(axis=1), values[:, 0])[:, None]
        totals = np.stack([weighted_counts(place, row, n.size) for row in values - centre])
        everywhere = np.stack([weighted_counts(clusters, row, self.n_clusters) for row in totals])
        shape = (len(values), self.n_groups)
        found = Spreads(np.zeros((*shape, 2)), np.zeros((*shape, 2, 2)), np.zeros((*shape, 2)))
        for group, gap in enumerate(self._gaps):
            inside = totals[:, self._own(group)]
            outside = self._sums_outside(group, gap, totals, everywhere)
            gap.fill(found, group, inside, outside)
        found.means[:] += centre[:, :, None]
        return _without_rounding(found, low, high)

    def _sums_outside(self, group: int, gap: _Gap, totals: Floats, everywhere: Floats) -> Floats:
        if self.baseline is not None:
            return totals[:, self._own(self.baseline)]
        rest = everywhere.copy()
        rest[:, gap.inside.clusters] -= totals[:, self._own(group)]
        return rest if gap.outside.clusters.size == self.n_clusters else rest[:, gap.outside.clusters]

    def _ranges(self, values: Floats) -> tuple[Floats, Floats]:
        """The lowest and highest value of both cells of every gap together."""
        if self.baseline is None:
            every = np.ones((1, self.n_groups))
            return values.min(axis=1, keepdims=True) * every, values.max(axis=1, keepdims=True) * every
        low, high = (np.full((len(values), self.n_groups), end) for end in (np.inf, -np.inf))
        for row, of_row in enumerate(values):
            np.minimum.at(low[row], self.groups, of_row)
            np.maximum.at(high[row], self.groups, of_row)
        base = slice(self.baseline, self.baseline + 1)
        return np.minimum(low, low[:, base]), np.maximum(high, high[:, base])


class _Gap(NamedTuple):
    """The cells of one gap, and the clusters that reach over both."""

    inside: _Cell
    outside: _Cell
    both: tuple[Ints, Ints]
    """Where the shared clusters lie in the two cells."""

    @classmethod
    def of(cls, inside: _Cell, outside: _Cell) -> _Gap:
        _, first, second = np.intersect1d(
            inside.clusters, outside.clusters, assume_unique=True, return_indices=True
        )
        return cls(inside, outside, (first, second))

    def facts(self) -> tuple[Floats, Ints, Floats, int, Floats]:
        """The sizes, clusters, Kish sizes, clusters of both, and design of the gap."""
        cells = (self.inside, self.outside)
        sizes = np.array([cell.size for cell in cells])
        clusters = np.array([cell.clusters.size for cell in cells])
        kish = np.array([cell.size**2 / max(1.0, float(cell.n @ cell.n)) for cell in cells])
        union = int(clusters.sum()) - self.both[0].size
        return sizes, clusters, kish, union, self._design()

    def _design(self) -> Floats:
        cells = (self.inside, self.outside)
        own = [cell.scale**2 * cell.n for cell in cells]
        pull = [cell.scale * cell.n / np.sqrt(max(1.0, cell.size)) for cell in cells]
        found = np.zeros((2, 2))
        for cell in (0, 1):
            found[cell, cell] = _design(own[cell], own[cell], pull[cell], pull[cell])
        (own_a, pull_a), (own_b, pull_b) = (
            (own[cell][at], pull[cell][at]) for cell, at in enumerate(self.both)
        )
        found[0, 1] = found[1, 0] = _design(own_a, own_b, pull_a, pull_b)
        return found

    def fill(self, found: Spreads, group: int, inside: Floats, outside: Floats) -> None:
        """Put in the means (not yet shifted back), covariances and fourth moments of a group's gap."""
        shared = []
        for number, (cell, totals) in enumerate(((self.inside, inside), (self.outside, outside))):
            shift = totals.sum(axis=1) / max(1.0, cell.size)
            residual = totals - shift[:, None] * cell.n
            residual *= cell.scale
            shared.append(residual[:, self.both[number]])
            residual *= residual
            found.means[:, group, number] = shift
            found.covariance[:, group, number, number] = residual.sum(axis=1)
            found.fourth[:, group, number] = np.einsum("qc,qc->q", residual, residual)
        between = np.einsum("qc,qc->q", *shared)
        found.covariance[:, group, 0, 1] = found.covariance[:, group, 1, 0] = between


def _design(own_a: Floats, own_b: Floats, pull_a: Floats, pull_b: Floats) -> float:
    crossed = float(own_a @ pull_b**2) + float(pull_a**2 @ own_b)
    return float(own_a @ own_b) - crossed + float(pull_a @ pull_b) ** 2


def _without_rounding(found: Spreads, low: Floats, high: Floats) -> Spreads:
    """Exact zeros where a covariance is but rounding, and equal means where all values are equal."""
    diagonal = np.diagonal(found.covariance, axis1=2, axis2=3)
    rounding: Bools = diagonal <= rounding_floor(high - low)[:, :, None]
    zero = rounding[:, :, :, None] | rounding[:, :, None, :]
    flat = (high == low)[:, :, None]
    return Spreads(
        means=np.where(flat, low[:, :, None], found.means),
        covariance=np.where(zero | flat[:, :, :, None], 0.0, found.covariance),
        fourth=np.where(flat, 0.0, found.fourth),
    )
