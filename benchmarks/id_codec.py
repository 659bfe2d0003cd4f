"""Token ids written as numbers, for benchmarks in which the tokenizer is not what is timed."""

from __future__ import annotations

from collections.abc import Sequence


class IdCodec:
    """A codec whose texts are numbers."""

    start = None
    ends: frozenset[int] = frozenset()
    digest = "ids"

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [[int(word) for word in text.split()] for text in texts]

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join(f"{token} " for token in tokens)
