"""A slow, obvious twin of Krippendorff's alpha: every pair of ratings, the metrics as he defines them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence


def alpha_slowly(items: Sequence[Hashable], values: Sequence[float], scale: str) -> float:
    """1 - observed / expected disagreement over pairs of ratings."""
    by_item: dict[Hashable, list[float]] = defaultdict(list)
    for item, value in zip(items, values, strict=True):
        by_item[item].append(value)
    units = [ratings for ratings in by_item.values() if len(ratings) > 1]
    pooled = [value for ratings in units for value in ratings]
    metric = _metric(scale, Counter(pooled))
    observed = sum(_pairs(ratings, metric) / (len(ratings) - 1) for ratings in units) / len(pooled)
    expected = _pairs(pooled, metric) / (len(pooled) * (len(pooled) - 1))
    return 1 - observed / expected


def _pairs(values: Sequence[float], metric: Callable[[float, float], float]) -> float:
    return sum(metric(a, b) for i, a in enumerate(values) for j, b in enumerate(values) if i != j)


def _metric(scale: str, totals: Counter[float]) -> Callable[[float, float], float]:
    def ordinal(a: float, b: float) -> float:
        low, high = min(a, b), max(a, b)
        between = sum(n for value, n in totals.items() if low <= value <= high)
        return float((between - (totals[a] + totals[b]) / 2) ** 2)

    def nominal(a: float, b: float) -> float:
        return float(a != b)

    def interval(a: float, b: float) -> float:
        return (a - b) ** 2

    return {"nominal": nominal, "ordinal": ordinal, "interval": interval}[scale]
