"""Slow, obvious twins of the distances and rank effects."""

from __future__ import annotations

import math
from collections.abc import Sequence


def wasserstein2_slowly(a: Sequence[float], b: Sequence[float]) -> float:
    """Repeat both samples up to a common length, then pair them in order."""
    length = math.lcm(len(a), len(b))
    long_a = sorted(x for x in a for _ in range(length // len(a)))
    long_b = sorted(x for x in b for _ in range(length // len(b)))
    return math.sqrt(sum((x - y) ** 2 for x, y in zip(long_a, long_b, strict=True)) / length)


def cliffs_delta_slowly(a: Sequence[float], b: Sequence[float]) -> float:
    """Every value of a against every value of b."""
    return sum((x > y) - (x < y) for x in a for y in b) / (len(a) * len(b))
