"""Modified Kneser-Ney straight from its definition: every count by going through the texts again."""

from __future__ import annotations

from collections.abc import Sequence

Rows = list[tuple[str, ...]]


class SlowKneserNey:
    """P(word | context) by recursion; nothing is stored but the texts."""

    def __init__(self, texts: Sequence[Sequence[str]], order: int) -> None:
        self.rows: Rows = [("<s>", *text, "</s>") for text in texts]
        self.order = order
        self.words = {word for row in self.rows for word in row} - {"<s>"}

    def raw(self, gram: tuple[str, ...]) -> int:
        size = len(gram)
        return sum(row[i : i + size] == gram for row in self.rows for i in range(len(row)))

    def count(self, gram: tuple[str, ...]) -> int:
        if gram[0] == "<s>" or len(gram) == self.order:
            return 0 if gram == ("<s>",) else self.raw(gram)
        return sum(self.raw((word, *gram)) > 0 for word in [*self.words, "<s>"])

    def grams(self, size: int) -> set[tuple[str, ...]]:
        return {row[i : i + size] for row in self.rows for i in range(len(row) - size + 1)} - {("<s>",)}

    def discount(self, size: int, count: int) -> float:
        if count == 0:
            return 0.0
        seen = [0, *(sum(self.count(g) == k for g in self.grams(size)) for k in (1, 2, 3, 4))]
        if 0 in seen[1:4]:
            return (0.5, 1.0, 1.5)[min(count, 3) - 1]
        y = seen[1] / (seen[1] + 2 * seen[2])
        found = [k - (k + 1) * y * seen[k + 1] / seen[k] for k in (1, 2, 3)]
        if any(not 0 < d <= k for k, d in enumerate(found, start=1)):
            found = [0.5, 1.0, 1.5]
        return found[min(count, 3) - 1]

    def probability(self, word: str, context: tuple[str, ...]) -> float:
        """Of a word of the texts after a context, the interpolation spelled out."""
        counts = {w: self.count((*context, w)) for w in self.words}
        total = sum(counts.values())
        shorter = self.probability(word, context[1:]) if context else 1 / (len(self.words) + 1)
        if total == 0:
            return shorter
        size = len(context) + 1
        own = max(0.0, counts.get(word, 0) - self.discount(size, counts.get(word, 0))) / total
        left = sum(self.discount(size, count) for count in counts.values()) / total
        return own + left * shorter
