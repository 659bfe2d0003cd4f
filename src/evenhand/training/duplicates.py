"""Find texts that are nearly the same, so that nothing tested was seen in training under another spelling."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Final

SHINGLE: Final = 3
"""Words a shingle holds."""
SIMILAR: Final = 0.5
"""Jaccard similarity of shingles at which two texts are near-duplicates."""

_WORD: Final = re.compile(r"\w+")


def shingles(text: str, *, size: int = SHINGLE) -> frozenset[tuple[str, ...]]:
    """The distinct runs of ``size`` words of a text, lower-cased; a shorter text is one run.

    >>> sorted(shingles("To be or not to be", size=4))
    [('be', 'or', 'not', 'to'), ('or', 'not', 'to', 'be'), ('to', 'be', 'or', 'not')]
    """
    words = _WORD.findall(text.lower())
    if len(words) <= size:
        return frozenset({tuple(words)})
    return frozenset(tuple(words[start : start + size]) for start in range(len(words) - size + 1))


def near_duplicates(
    texts: Sequence[str], known: Sequence[str], *, similar: float = SIMILAR, size: int = SHINGLE
) -> list[bool]:
    """Whether each text shares at least ``similar`` of its shingles (Jaccard, 0 to 1) with some known text.

    Exact: an inverted index counts the shared shingles of every pair that shares any.
    """
    sizes: list[int] = []
    index: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, text in enumerate(known):
        found = shingles(text, size=size)
        sizes.append(len(found))
        for shingle in found:
            index[shingle].append(number)
    return [_has_twin(shingles(text, size=size), index, sizes, similar) for text in texts]


def _has_twin(
    found: frozenset[tuple[str, ...]],
    index: dict[tuple[str, ...], list[int]],
    sizes: Sequence[int],
    similar: float,
) -> bool:
    shared = Counter(number for shingle in found for number in index.get(shingle, ()))
    return any(both >= similar * (len(found) + sizes[number] - both) for number, both in shared.items())
