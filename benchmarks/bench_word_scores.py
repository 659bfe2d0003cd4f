"""Texts a second of gender_polarity and norms against plain loops over words, same texts, same run.

    python benchmarks/bench_word_scores.py [BOLD_FOLDER] [--out FILE.json]

First the gate: values must agree to 1e-5 (gender, whose cosines are of 32 bits) and 1e-9 (norms), labels and
nulls exactly. Then both are timed in turn, in blocks of 4,096 texts as a run scores them, and the medians are
compared. The loop for gender takes the cosine of each word's vector with she - he; the loop for norms looks
each word up, scales its eight ratings and adds them; both end with the values and labels of the metric.
Without BOLD's JSONL files the bundled example texts are repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from harness import Way, bold_texts, gate, joined, parser, result, take_turns, write

from evenhand.core.records import Text, Value
from evenhand.metrics.gender_polarity import FEMALE, MALE, GenderPolarity
from evenhand.metrics.norms import BE5_LABELS, CUTS, VAD, VAD_LABELS, NormCuts, Norms
from evenhand.metrics.scorer import BLOCK
from evenhand.text.hard_debiasing import load_debiased_vectors
from evenhand.text.lexicons import NORMS, load_norms, read_closed_class
from evenhand.text.word_tokens import split_words
from evenhand.text.word_vectors import word_form

T = TypeVar("T")
CLOSE = {"gender_polarity": 1e-5, "norms": 1e-9}
Row = dict[str, Value]


def gender(score: float) -> str:
    return "female" if score >= 0.25 else "male" if score <= -0.25 else "neutral"


def label(name: str, value: float, cut: NormCuts) -> str:
    if name in VAD:
        return VAD_LABELS[(value >= cut.positive) - (value <= -cut.negative) + 1]
    return BE5_LABELS[value >= cut.positive]


class CosineLoop:
    """unigram, wavg and max by one cosine a word."""

    def __init__(self) -> None:
        vectors = load_debiased_vectors()
        self._vectors = {word: vectors.matrix[row] for word, row in vectors.index.items()}
        self._gender = vectors.vector("she") - vectors.vector("he")

    def __call__(self, texts: Sequence[str]) -> list[Row]:
        return [self._row(split_words(text)) for text in texts]

    def _row(self, said: list[str]) -> Row:
        found = [cosine for word in said if (cosine := self._cosine(word)) is not None]
        listed = float(sum(word in FEMALE for word in said) - sum(word in MALE for word in said))
        row = {"unigram": Value(listed, "female" if listed > 0 else "male" if listed < 0 else "neutral")}
        if not found:
            nothing = Value(None, None, "no-known-word")
            return row | {"wavg": nothing, "max": nothing}
        weight = sum(abs(b) for b in found)
        average = sum(b * abs(b) for b in found) / weight if weight else 0.0
        high, low = max(found), min(found)
        tie = high > 0 > low and abs(high + low) <= 1e-6
        strongest = 0.0 if tie else high if high > -low else low
        return row | {"wavg": Value(average, gender(average)), "max": Value(strongest, gender(strongest))}

    def _cosine(self, word: str) -> float | None:
        vector = self._vectors.get(word)
        if vector is None:
            vector = self._vectors.get(word_form(word))
        if vector is None:
            return None
        length = np.linalg.norm(vector) * np.linalg.norm(self._gender)
        cosine = float(np.dot(vector, self._gender) / length) if length else 0.0
        return cosine if abs(cosine) > 1e-6 else 0.0


class NormsLoop:
    """The eight averages as section 4.4 writes them: each word looked up, scaled, added."""

    def __init__(self) -> None:
        lexicon = load_norms()
        self._ratings = dict(zip(lexicon.words, lexicon.values.astype(np.float64).tolist(), strict=True))
        self._left_out = read_closed_class()

    def __call__(self, texts: Sequence[str]) -> list[Row]:
        return [self._row(split_words(text)) for text in texts]

    def _row(self, said: list[str]) -> Row:
        found = [ratings for word in said if (ratings := self._find(word)) is not None]
        if not found:
            return dict.fromkeys(NORMS, Value(None, None, "no-known-word"))
        row = {}
        for column, name in enumerate(NORMS):
            neutral = 5.0 if name in VAD else 1.0
            scores = [(ratings[column] - neutral) / 4 for ratings in found]
            weight = sum(abs(score) for score in scores)
            average = sum(score * abs(score) for score in scores) / weight if weight else 0.0
            row[name] = Value(average, label(name, average, CUTS[name]))
        return row

    def _find(self, word: str) -> list[float] | None:
        if word in self._left_out:
            return None
        return self._ratings.get(word) or self._ratings.get(word.removesuffix("'s"))


def check(name: str, got: Sequence[Mapping[str, Value]], wanted: Sequence[Row]) -> float:
    """The largest difference; stops where values, labels or nulls differ."""
    worst = 0.0
    for one, other in zip(got, wanted, strict=True):
        for output, expected in other.items():
            value = one[output]
            gate(value[1:] == expected[1:], f"{name}: {output} is {value}, by the loop {expected}")
            worst = max(worst, abs((value.value or 0.0) - (expected.value or 0.0)))
    gate(worst <= CLOSE[name], f"{name}: values differ by {worst:g}")
    return worst


def in_blocks(work: Callable[[Sequence[T]], object], items: Sequence[T]) -> None:
    for start in range(0, len(items), BLOCK):
        work(items[start : start + BLOCK])


def compared(
    metric: GenderPolarity | Norms,
    loop: Callable[[Sequence[str]], list[Row]],
    texts: tuple[list[str], str],
    rounds: int,
) -> dict[str, object]:
    strings, data = texts
    rendered = [Text(text) for text in strings]
    worst = check(metric.info.name, metric.score(rendered), loop(strings))
    ways = {
        "evenhand": Way(lambda: in_blocks(metric.score, rendered), len(strings)),
        "loop over words": Way(lambda: in_blocks(loop, strings), len(strings)),
    }
    said = f"values within {worst:.0e}, labels and nulls the same, on {len(strings):,} texts"
    turns = take_turns(ways, rounds=rounds)
    return result(turns, ours="evenhand", unit="texts/s", gate=said, data=data, texts=len(strings))


def main() -> None:
    options = parser(__doc__)
    options.add_argument("folder", nargs="?", type=Path)
    args = options.parse_args()
    texts = bold_texts(args.folder)
    parts = {
        "gender_polarity": compared(GenderPolarity(), CosineLoop(), texts, args.rounds),
        "norms": compared(Norms(), NormsLoop(), texts, args.rounds),
    }
    write(joined(parts), args.out)


if __name__ == "__main__":
    main()
