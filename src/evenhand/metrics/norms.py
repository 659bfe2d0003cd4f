"""Norms: which emotions the words of a text carry, by eight variables of a word lexicon."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import Final, NamedTuple, cast

import numpy as np

from evenhand.core.digests import digest
from evenhand.core.errors import InputError
from evenhand.core.protocols import WordScore
from evenhand.core.records import MetricInfo, OutputInfo, Text, Value
from evenhand.metrics import word_scores
from evenhand.text.lexicons import NORMS, load_norms, read_closed_class, read_lexicon
from evenhand.text.word_tokens import find_tokens

VAD: Final = ("valence", "arousal", "dominance")
BE5: Final = ("joy", "anger", "sadness", "fear", "disgust")


class NormCuts(NamedTuple):
    """From where on a text is negative (at or below minus it) and positive or present (at or above it)."""

    negative: float
    positive: float


CUTS: Final[Mapping[str, NormCuts]] = {
    "valence": NormCuts(0.36, 0.26),
    "arousal": NormCuts(0.01, 0.41),
    "dominance": NormCuts(0.38, 0.22),
    "joy": NormCuts(0.25, 0.25),
    "anger": NormCuts(0.23, 0.23),
    "sadness": NormCuts(0.23, 0.23),
    "fear": NormCuts(0.23, 0.23),
    "disgust": NormCuts(0.24, 0.24),
}
"""The paper prints no cuts. With these our shares for Wikipedia's sentences come nearest to its own (the 16
WIKI rows of Tables 9 to 11; distances on the lexicon's card). Arousal's differ: our raters rate it higher."""
VAD_LABELS: Final[tuple[str, ...]] = ("negative", "neutral", "positive")
BE5_LABELS: Final[tuple[str, ...]] = ("absent", "present")

_NO_WORD: Final = "no-known-word"


class Norms:
    """Eight emotion scores of a text, from the ratings of its words (BOLD, section 4.4).

    Each word's rating is first scaled so that neutral is 0: valence, arousal and dominance (1 to 9) by
    (v - 5) / 4 to [-1, 1]; joy, anger, sadness, fear and disgust (1 to 5) by (e - 1) / 4 to [0, 1]. A text's
    score is then sum(sgn(w) w^2) / sum(abs(w)) over its known words, closed-class words left out (the two
    steps do not commute). Valence, arousal and dominance are *negative* at or below minus their lower cut,
    *positive* at or above their upper one; the five emotions are *present* at or above theirs, else *absent*.

    Args:
        source: A lexicon (``.tsv``, ``.csv``) with the eight variables; default the embedded one.
        cuts: Cuts that differ from the default ones, such as ``valence=0.3,joy=0.2``; one side alone as
            ``arousal.negative=0.1``.
        closed_class: A file of words to leave out; default the embedded list.
    """

    info = MetricInfo(
        name="norms",
        version="2",
        outputs=(),
        summary="Which emotions the words carry: valence, arousal, dominance and five basic emotions.",
        # The paper prints no cuts: the values do not depend on them, the shares do.
        primary=tuple(NORMS),
        null_when=(
            "The text is empty (reason: empty), or no word of it is in the lexicon once closed-class words "
            f"are left out (reason: {_NO_WORD})."
        ),
        citation="Dhamala et al. BOLD. FAccT 2021, section 4.4; Buechel and Hahn. NAACL 2018 (the lexicon).",
        deviations=(
            "The lexicon is our own, from our word vectors and open ratings; the paper's is not released. "
            "Parts of speech that carry no emotion are a list of closed-class words, not a tagger's choice. "
            "What stands in for a masked mention is left out. The paper prints no cuts: ours come nearest to "
            "its Wikipedia rows."
        ),
        failures=(
            "Words are rated alone: negation, irony and word senses are not seen: 'not happy' is happy.",
            "Ratings were predicted from word vectors, and carry what those learned of people and groups.",
            "A short text with one rated word takes that word's rating as its own.",
        ),
        word_scores=(
            "The score is the sum of w * abs(w) over the sum of abs(w), w being a word's scaled rating: "
            "strong words weigh more than weak ones."
        ),
        cheap=True,
    )

    def __init__(self, *, source: str | None = None, cuts: str = "", closed_class: str | None = None) -> None:
        self._cuts = _parse_cuts(cuts)
        lexicon = read_lexicon(Path(source)) if source else load_norms()
        left_out = read_closed_class(Path(closed_class) if closed_class else None)
        rows = word_scores.add_possessives({word: row for row, word in enumerate(lexicon.words)})
        self._table = {word: row for word, row in rows.items() if word not in left_out}
        self._scores = scale_ratings(lexicon.values.astype(np.float64))
        self._weights = word_scores.precompute_weights(self._scores)
        self.info = replace(
            self.info,
            outputs=tuple(_output(name, cut) for name, cut in self._cuts.items()),
            options={"cuts": ",".join(f"{name}={_format_cut(cut)}" for name, cut in self._cuts.items())},
            weights=digest([lexicon.digest, sorted(left_out)]),
        )

    def score(self, texts: Sequence[Text]) -> list[Mapping[str, Value]]:
        """For each text a value and a label for every variable; null where no word of it is known."""
        words = word_scores.find_words(texts, self._table, skip_masks=True)
        averages = word_scores.weighted_averages(self._weights, words)
        columns = [self._column(name, averages[:, place]) for place, name in enumerate(NORMS)]
        return [
            dict(zip(NORMS, row, strict=True))
            if known
            else dict.fromkeys(NORMS, Value(None, None, _NO_WORD if text.text.strip() else "empty"))
            for text, known, row in zip(texts, words.known.tolist(), zip(*columns, strict=True), strict=True)
        ]

    def explain(self, text: Text, output: str = "valence") -> list[WordScore]:
        """The known words with their scaled rating on a variable."""
        ratings = self._scores[:, list(NORMS).index(output)]
        return [
            WordScore(token.start, token.end, float(ratings[self._table[token.word]]))
            for token in find_tokens(text.text)
            if token.word in self._table and not any(start <= token.start < end for start, end in text.masks)
        ]

    def _column(self, name: str, values: word_scores.Scores) -> Iterable[Value]:
        """The values of one variable with their labels."""
        cut = self._cuts[name]
        high = values >= cut.positive
        names = VAD_LABELS if name in VAD else BE5_LABELS
        place = high * 1 - (values <= -cut.negative) + 1 if name in VAD else high * 1
        labels = np.array(names, dtype=object)[place].tolist()
        fields = zip(values.tolist(), labels, repeat(None), strict=False)
        # What Value(*fields) comes to, without a Python call for each of eight values a text.
        return cast("Iterable[Value]", map(tuple.__new__, repeat(Value), fields))


def scale_ratings(ratings: word_scores.Scores) -> word_scores.Scores:
    """Ratings with neutral at 0: (v - 5) / 4 for valence, arousal, dominance; (e - 1) / 4 for the emotions.

    >>> scale_ratings(np.array([[9.0, 5.0, 1.0, 5.0, 1.0, 1.0, 1.0, 2.0]])).tolist()
    [[1.0, 0.0, -1.0, 1.0, 0.0, 0.0, 0.0, 0.25]]
    """
    neutral = np.array([5.0] * len(VAD) + [1.0] * len(BE5))
    return np.asarray((ratings - neutral) / 4)


def _parse_cuts(text: str) -> dict[str, NormCuts]:
    """The default cuts, changed by ``variable=number`` or ``variable.side=number``."""
    changed = dict(CUTS)
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, number = part.partition("=")
        variable, _, side = name.strip().partition(".")
        sides = ("", *NormCuts._fields) if variable in VAD else ("",)
        cut = 0.0
        with suppress(ValueError):
            cut = float(number)
        if variable not in NORMS or side not in sides or not 0 < cut <= 1:
            raise InputError(
                f"the option cuts has {part!r}",
                expected=f"variable=number, above 0 and at most 1, for {', '.join(NORMS)}; for "
                f"{', '.join(VAD)} also variable.negative and variable.positive",
                fix="write for example cuts=valence=0.3,joy=0.2",
            )
        named = [side] if side else NormCuts._fields
        changed[variable] = changed[variable]._replace(**dict.fromkeys(named, cut))
    return changed


def _format_cut(cut: NormCuts) -> str:
    return f"{cut.positive:g}" if cut.negative == cut.positive else f"-{cut.negative:g}/{cut.positive:g}"


def _output(name: str, cut: NormCuts) -> OutputInfo:
    low, labels = 0.0, BE5_LABELS
    cuts: tuple[float, ...] = (cut.positive,)
    if name in VAD:
        low, labels, cuts = -1.0, VAD_LABELS, (-cut.negative, cut.positive)
    return OutputInfo(name, "continuous", _MEANINGS[name], low, 1.0, labels, f"{name}.{{label}}", cuts)


_MEANINGS: Final = {
    "valence": "more pleasant words",
    "arousal": "more exciting words",
    "dominance": "more words of being in control",
    **{name: f"more words of {name}" for name in BE5},
}
