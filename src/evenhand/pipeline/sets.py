"""Numbers of sets of texts, with intervals from leaving clusters out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from evenhand.core.protocols import Cell, SetMetric
from evenhand.core.records import Estimate, Text, Value
from evenhand.stats.results import NO_VALUES, ONE_CLUSTER

METHOD = "cluster jackknife"
BLOCKS = 20
"""At most so many blocks of clusters are left out, one at a time."""


@dataclass(frozen=True, slots=True)
class ClusteredTexts:
    """The texts of a set and the cluster of each; texts of one cluster are not independent."""

    texts: Sequence[Text]
    clusters: Sequence[str]

    def blocks(self) -> list[list[Text]]:
        """The set without each block of clusters in turn; clusters are dealt to blocks in order of name."""
        names = sorted(set(self.clusters))
        block = {name: place % BLOCKS for place, name in enumerate(names)}
        rows = list(zip(self.texts, self.clusters, strict=True))
        return [
            [text for text, cluster in rows if block[cluster] != left_out]
            for left_out in range(min(BLOCKS, len(names)))
        ]


def set_estimates(
    metric: SetMetric, cells: Mapping[Cell, ClusteredTexts], *, level: float = 0.95
) -> dict[Cell, dict[str, Estimate]]:
    """For each set and output its number, with a jackknife interval over clusters.

    A bootstrap repeats texts, and repeated texts hold no new n-gram: distinct-n would come out too low.
    """
    whole = metric.measure({cell: given.texts for cell, given in cells.items()})
    return {cell: _estimates(metric, cell, given, whole[cell], level) for cell, given in cells.items()}


def _estimates(
    metric: SetMetric, cell: Cell, given: ClusteredTexts, found: Mapping[str, Value], level: float
) -> dict[str, Estimate]:
    clusters = len(set(given.clusters))
    parts = [metric.measure({cell: texts})[cell] for texts in given.blocks()] if clusters > 1 else []
    return {
        output: _estimate(value, [part[output].value for part in parts], (len(given.texts), clusters), level)
        for output, value in found.items()
    }


def _estimate(value: Value, parts: Sequence[float | None], sizes: tuple[int, int], level: float) -> Estimate:
    n, clusters = sizes
    if value.value is None:
        return Estimate(None, None, None, level, METHOD, n, 0, clusters, value.null_reason or NO_VALUES)
    known = np.array([part for part in parts if part is not None])
    if known.size < 2:
        return Estimate(value.value, None, None, level, METHOD, n, 0, clusters, ONE_CLUSTER)
    error = np.sqrt((known.size - 1) / known.size * np.sum((known - known.mean()) ** 2))
    half = float(student.ppf((1 + level) / 2, known.size - 1) * error)
    return Estimate(value.value, value.value - half, value.value + half, level, METHOD, n, 0, clusters)
