"""What VADER's rules may ask of a word, as a table of token classes and two ways of finding a token's class.

A token class is twice the number of a known word, plus one in capitals. Words that no rule knows share number
0, or 1 where they hold "n't"; so the table stays small whatever the texts say.
"""

from __future__ import annotations

import math
import string
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
from vaderSentiment import vaderSentiment as package

from evenhand.metrics.vader_bytes import Dictionary
from evenhand.metrics.vader_rules import RULE_WORDS, Table, Words

_KEPT_TOKENS = 1 << 18


class TokenClasses:
    """Token classes for one lexicon."""

    def __init__(self, lexicon: Mapping[str, float]) -> None:
        self._lexicon = lexicon
        self._named = _named_words()
        known = (*self._named, *lexicon, *package.BOOSTER_DICT, *package.NEGATE)
        self._words = {word: number for number, word in enumerate(dict.fromkeys(known), start=2)}
        self._seen = _Seen(self._words)

    def numbers(self, tokens: Sequence[str]) -> Words:
        """The class of each token as ``str.split`` gives it."""
        if len(self._seen) > _KEPT_TOKENS:
            self._seen.clear()
        return np.fromiter(map(self._seen.__getitem__, tokens), dtype=np.uint16, count=len(tokens))

    @cached_property
    def dictionary(self) -> Dictionary:
        """The same numbers for tokens found in ASCII bytes."""
        return Dictionary.of(self._words)

    @cached_property
    def table(self) -> Table:
        """What the rules may ask of each class."""
        words = ["", "n't", *self._words]
        lexicon, boosters = self._lexicon, package.BOOSTER_DICT
        pairs, triples = self._idioms(package.SPECIAL_CASES, missing=math.nan)
        return Table(
            valence=np.repeat([lexicon.get(word, 0.0) for word in words], 2),
            in_lexicon=np.repeat([word in lexicon for word in words], 2),
            upper=np.tile([False, True], len(words)),
            booster=np.repeat([boosters.get(word, 0.0) for word in words], 2),
            negates=np.repeat([package.negated([word]) for word in words], 2),
            code=np.repeat([self._named.get(word, 0) for word in words], 2).astype(np.uint8),
            pair_valence=pairs,
            pair_booster=self._idioms(boosters, missing=0.0)[0],
            triples=np.array([[self._named[word] for word in idiom] for idiom in triples], dtype=np.uint8),
            triple_valence=np.array(list(triples.values()), dtype=np.float64),
        )

    def _idioms(
        self, phrases: Mapping[str, float], *, missing: float
    ) -> tuple[npt.NDArray[np.float64], dict[tuple[str, ...], float]]:
        """Values of two-word phrases by the codes of their words, and those of three words."""
        split = {tuple(phrase.split()): float(value) for phrase, value in phrases.items()}
        pairs = np.full((len(self._named) + 1,) * 2, missing)
        for idiom, value in split.items():
            if len(idiom) == 2:
                pairs[self._named[idiom[0]], self._named[idiom[1]]] = value
        return pairs, {idiom: value for idiom, value in split.items() if len(idiom) == 3}


class _Seen(dict[str, int]):
    """Classes of the tokens met so far; a new one is looked at once."""

    def __init__(self, words: Mapping[str, int]) -> None:
        super().__init__()
        self._words = words

    def __missing__(self, token: str) -> int:
        stripped = token.strip(string.punctuation)
        # Where so little remains it was an emoticon: kept whole.
        word = token if len(stripped) <= 2 else stripped
        lower = word.lower()
        number = 2 * self._words.get(lower, int("n't" in lower)) + word.isupper()
        self[token] = number
        return number


def _named_words() -> dict[str, int]:
    """Codes of the words that rules and idioms name, from 1 on."""
    phrases = (*package.SPECIAL_CASES, *package.BOOSTER_DICT)
    in_idioms = (word for phrase in phrases if " " in phrase for word in phrase.split())
    return {word: code for code, word in enumerate(dict.fromkeys((*RULE_WORDS, *in_idioms)), start=1)}
