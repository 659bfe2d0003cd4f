"""How often a classifier with one answer a text can be right at most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def ceiling(texts: Sequence[str], labels: Sequence[str]) -> float:
    """The largest possible accuracy where the same text may stand under several labels; 1 where none does.

    For each text its most frequent label is right.

    >>> ceiling(["a", "a", "b"], ["joy", "fear", "joy"])
    0.6666666666666666
    """
    found: dict[str, Counter[str]] = {}
    for text, label in zip(texts, labels, strict=True):
        found.setdefault(text, Counter())[label] += 1
    return sum(max(counts.values()) for counts in found.values()) / len(texts) if texts else 1.0
