"""Every group of an axis against its baseline at once: the moments of many gaps from one table of sums.

What depends on who is where and not on any value (sizes, degrees of freedom) is computed once a `GapLayout`,
and serves every output and every cut of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evenhand.stats._arrays import Floats, Ints
from evenhand.stats._moments import CellMoments, ClusterTable
from evenhand.stats.contrasts import GAP, ContrastTests

_BLOCK = 250_000
"""Sums worked on at a time."""
_MOST_CACHED = 5_000_000
"""Groups x sums up to which the tables of gaps are kept between outputs."""


@dataclass(frozen=True)
class GapLayout:
    """Rows in groups and clusters; each group stands against one other group, or against all other rows."""

    groups: Ints
    """The group of each row."""
    clusters: Ints
    """The cluster of each row."""
    n_groups: int
    baseline: int | None = None
    """The group that the others are compared with; None is all other rows."""

    @cached_property
    def _sums(self) -> ClusterTable:
        _, clusters = np.unique(self.clusters, return_inverse=True)
        return ClusterTable.of(self.groups, clusters, self.n_groups)

    @property
    def _gaps(self) -> Iterable[tuple[Ints, ClusterTable]]:
        if self.n_groups * self._sums.n.size <= _MOST_CACHED:
            return self._cached_gaps
        return map(self._gap, range(self.n_groups))

    @cached_property
    def _cached_gaps(self) -> list[tuple[Ints, ClusterTable]]:
        return [self._gap(group) for group in range(self.n_groups)]

    def _gap(self, group: int) -> tuple[Ints, ClusterTable]:
        """Which sums a group and its baseline have, and their table."""
        sums, base = self._sums, self.baseline
        used = np.flatnonzero((sums.cell == group) | (base is None) | (sums.cell == base))
        outside = sums.cell[used] != group
        return used, ClusterTable.of(outside.astype(np.intp), sums.cluster[used], 2, sums.n[used])

    def moments(self, values: Floats) -> CellMoments:
        """The moments of every gap for each row of ``values``; a cell without rows has zeros."""
        low, high = self._ends(values, np.minimum, np.inf), self._ends(values, np.maximum, -np.inf)
        centre = values.mean(axis=1) if values.size else np.zeros(len(values))
        totals = np.zeros((len(values), self._sums.n.size))
        for of_output, row, mean in zip(totals, values, centre, strict=True):
            of_output[:] = self._sums.sum_pairs(row[None] - mean)
        step = max(1, _BLOCK // max(1, self._sums.n.size))
        blocks = [slice(at, at + step) for at in range(0, max(1, len(values)), step)]
        return CellMoments.stack(
            [
                CellMoments.join(
                    [
                        table.moments(
                            table.sum_pairs(totals[at, used]), centre[at], low[at, group], high[at, group]
                        )
                        for at in blocks
                    ]
                )
                for group, (used, table) in enumerate(self._gaps)
            ]
        )

    def _ends(self, values: Floats, fold: np.ufunc, start: float) -> Floats:
        """The lowest or highest value of both cells of every gap together: outputs x groups."""
        if self.baseline is None:
            ends = fold.reduce(values, axis=1, initial=start, keepdims=True)
            return np.repeat(ends, self.n_groups, axis=1)
        ends = np.full((len(values), self.n_groups), start)
        for of_output, row in zip(ends, values, strict=True):
            fold.at(of_output, self.groups, row)
        both: Floats = fold(ends, ends[:, [self.baseline]])
        return both


def compare_many_gaps(layout: GapLayout, values: Floats, *, is_share: bool, level: float) -> ContrastTests:
    """Each group against its baseline for each row of ``values``, outputs that the same texts have."""
    return ContrastTests.of(layout.moments(values), GAP, is_share=is_share, level=level)
