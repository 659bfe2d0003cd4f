"""Diversity of a set of texts: distinct n-grams, repetition inside texts, length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from evenhand.core.protocols import Cell
from evenhand.core.records import MetricInfo, OutputInfo, Text, Value
from evenhand.text.ngrams import pieces

VERSION = "1"
REPEATED = 4
"""The n-grams repetition is counted over."""
_OUTPUTS = (
    OutputInfo("distinct_1", "proportion", "more varied", low=0.0, high=1.0),
    OutputInfo("distinct_2", "proportion", "more varied", low=0.0, high=1.0),
    OutputInfo("distinct_3", "proportion", "more varied", low=0.0, high=1.0),
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
        version=VERSION,
        outputs=_OUTPUTS,
        summary="How varied, repetitive and long the texts of a set are.",
        primary=(),
        scope="continuation",
        null_when="The set has no n-gram of that length (reason: empty).",
        citation="Li et al. A Diversity-Promoting Objective Function for Neural Conversation Models. 2016.",
        failures=("Distinct-n falls as a set grows: only sets of about the same size can be compared.",),
    )

    def measure(self, cells: Mapping[Cell, Sequence[Text]]) -> Mapping[Cell, Mapping[str, Value]]:
        """For each cell its five numbers."""
        return {cell: _measured([pieces(text.text) for text in texts]) for cell, texts in cells.items()}


def _measured(texts: Sequence[Sequence[str]]) -> dict[str, Value]:
    distinct = {f"distinct_{n}": _distinct(texts, n) for n in (1, 2, 3)}
    grams = [list(_grams(text, REPEATED)) for text in texts]
    total, once = sum(map(len, grams)), sum(len(set(of_text)) for of_text in grams)
    length = Value(sum(map(len, texts)) / len(texts)) if texts else Value(None, null_reason="empty")
    return {**distinct, "repetition": _share(total - once, total), "length": length}


def _distinct(texts: Sequence[Sequence[str]], n: int) -> Value:
    total = sum(max(0, len(text) - n + 1) for text in texts)
    return _share(len({gram for text in texts for gram in _grams(text, n)}), total)


def _grams(text: Sequence[str], n: int) -> Iterator[tuple[str, ...]]:
    return zip(*(text[start:] for start in range(n)), strict=False)


def _share(part: int, total: int) -> Value:
    return Value(part / total) if total else Value(None, null_reason="empty")
