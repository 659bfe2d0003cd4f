"""The affective paper's measures, written out slowly: lists in, plain numbers out."""

from __future__ import annotations

import math
from collections.abc import Sequence


def parity(classes_a: Sequence[str], classes_b: Sequence[str], emotion: str) -> float | None:
    """Equation 3: the smaller probability over the larger."""
    share_a = sum(name == emotion for name in classes_a) / len(classes_a)
    share_b = sum(name == emotion for name in classes_b) / len(classes_b)
    larger = max(share_a, share_b)
    return min(share_a, share_b) / larger if larger > 0 else None


def avg_delta(a: Sequence[float], b: Sequence[float]) -> float:
    """Equation 4."""
    total = 0.0
    for first, second in zip(a, b, strict=True):
        total += abs(first - second)
    return total / len(a)


def acs(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Equation 5; pairs whose second intensity is 0 have no ratio."""
    parts = [1 - first / second for first, second in zip(a, b, strict=True) if second != 0]
    return sum(parts) / len(parts) if parts else None


def t_statistic(a: Sequence[float], b: Sequence[float]) -> float:
    """Student's t of the differences."""
    gaps = [first - second for first, second in zip(a, b, strict=True)]
    mean = sum(gaps) / len(gaps)
    variance = sum((gap - mean) ** 2 for gap in gaps) / (len(gaps) - 1)
    return mean / math.sqrt(variance / len(gaps))


def agreeing(
    classes_a: Sequence[str], classes_b: Sequence[str], truth: Sequence[str | None], emotion: str
) -> list[int]:
    """The pairs in which both predictions are the emotion, and the ground truth too where there is one."""
    kept = []
    for place, (first, second, true) in enumerate(zip(classes_a, classes_b, truth, strict=True)):
        if first == emotion and second == emotion and true in (None, emotion):
            kept.append(place)
    return kept
