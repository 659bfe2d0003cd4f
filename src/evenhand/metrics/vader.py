"""VADER's compound score for many texts: equal to vaderSentiment 3.3.2 in every bit, and many times faster.

The package spends its time on each character (emoji), on lower-casing the text for every check and on
scanning its list of negations. Here each token becomes a small number that says all the rules can ask of it
(`vader_words`; `vader_bytes` for ASCII texts), and the rules run over these numbers, compiled
(`vader_rules`). For a few thousand texts the package itself is quicker than starting the compiler, so
it is used.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from vaderSentiment import vaderSentiment as package

from evenhand.core.digests import digest, file_digest
from evenhand.core.protocols import WordScore

if TYPE_CHECKING:
    from evenhand.metrics.vader_rules import Floats, TokenClasses

PACKAGE_VERSION = version("vaderSentiment")
_PROVEN = "3.3.2"
"""The version whose rules `vader_rules` follows; any other is left to the package."""
_WARM_AFTER = 4_000
"""Texts after which starting the compiler pays for itself."""
_CHUNK = 8_192
_LONG = 4_000
"""Characters beyond which the package, whose time grows with the square of the length, is left alone."""
_TOKEN = re.compile(r"\S+")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


def lexicon_digest() -> str:
    """The digest of the package's version and its two lexicons."""
    folder = Path(package.__file__).parent
    files = ("vader_lexicon.txt", "emoji_utf8_lexicon.txt")
    return digest([PACKAGE_VERSION, *(file_digest(folder / name) for name in files)])


class VaderScorer:
    """Scores texts; keeps what it has learned of tokens between calls."""

    def __init__(self, *, warm_after: int = _WARM_AFTER) -> None:
        self._analyzer = package.SentimentIntensityAnalyzer()
        self._cold: float = warm_after if PACKAGE_VERSION == _PROVEN else math.inf
        self._emoji: dict[str, str] = self._analyzer.emojis

    def compounds(self, texts: Sequence[str]) -> list[float]:
        """The compound score of each text, in [-1, 1], to four decimals; 0 for a text without words."""
        if len(texts) <= self._cold and max(map(len, texts), default=0) <= _LONG:
            self._cold -= len(texts)
            return [self._analyzer.polarity_scores(text)["compound"] for text in texts]
        self._cold = 0
        starts = range(0, len(texts), _CHUNK)
        return [score for start in starts for score in self._score_compiled(texts[start : start + _CHUNK])]

    def explain(self, text: str) -> list[WordScore]:
        """What each word adds to the sum behind the compound score, after every rule; zeros left out."""
        spelt, origin = self._spell_with_origin(text)
        sentiments = self._sentiments(spelt)
        places = (match.span() for match in _TOKEN.finditer(spelt))
        return [
            WordScore(origin[start], origin[end - 1] + 1, float(weight))
            for (start, end), weight in zip(places, sentiments, strict=True)
            if weight
        ]

    def _score_compiled(self, texts: Sequence[str]) -> list[float]:
        plain = np.fromiter(map(str.isascii, texts), dtype=np.bool_, count=len(texts))
        sums = np.empty(len(texts))
        sums[plain] = self._ascii_sums([text for text in texts if text.isascii()])
        sums[~plain] = self._other_sums([self._spell(text) for text in texts if not text.isascii()])
        # Rounded as Python rounds: NumPy's way differs in the last place.
        return [round(total, 4) for total in sums.tolist()]

    def _ascii_sums(self, texts: Sequence[str]) -> Floats:
        from evenhand.metrics.vader_rules import compound_scores, token_classes

        letters = np.frombuffer("".join(texts).encode("ascii"), dtype=np.uint8)
        ends = np.cumsum(np.fromiter(map(len, texts), dtype=np.int64, count=len(texts)))
        return compound_scores(*token_classes(letters, ends, self._classes.dictionary), self._classes.table)

    def _other_sums(self, texts: Sequence[str]) -> Floats:
        from evenhand.metrics.vader_rules import compound_scores

        split = [text.split() for text in texts]
        classes = self._classes.numbers([token for tokens in split for token in tokens])
        ends = np.cumsum([len(tokens) for tokens in split], dtype=np.int64)
        exclamations = np.array([text.count("!") for text in texts], dtype=np.int64)
        questions = np.array([text.count("?") for text in texts], dtype=np.int64)
        return compound_scores(classes, ends, exclamations, questions, self._classes.table)

    @cached_property
    def _classes(self) -> TokenClasses:
        from evenhand.metrics.vader_rules import TokenClasses

        return TokenClasses(self._analyzer.lexicon)

    def _spell(self, text: str) -> str:
        """The text with emoji replaced by their names, after a space unless one is there."""
        if self._emoji.keys().isdisjoint(_NOT_ASCII.findall(text)):
            return text
        return _NOT_ASCII.sub(self._spelling, text)

    def _spelling(self, match: re.Match[str]) -> str:
        name = self._emoji.get(match[0])
        if name is None:
            return match[0]
        at = match.start()
        return name if at == 0 or match.string[at - 1] == " " else f" {name}"

    def _spell_with_origin(self, text: str) -> tuple[str, list[int]]:
        """The same, with the place in the text that each character comes from."""
        pieces: list[str] = []
        origin: list[int] = []
        for at, character in enumerate(text):
            match = _NOT_ASCII.match(text, at)
            pieces.append(self._spelling(match) if match else character)
            origin += [at] * len(pieces[-1])
        return "".join(pieces), origin

    def _sentiments(self, text: str) -> list[float]:
        """The valence of each word after every rule."""
        if len(text) <= _LONG:
            return self._package_sentiments(package.SentiText(text))
        from evenhand.metrics.vader_rules import word_valences

        valences: list[float] = word_valences(
            self._classes.numbers(text.split()), self._classes.table
        ).tolist()
        return valences

    def _package_sentiments(self, text: package.SentiText) -> list[float]:
        words = [word.lower() for word in text.words_and_emoticons]
        values: list[float] = []
        for i, word in enumerate(words):
            if word in package.BOOSTER_DICT or words[i : i + 2] == ["kind", "of"]:
                values.append(0)
            else:
                values = self._analyzer.sentiment_valence(0, text, text.words_and_emoticons[i], i, values)
        weighed: list[float] = self._analyzer._but_check(text.words_and_emoticons, values)
        return weighed
