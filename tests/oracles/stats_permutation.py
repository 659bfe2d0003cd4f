"""A slow, obvious twin of the cluster permutation test: relabel rows, recompute, count."""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt


def permutation_p_slowly(
    y: npt.NDArray[np.float64], group: npt.NDArray[np.bool_], clusters: npt.NDArray[np.intp]
) -> float:
    """The exact two-sided p over every arrangement of labels."""
    names = np.unique(clusters)
    sides = {c: {bool(g) for g in group[clusters == c]} for c in names}
    pure = [c for c in names if len(sides[c]) == 1]
    mixed = [c for c in names if len(sides[c]) == 2]
    chosen = sum(True in sides[c] for c in pure)
    real = _studentised(y, group, clusters)
    hits = total = 0
    for members in itertools.combinations(pure, chosen):
        for flips in itertools.product((False, True), repeat=len(mixed)):
            labels = np.isin(clusters, members)
            for cluster, flipped in zip(mixed, flips, strict=True):
                rows = clusters == cluster
                labels[rows] = group[rows] != flipped
            total += 1
            hits += _studentised(y, labels, clusters) >= real - 1e-9
    return hits / total


def _studentised(
    y: npt.NDArray[np.float64], group: npt.NDArray[np.bool_], clusters: npt.NDArray[np.intp]
) -> float:
    inside, outside = y[group].mean(), y[~group].mean()
    variance = 0.0
    for cluster in np.unique(clusters):
        a, b = y[group & (clusters == cluster)], y[~group & (clusters == cluster)]
        variance += ((a - inside).sum() / group.sum() - (b - outside).sum() / (~group).sum()) ** 2
    gap = float(abs(inside - outside))
    if variance == 0:
        return math.inf if gap > 0 else 0.0
    return gap / math.sqrt(variance)


def resample_means_slowly(
    sums: np.ndarray, sizes: np.ndarray, generator: np.random.Generator, resamples: int
) -> np.ndarray:
    """Means of clusters drawn by NumPy's generator."""
    drawn = (generator.integers(sums.size, size=sums.size, dtype=np.int32) for _ in range(resamples))
    return np.array([sums[places].sum() / sizes[places].sum() for places in drawn])


def draw_arrangements_slowly(
    spans: np.ndarray, inside: np.ndarray, generator: np.random.Generator, rows: int
) -> np.ndarray:
    """Random arrangements by NumPy's generator: which clusters exchange their sides."""
    exchanged = np.empty((rows, spans.size), dtype=np.bool_)
    labels = np.broadcast_to(inside, (rows, inside.size))
    exchanged[:, ~spans] = generator.permuted(labels, axis=1) ^ inside
    exchanged[:, spans] = generator.random((rows, int(spans.sum())), dtype=np.float32) < 0.5
    return exchanged
