"""Hard-debiasing word by word, as the paper's appendix reads: slow, and kept for that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]


def debias_slowly(
    vectors: Mapping[str, Vector],
    *,
    definitional: Sequence[Sequence[str]],
    equalise: Sequence[Sequence[str]],
    specific: frozenset[str],
) -> dict[str, Vector]:
    unit = {word: vector / np.linalg.norm(vector) for word, vector in vectors.items()}
    direction = _direction(unit, definitional)
    done = {}
    for word, vector in unit.items():
        kept = vector if word in specific else vector - (vector @ direction) * direction
        done[word] = kept / np.linalg.norm(kept)
    for first, second in equalise:
        for a, b in dict.fromkeys(
            [
                (first.lower(), second.lower()),
                (first.title(), second.title()),
                (first.upper(), second.upper()),
            ]
        ):
            if a in done and b in done:
                mean = (done[a] + done[b]) / 2
                mean = mean - (mean @ direction) * direction
                part = np.sqrt(1 - mean @ mean)
                if (done[a] - done[b]) @ direction < 0:
                    part = -part
                done[a], done[b] = mean + part * direction, mean - part * direction
    return {word: vector / np.linalg.norm(vector) for word, vector in done.items()}


def _direction(unit: Mapping[str, Vector], pairs: Sequence[Sequence[str]]) -> Vector:
    rows = []
    for a, b in pairs:
        if a in unit and b in unit:
            middle = (unit[a] + unit[b]) / 2
            rows += [unit[a] - middle, unit[b] - middle]
    values, axes = np.linalg.eigh(np.array(rows).T @ np.array(rows))
    return np.asarray(axes[:, values.argmax()])
