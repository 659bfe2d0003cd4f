"""VADER's compound score, by the rules of the vaderSentiment package and equal to its score in every bit.

The package looks up each character among its emoji and lower-cases the whole text for every check of a rule,
so that its time grows with the square of the length. Here emoji are looked for in other than ASCII text only,
and the rules of a word get the words around it alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from vaderSentiment import vaderSentiment as package

from evenhand.core.digests import digest, file_digest
from evenhand.core.protocols import WordScore

PACKAGE_VERSION = version("vaderSentiment")
_BEFORE, _AFTER = 3, 2
"""Words around a word that its rules read."""
_TOKEN = re.compile(r"\S+")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


class VaderScorer:
    """Scores texts and the words in them."""

    def __init__(self) -> None:
        self._analyzer = package.SentimentIntensityAnalyzer()
        self._emoji: dict[str, str] = self._analyzer.emojis
        folder, names = Path(package.__file__).parent, ("vader_lexicon.txt", "emoji_utf8_lexicon.txt")
        self.lexicon_digest = digest([PACKAGE_VERSION, *(file_digest(folder / name) for name in names)])

    def compounds(self, texts: Sequence[str]) -> list[float]:
        """The compound score of each text, in [-1, 1], to four decimals; 0 for a text without words."""
        spelt = [text if text.isascii() else _NOT_ASCII.sub(self._spell_emoji, text) for text in texts]
        return [self._analyzer.score_valence(self._valences(text), text)["compound"] for text in spelt]

    def explain(self, text: str) -> list[WordScore]:
        """What each word adds to the sum behind the compound score, after every rule; zeros left out."""
        pieces: list[str] = []
        origin: list[int] = []
        for at, character in enumerate(text):
            match = _NOT_ASCII.match(text, at)
            pieces.append(self._spell_emoji(match) if match else character)
            origin += [at] * len(pieces[-1])
        spelt = "".join(pieces)
        words = zip(_TOKEN.finditer(spelt), self._valences(spelt), strict=True)
        return [
            WordScore(origin[match.start()], origin[match.end() - 1] + 1, float(valence))
            for match, valence in words
            if valence
        ]

    def _spell_emoji(self, match: re.Match[str]) -> str:
        """The name of an emoji, after a space unless one is there; other characters as they are."""
        name = self._emoji.get(match[0])
        if name is None:
            return match[0]
        at = match.start()
        return name if at == 0 or match.string[at - 1] == " " else f" {name}"

    def _valences(self, text: str) -> list[float]:
        """The valence of each word after every rule."""
        context = package.SentiText(text)
        words = context.words_and_emoticons
        lower = [word.lower() for word in words]
        valences: list[float] = []
        for i, word in enumerate(lower):
            is_modifier = word in package.BOOSTER_DICT or lower[i : i + 2] == ["kind", "of"]
            if is_modifier or word not in self._analyzer.lexicon:
                valences.append(0)
                continue
            start = max(0, i - _BEFORE)
            context.words_and_emoticons = words[start : i + 1 + _AFTER]
            self._analyzer.sentiment_valence(0, context, words[i], i - start, valences)
        weighed: list[float] = self._analyzer._but_check(words, valences)
        return weighed
