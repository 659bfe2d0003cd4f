"""Diversity of a set of texts: distinct n-grams, repetition inside texts, length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from evenhand.core.protocols import Cell
from evenhand.core.records import MetricInfo, OutputInfo, Text, Value
from evenhand.text.word_tokens import tokenize

Ints: TypeAlias = npt.NDArray[np.int64]
REPETITION_ORDER = 4
"""The n-grams repetition is counted over."""
_OUTPUTS = (
    *(OutputInfo(f"distinct_{n}", "proportion", "more varied", low=0.0, high=1.0) for n in (1, 2, 3)),
    OutputInfo("repetition", "proportion", "more repetitive", low=0.0, high=1.0),
    OutputInfo("length", "continuous", "longer", low=0.0),
)


class Diversity:
    """Distinct-1, 2 and 3: different n-grams over all n-grams of the set (Li et al. 2016), in [0, 1].

    ``repetition`` is the share of 4-grams that stood earlier in the same text; ``length`` the mean number of
    words and marks. Distinct-n falls with the size of a set: compare sets of about the same size only.
    """

    info = MetricInfo(
        name="diversity",
        version="1",
        outputs=_OUTPUTS,
        summary="How varied, repetitive and long the texts of a set are.",
        primary=(),
        scope="continuation",
        null_when="The set has no n-gram of that length (reason: empty).",
        citation="Li et al. A Diversity-Promoting Objective Function for Neural Conversation Models. 2016.",
        failures=("Distinct-n falls as a set grows: only sets of about the same size can be compared.",),
    )

    def __init__(self) -> None:
        self._texts = _CountCache()

    def measure(self, cells: Mapping[Cell, Sequence[Text]]) -> Mapping[Cell, Mapping[str, Value]]:
        """For each cell its five numbers."""
        values = {}
        for cell, texts in cells.items():
            counts = [self._texts[text.text] for text in texts]
            own = {f"distinct_{n}": _distinct(counts, n, self._texts.bits) for n in (1, 2, 3)}
            own["repetition"] = _share(
                sum(text.repeated for text in counts), sum(text.fours for text in counts)
            )
            values[cell] = own | {"length": _share(sum(len(text.words) for text in counts), len(texts))}
        return values


class _TextCounts(NamedTuple):
    """A text as the numbers of its words, and how many of its 4-grams stood earlier in it."""

    words: Ints
    fours: int
    repeated: int


class _CountCache(dict[str, _TextCounts]):
    """Texts already counted: the sets of a jackknife share nearly all of theirs."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers: dict[str, int] = {}

    def __missing__(self, text: str) -> _TextCounts:
        words = tokenize(text)
        numbers = [self._numbers.setdefault(word, len(self._numbers)) for word in words]
        fours = list(zip(*(numbers[start:] for start in range(REPETITION_ORDER)), strict=False))
        counted = _TextCounts(np.array(numbers, dtype=np.int64), len(fours), len(fours) - len(set(fours)))
        self[text] = counted
        return counted

    @property
    def bits(self) -> int:
        """Bits that hold the number of any word."""
        return max(1, len(self._numbers).bit_length())


def _distinct(texts: Sequence[_TextCounts], n: int, bits: int) -> Value:
    long = [text.words for text in texts if len(text.words) >= n]
    if not long:
        return _share(0, 0)
    # The words of an n-gram side by side in one number; where they do not fit, n-grams are compared as rows.
    columns = [np.concatenate([words[at : len(words) - n + 1 + at] for words in long]) for at in range(n)]
    if n * bits >= 64:
        return _share(len(np.unique(np.column_stack(columns), axis=0)), len(columns[0]))
    # Sorting is several times as fast as numpy's hash table.
    packed = np.sort(reduce(lambda left, right: (left << bits) | right, columns))
    return _share(1 + int(np.count_nonzero(np.diff(packed))), len(packed))


def _share(part: int, total: int) -> Value:
    return Value(part / total) if total else Value(None, null_reason="empty")
