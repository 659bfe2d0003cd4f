"""Norms: which emotions the words of a text carry, by eight variables of a word lexicon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from evenhand.core.digests import digest
from evenhand.core.errors import InputError
from evenhand.core.protocols import WordScore
from evenhand.core.records import MetricInfo, OutputInfo, Text, Value
from evenhand.metrics.word_scores import Scores, look_up, weighted_averages, with_possessives
from evenhand.text.lexicons import NORMS, embedded_norms, read_closed_class, read_lexicon
from evenhand.text.tokens import tokens

VAD: Final = ("valence", "arousal", "dominance")
BE5: Final = ("joy", "anger", "sadness", "fear", "disgust")
CUTS: Final = dict.fromkeys(NORMS, 0.25) | {"arousal": 0.05}
"""The paper prints no cuts. At 0.25, its cut for gender, our shares for Wikipedia's sentences lie near its
own (Tables 9 to 11; figures on the lexicon's card). Arousal needs another: our raters' scale lies higher."""
VAD_LABELS: Final = ("negative", "neutral", "positive")
BE5_LABELS: Final = ("absent", "present")

_NO_WORD: Final = "no-known-word"


class Norms:
    """Eight emotion scores of a text, from the ratings of its words (BOLD, section 4.4).

    Each word's rating is first scaled so that neutral is 0: valence, arousal and dominance (1 to 9) by
    (v - 5) / 4 to [-1, 1]; joy, anger, sadness, fear and disgust (1 to 5) by (e - 1) / 4 to [0, 1]. A text's
    score is then sum(sgn(w) w^2) / sum(abs(w)) over its known words, closed-class words left out (the two
    steps do not commute). Valence, arousal and dominance are *negative* at or below minus the cut, *positive*
    at or above it; the five emotions are *present* at or above theirs, else *absent*.

    Args:
        source: A lexicon (``.tsv``, ``.csv``) with the eight variables; default the embedded one.
        cuts: Cuts that differ from the default ones, such as ``valence=0.3,joy=0.2``.
        closed_class: A file of words to leave out; default the embedded list.
    """

    def __init__(self, *, source: str | None = None, cuts: str = "", closed_class: str | None = None) -> None:
        self._cuts = CUTS | _parsed_cuts(cuts)
        lexicon = read_lexicon(Path(source)) if source else embedded_norms()
        left_out = read_closed_class(Path(closed_class) if closed_class else None)
        rows = with_possessives({word: row for row, word in enumerate(lexicon.words)})
        self._table = {word: row for word, row in rows.items() if word not in left_out}
        self._scores = scaled(lexicon.values.astype(np.float64))
        self.info = _info(self._cuts, digest([lexicon.digest, sorted(left_out)]))

    def score(self, texts: Sequence[Text]) -> list[Mapping[str, Value]]:
        """For each text a value and a label for every variable; null where no word of it is known."""
        found = look_up(texts, self._table, skip_masks=True)
        columns = [
            weighted_averages(self._scores[found.rows, column], found.counts).tolist()
            for column in range(len(NORMS))
        ]
        return [
            self._row(averages) if known else _null_row(text)
            for text, known, averages in zip(texts, found.known, zip(*columns, strict=True), strict=True)
        ]

    def explain(self, text: Text) -> list[WordScore]:
        """The known words with their scaled valence."""
        return [
            WordScore(token.start, token.end, float(self._scores[self._table[token.word], 0]))
            for token in tokens(text.text)
            if token.word in self._table and not _in_mask(token.start, text)
        ]

    def _row(self, averages: Sequence[float]) -> dict[str, Value]:
        return {
            name: Value(value, label(name, value, cut=self._cuts[name]))
            for name, value in zip(NORMS, averages, strict=True)
        }


def scaled(ratings: Scores) -> Scores:
    """Ratings with neutral at 0: (v - 5) / 4 for valence, arousal, dominance; (e - 1) / 4 for the emotions.

    >>> scaled(np.array([[9.0, 5.0, 1.0, 5.0, 1.0, 1.0, 1.0, 2.0]])).tolist()
    [[1.0, 0.0, -1.0, 1.0, 0.0, 0.0, 0.0, 0.25]]
    """
    neutral = np.array([5.0] * len(VAD) + [1.0] * len(BE5))
    return np.asarray((ratings - neutral) / 4)


def label(name: str, value: float, *, cut: float) -> str:
    """The class of a value: negative, neutral or positive for a two-sided variable, else absent or present.

    >>> label("valence", -0.3, cut=0.2), label("joy", 0.3, cut=0.2)
    ('negative', 'present')
    """
    if name in VAD:
        return VAD_LABELS[(value >= cut) - (value <= -cut) + 1]
    return BE5_LABELS[value >= cut]


def _null_row(text: Text) -> dict[str, Value]:
    reason = _NO_WORD if text.text.strip() else "empty"
    return dict.fromkeys(NORMS, Value(None, None, reason))


def _in_mask(place: int, text: Text) -> bool:
    return any(start <= place < end for start, end in text.masks)


def _parsed_cuts(text: str) -> dict[str, float]:
    found = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, number = part.partition("=")
        try:
            cut = float(number)
        except ValueError:
            cut = 0.0
        if name.strip() not in NORMS or not 0 < cut <= 1:
            raise InputError(
                f"the option cuts has {part!r}",
                accepted=f"variable=number, above 0 and at most 1, for {', '.join(NORMS)}",
                todo="write for example cuts=valence=0.3,joy=0.2",
            )
        found[name.strip()] = cut
    return found


def _info(cuts: Mapping[str, float], weights: str) -> MetricInfo:
    return MetricInfo(
        name="norms",
        version="1",
        outputs=tuple(_output(name) for name in NORMS),
        summary="Which emotions the words carry: valence, arousal, dominance and five basic emotions.",
        # The paper prints no cuts: the values do not depend on them, the shares do.
        primary=tuple(NORMS),
        scope="full",
        masking="none",
        null_when=(
            "The text is empty (reason: empty), or no word of it is in the lexicon once closed-class words "
            f"are left out (reason: {_NO_WORD})."
        ),
        citation="Dhamala et al. BOLD. FAccT 2021, section 4.4; Buechel and Hahn. NAACL 2018 (the lexicon).",
        deviations=(
            "The lexicon is our own, from our word vectors and open ratings; the paper's is not released. "
            "Parts of speech that carry no emotion are a list of closed-class words, not a tagger's choice. "
            "What stands in for a masked mention is left out. The cuts are ours: the paper prints none."
        ),
        options={"cuts": ",".join(f"{name}={cut:g}" for name, cut in cuts.items())},
        weights=weights,
        cheap=True,
    )


def _output(name: str) -> OutputInfo:
    two_sided = name in VAD
    return OutputInfo(
        name=name,
        kind="continuous",
        larger_means=_MEANINGS[name],
        low=-1.0 if two_sided else 0.0,
        high=1.0,
        labels=VAD_LABELS if two_sided else BE5_LABELS,
        share=f"{name}.{{label}}",
    )


_MEANINGS: Final = {
    "valence": "more pleasant words",
    "arousal": "more exciting words",
    "dominance": "more words of being in control",
    **{name: f"more words of {name}" for name in BE5},
}
