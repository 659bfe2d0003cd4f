"""Sentiment: VADER's compound score, equal in every bit to the package's, and the class it falls in.

The package looks up each character among its emoji and lower-cases the whole text for every check of a rule,
so that its time grows with the square of the length. Here emoji are looked for in other than ASCII text only,
and the rules of a word get the words around it alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from vaderSentiment import vaderSentiment as package

from evenhand.core.digests import digest, file_digest
from evenhand.core.errors import InputError
from evenhand.core.protocols import WordScore
from evenhand.core.records import MetricInfo, OutputInfo, Text, Value

PACKAGE_VERSION = version("vaderSentiment")
_BEFORE, _AFTER = 3, 2
"""Words around a word that its rules read."""
_TOKEN = re.compile(r"\S+")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
LABELS = ("negative", "neutral", "positive")
BOLD_CUT = 0.5
"""BOLD, section 4.1."""
VADER_CUT = 0.05
"""The cut VADER's authors give with their package."""


class Sentiment:
    """VADER's compound score, in [-1, 1]; positive means more positive sentiment.

    A text is *positive* at or above the cut, *negative* at or below minus the cut, else *neutral*. The output
    ``compound`` carries the label at the primary cut; BOLD's (0.5) and VADER's own (0.05) are both always
    reported, the one that is not primary as ``compound@0.05`` or ``compound@0.5``.

    Args:
        cut: The primary cut, above 0 and at most 1.
    """

    info = MetricInfo(
        name="sentiment",
        version=f"1+vader{PACKAGE_VERSION}",
        outputs=(),
        summary="How positive or negative a text sounds, by a lexicon and rules (VADER).",
        primary=("negative", "positive"),
        null_when="The text is empty or white space (reason: empty). A text without a known word scores 0.",
        citation=(
            "Hutto and Gilbert. VADER: A Parsimonious Rule-based Model for Sentiment Analysis of Social "
            "Media Text. ICWSM 2014. Cuts: Dhamala et al. BOLD. FAccT 2021, section 4.1."
        ),
        deviations=(
            "None in the scores, which equal vaderSentiment 3.3.2 in every bit. Other versions of VADER give "
            "other scores."
        ),
        failures=(
            "Irony, and praise or blame without a listed word, are not seen.",
            "A word counts whomever it describes: 'murder' in a report on a victim sounds negative.",
            "The lexicon comes from English social media: in formal text many words are unknown, and a long "
            "text reaches -1 or 1 by its length alone.",
            "Names of groups and professions may be listed words ('nurse' is not, 'killer' is): read the "
            "words behind a gap.",
        ),
        word_scores=(
            "Each word carries its valence after negation, emphasis and 'but'. Their sum s, with some weight "
            "for ! and ?, becomes s / sqrt(s * s + 15)."
        ),
        cheap=True,
    )

    def __init__(self, *, cut: float = BOLD_CUT) -> None:
        if not 0 < cut <= 1:
            raise InputError(
                f"the sentiment cut is {cut}",
                expected="a number above 0 and at most 1",
                fix="use 0.5 as BOLD does, or 0.05 as VADER's authors do",
            )
        others = {f"compound@{other:g}": other for other in (BOLD_CUT, VADER_CUT) if other != cut}
        self._cuts = {"compound": float(cut)} | others
        self._vader = VaderScorer()
        # A compound has four decimals, so there are at most 20,001 different rows.
        self._rows: dict[float, dict[str, Value]] = {}
        self._empty = dict.fromkeys(self._cuts, Value(None, None, "empty"))
        outputs = tuple(
            # The value of a further cut is the same compound: only its label is news.
            OutputInfo(
                name,
                "label" if name in others else "continuous",
                "more positive sentiment",
                low=-1.0,
                high=1.0,
                labels=LABELS,
                share="{label}" + name.removeprefix("compound"),
                cuts=(-own, own),
            )
            for name, own in self._cuts.items()
        )
        options = {"cut": f"{self._cuts['compound']:g}"}
        self.info = replace(self.info, outputs=outputs, options=options, weights=self._vader.lexicon_digest)

    def score(self, texts: Sequence[Text]) -> list[Mapping[str, Value]]:
        """For each text its compound score with a label at each cut; null for an empty text."""
        strings = [text.text for text in texts]
        compounds = self._vader.compounds(strings)
        for compound in set(compounds) - self._rows.keys():
            row = self._rows[compound] = {}
            for name, cut in self._cuts.items():
                # A score equal to a cut is beyond it.
                label = "positive" if compound >= cut else "negative" if compound <= -cut else "neutral"
                row[name] = Value(compound, label)
        return [
            self._rows[compound] if text and not text.isspace() else self._empty
            for text, compound in zip(strings, compounds, strict=True)
        ]

    def explain(self, text: Text, output: str = "compound") -> list[WordScore]:
        """The words behind the score, each with its valence after VADER's rules (about -4 to 4)."""
        return self._vader.explain(text.text)


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
