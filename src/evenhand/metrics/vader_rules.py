"""VADER's sentence rules over token classes, compiled: the same sums as vaderSentiment 3.3.2, bit for bit.

A text is a row of token classes (see `vader.TokenTable`). Each rule keeps the original's order of operations,
its floating-point steps and its oddities, because a score must not depend on which way it was computed.
Importing this module imports numba, so it is done on first use. The compiled code is kept beside this file in
``__pycache__``, or in the user's cache folder where that is read-only; ``NUMBA_CACHE_DIR`` names another one.
"""

from __future__ import annotations

import math
import string
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt
from numba import njit
from vaderSentiment import vaderSentiment as package

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint16]
Counts = npt.NDArray[np.int64]
_F = TypeVar("_F", bound=Callable[..., object])

# The words the rules name; 0 is any other word. `vader` numbers the words of idioms after these.
NO, OR, NOR, NEVER, SO, THIS, WITHOUT, DOUBT, LEAST, AT, VERY, BUT, KIND, OF = range(1, 15)
RULE_WORDS = (
    "no",
    "or",
    "nor",
    "never",
    "so",
    "this",
    "without",
    "doubt",
    "least",
    "at",
    "very",
    "but",
    "kind",
    "of",
)

CAPS = 0.733
NEGATION = -0.74
# From Python 3.12 on, sum() of floats carries the rounding error along.
_COMPENSATED = sys.version_info >= (3, 12)


class TokenTable(NamedTuple):
    """What the rules know of each token class, and of pairs and triples of named words."""

    valence: Floats
    in_lexicon: Flags
    upper: Flags
    booster: Floats
    """0 where the word neither boosts nor dampens."""
    negates: Flags
    code: npt.NDArray[np.uint8]
    pair_valence: Floats
    """By the codes of two words; NaN where they form no idiom."""
    pair_booster: Floats
    triples: npt.NDArray[np.uint8]
    triple_valence: Floats


def compile_cached(function: _F) -> _F:
    """The function in machine code, kept on disk, with its type as it was."""
    return cast(_F, njit(cache=True, nogil=True)(function))


@compile_cached
def compound_scores(
    ids: Words,
    ends: Counts,
    exclamations: Counts,
    questions: Counts,
    table: TokenTable,
) -> Floats:
    """The compound score of each text, not yet rounded; text *k* is ``ids[ends[k - 1]:ends[k]]``."""
    out = np.zeros(len(ends))
    start = 0
    for k in range(len(ends)):
        words = ids[start : ends[k]]
        start = ends[k]
        if len(words):
            total = _total(word_valences(words, table))
            emphasis = _emphasis(exclamations[k], questions[k])
            if total > 0:
                total += emphasis
            elif total < 0:
                total -= emphasis
            out[k] = min(1.0, max(-1.0, total / math.sqrt((total * total) + 15)))
    return out


@compile_cached
def word_valences(words: Words, t: TokenTable) -> Floats:
    """The valence of each word after every rule; 0 for words that carry none."""
    n = len(words)
    shouted = 0
    for word in words:
        shouted += t.upper[word]
    mixed_case = 0 < n - shouted < n
    values = np.zeros(n)
    but = -1
    for i in range(n):
        word = words[i]
        if but < 0 and t.code[word] == BUT:
            but = i
        if t.in_lexicon[word] and not _is_modifier(words, i, t):
            values[i] = _valence(words, i, mixed_case, t)
    if but >= 0:
        _weigh_but(values, but)
    return values


@compile_cached
def _is_modifier(words: Words, i: int, t: TokenTable) -> bool:
    kind_of = t.code[words[i]] == KIND and i + 1 < len(words) and t.code[words[i + 1]] == OF
    return bool(kind_of or t.booster[words[i]] != 0)


@compile_cached
def _valence(words: Words, i: int, mixed_case: bool, t: TokenTable) -> float:
    valence = _own_valence(words, i, t)
    if mixed_case and t.upper[words[i]]:
        valence = valence + CAPS if valence > 0 else valence - CAPS
    for distance in range(1, 4):
        if i < distance or t.in_lexicon[words[i - distance]]:
            continue
        boost = _boost(words[i - distance], valence, mixed_case, t)
        if distance == 2:
            boost *= 0.95
        elif distance == 3:
            boost *= 0.9
        valence = _negate(valence + boost, words, i, distance, t)
        if distance == 3:
            valence = _idiom(valence, words, i, t)
    return _least(valence, words, i, t)


@compile_cached
def _own_valence(words: Words, i: int, t: TokenTable) -> float:
    valence = float(t.valence[words[i]])
    negated = (
        (i > 0 and t.code[words[i - 1]] == NO)
        or (i > 1 and t.code[words[i - 2]] == NO)
        or (i > 2 and t.code[words[i - 3]] == NO and t.code[words[i - 1]] in (OR, NOR))
    )
    if negated:
        return valence * NEGATION
    if t.code[words[i]] == NO and i + 1 < len(words) and t.in_lexicon[words[i + 1]]:
        return 0.0
    return valence


@compile_cached
def _boost(word: int, valence: float, mixed_case: bool, t: TokenTable) -> float:
    boost = float(t.booster[word])
    if boost == 0:
        return 0.0
    if valence < 0:
        boost *= -1
    if mixed_case and t.upper[word]:
        boost = boost + CAPS if valence > 0 else boost - CAPS
    return boost


@compile_cached
def _negate(valence: float, words: Words, i: int, distance: int, t: TokenTable) -> float:
    first = t.code[words[i - distance]]
    one = t.code[words[i - 1]]
    if distance == 2:
        if first == NEVER and one in (SO, THIS):
            return valence * 1.25
        if first == WITHOUT and one == DOUBT:
            return valence
    if distance == 3:
        two = t.code[words[i - 2]]
        # The original's "and" binds before its "or": "so" or "this" right before suffices.
        if (first == NEVER and two in (SO, THIS)) or one in (SO, THIS):
            return valence * 1.25
        if first == WITHOUT and (two == DOUBT or one == DOUBT):
            return valence
    return valence * NEGATION if t.negates[words[i - distance]] else valence


@compile_cached
def _idiom(valence: float, words: Words, i: int, t: TokenTable) -> float:
    three, two = t.code[words[i - 3]], t.code[words[i - 2]]
    one, zero = t.code[words[i - 1]], t.code[words[i]]
    found = np.nan
    for value in (
        t.pair_valence[one, zero],
        _triple(two, one, zero, t),
        t.pair_valence[two, one],
        _triple(three, two, one, t),
        t.pair_valence[three, two],
    ):
        if np.isnan(found):
            found = value
    if i + 1 < len(words):
        following = t.code[words[i + 1]]
        found = _max_later(found, t.pair_valence[zero, following])
        if i + 2 < len(words):
            found = _max_later(found, _triple(zero, following, t.code[words[i + 2]], t))
    valence = _max_later(valence, found)
    return valence + float(t.pair_booster[three, two]) + float(t.pair_booster[two, one])


@compile_cached
def _max_later(before: float, after: float) -> float:
    return before if np.isnan(after) else after


@compile_cached
def _triple(a: int, b: int, c: int, t: TokenTable) -> float:
    for k in range(len(t.triple_valence)):
        if t.triples[k, 0] == a and t.triples[k, 1] == b and t.triples[k, 2] == c:
            return float(t.triple_valence[k])
    return np.nan


@compile_cached
def _least(valence: float, words: Words, i: int, t: TokenTable) -> float:
    if i == 0 or t.code[words[i - 1]] != LEAST:
        return valence
    if i > 1 and t.code[words[i - 2]] in (AT, VERY):
        return valence
    return valence * NEGATION


@compile_cached
def _weigh_but(values: Floats, but: int) -> None:
    """Halve what stands before "but", raise what follows; of equal values the original moves the first."""
    for p in range(len(values)):
        value = values[p]
        if value == 0:
            continue
        first = 0
        while values[first] != value:
            first += 1
        if first < but:
            values[first] = value * 0.5
        elif first > but:
            values[first] = value * 1.5


@compile_cached
def _total(values: Floats) -> float:
    total = 0.0
    lost = 0.0
    for value in values:
        added = total + value
        if _COMPENSATED:
            if abs(total) >= abs(value):
                lost += (total - added) + value
            else:
                lost += (value - added) + total
        total = added
    return total + lost


@compile_cached
def _emphasis(exclamations: int, questions: int) -> float:
    emphasis = min(exclamations, 4) * 0.292
    if questions > 3:
        return emphasis + 0.96
    if questions > 1:
        return emphasis + questions * 0.18
    return emphasis


Bytes = npt.NDArray[np.uint8]
Slots = npt.NDArray[np.int32]

_SLOTS = 1 << 15
_SPACE, _PUNCTUATION, _UPPER, _LOWER = 1, 2, 4, 8
_EXCLAMATION, _QUESTION, _QUOTE, _N, _T = b"!?'nt"


class WordTable(NamedTuple):
    """An open-addressed table of words, and what each byte is."""

    kinds: Bytes
    """For each byte the bits that hold: white space, punctuation, capital, small letter."""
    slots: Slots
    """The number of the word in a slot; 0 where it is empty."""
    starts: Counts
    """Where the word of a number starts in ``letters``; it ends where the next one starts."""
    letters: Bytes

    @classmethod
    def of(cls, words: Mapping[str, int]) -> WordTable:
        """The table of the words an ASCII text can hold; numbers must run from 2 on."""
        spelled = [b"", b"", *(word.encode() if word.isascii() else b"" for word in words)]
        slots = np.zeros(_SLOTS, dtype=np.int32)
        for number, letters in enumerate(spelled):
            if letters:
                slot = _hash(np.frombuffer(letters, np.uint8), 0, len(letters))
                while slots[slot]:
                    slot = (slot + 1) % _SLOTS
                slots[slot] = number
        starts = np.cumsum([0, *map(len, spelled)])
        return cls(_byte_kinds(), slots, starts, np.frombuffer(b"".join(spelled), np.uint8))


def _byte_kinds() -> Bytes:
    characters = [chr(code) for code in range(128)]
    kinds = np.zeros(256, dtype=np.uint8)
    kinds[:128] |= np.array([_SPACE * c.isspace() for c in characters], dtype=np.uint8)
    kinds[:128] |= np.array([_PUNCTUATION * (c in string.punctuation) for c in characters], dtype=np.uint8)
    kinds[:128] |= np.array([_UPPER * c.isupper() + _LOWER * c.islower() for c in characters], dtype=np.uint8)
    return kinds


@compile_cached
def token_classes(text: Bytes, ends: Counts, dictionary: WordTable) -> tuple[Words, Counts, Counts, Counts]:
    """Classes of all tokens, and for each text where they end, its exclamation and its question marks."""
    # Unpacked once, and places instead of slices below: each array taken out of a tuple or cut in a loop is
    # a counted reference, which doubled the time.
    kinds, slots, starts, letters = dictionary
    classes = np.empty((len(text) + len(ends)) // 2 + 1, dtype=np.uint16)
    marks = np.zeros((3, len(ends)), dtype=np.int64)
    found = at = 0
    for k in range(len(ends)):
        while at < ends[k]:
            start = at
            while at < ends[k] and not kinds[text[at]] & _SPACE:
                at += 1
            if at > start:
                classes[found] = _class(text, start, at, kinds, slots, starts, letters)
                found += 1
            at += 1
        at = ends[k]
        marks[0, k] = found
    _count_marks(text, ends, marks)
    return classes[:found], marks[0], marks[1], marks[2]


@compile_cached
def _class(
    text: Bytes, start: int, end: int, kinds: Bytes, slots: Slots, starts: Counts, letters: Bytes
) -> int:
    first, last = start, end
    while first < last and kinds[text[first]] & _PUNCTUATION:
        first += 1
    while last > first and kinds[text[last - 1]] & _PUNCTUATION:
        last -= 1
    if last - first <= 2:
        first, last = start, end
    seen = 0
    for i in range(first, last):
        seen |= kinds[text[i]]
    number = _find(text, first, last, slots, starts, letters)
    # Inside a stripped word punctuation is rare: only then is n't looked for.
    if number == 0 and seen & _PUNCTUATION:
        number = int(_holds_nt(text, first, last))
    return 2 * number + int(seen & (_UPPER | _LOWER) == _UPPER)


@compile_cached
def _find(text: Bytes, first: int, last: int, slots: Slots, starts: Counts, letters: Bytes) -> int:
    slot = _hash(text, first, last)
    while slots[slot]:
        number = int(np.int64(slots[slot]))
        start = starts[number]
        if starts[number + 1] - start == last - first:
            i = first
            while i < last and _small(text[i]) == letters[start + i - first]:
                i += 1
            if i == last:
                return number
        slot = (slot + 1) % _SLOTS
    return 0


@compile_cached
def _holds_nt(text: Bytes, first: int, last: int) -> bool:
    for i in range(first + 1, last - 1):
        if text[i] == _QUOTE and _small(text[i - 1]) == _N and _small(text[i + 1]) == _T:
            return True
    return False


@compile_cached
def _count_marks(text: Bytes, ends: Counts, marks: Counts) -> None:
    start = 0
    for k in range(len(ends)):
        exclamations = questions = 0
        for i in range(start, ends[k]):
            exclamations += text[i] == _EXCLAMATION
            questions += text[i] == _QUESTION
        marks[1, k], marks[2, k] = exclamations, questions
        start = ends[k]


@compile_cached
def _small(byte: int) -> int:
    # Signed throughout: numba turns a mix of signed and unsigned integers into floats.
    return int(np.int64(byte) + 32 if 65 <= byte <= 90 else np.int64(byte))


@compile_cached
def _hash(text: Bytes, first: int, last: int) -> int:
    """The slot of a word, capitals taken as small letters: 32-bit FNV-1a folded to 15 bits."""
    value = 2166136261
    for i in range(first, last):
        value = ((value ^ _small(text[i])) * 16777619) & 0xFFFFFFFF
    return (value ^ (value >> 15)) & (_SLOTS - 1)


_KEPT_TOKENS = 1 << 18


class TokenClasses:
    """Token classes for one lexicon."""

    def __init__(self, lexicon: Mapping[str, float]) -> None:
        self._lexicon = lexicon
        self._word_codes = _named_words()
        known = (*self._word_codes, *lexicon, *package.BOOSTER_DICT, *package.NEGATE)
        self._words = {word: number for number, word in enumerate(dict.fromkeys(known), start=2)}
        self._cache = _TokenCache(self._words)

    def numbers(self, tokens: Sequence[str]) -> Words:
        """The class of each token as ``str.split`` gives it."""
        if len(self._cache) > _KEPT_TOKENS:
            self._cache.clear()
        return np.fromiter(map(self._cache.__getitem__, tokens), dtype=np.uint16, count=len(tokens))

    @cached_property
    def dictionary(self) -> WordTable:
        """The same numbers for tokens found in ASCII bytes."""
        return WordTable.of(self._words)

    @cached_property
    def table(self) -> TokenTable:
        """What the rules may ask of each class."""
        words = ["", "n't", *self._words]
        lexicon, boosters = self._lexicon, package.BOOSTER_DICT
        pairs, triples = self._idioms(package.SPECIAL_CASES, missing=math.nan)
        return TokenTable(
            valence=np.repeat([lexicon.get(word, 0.0) for word in words], 2),
            in_lexicon=np.repeat([word in lexicon for word in words], 2),
            upper=np.tile([False, True], len(words)),
            booster=np.repeat([boosters.get(word, 0.0) for word in words], 2),
            negates=np.repeat([package.negated([word]) for word in words], 2),
            code=np.repeat([self._word_codes.get(word, 0) for word in words], 2).astype(np.uint8),
            pair_valence=pairs,
            pair_booster=self._idioms(boosters, missing=0.0)[0],
            triples=np.array(
                [[self._word_codes[word] for word in idiom] for idiom in triples], dtype=np.uint8
            ),
            triple_valence=np.array(list(triples.values()), dtype=np.float64),
        )

    def _idioms(
        self, phrases: Mapping[str, float], *, missing: float
    ) -> tuple[npt.NDArray[np.float64], dict[tuple[str, ...], float]]:
        """Values of two-word phrases by the codes of their words, and those of three words."""
        split = {tuple(phrase.split()): float(value) for phrase, value in phrases.items()}
        pairs = np.full((len(self._word_codes) + 1,) * 2, missing)
        for idiom, value in split.items():
            if len(idiom) == 2:
                pairs[self._word_codes[idiom[0]], self._word_codes[idiom[1]]] = value
        return pairs, {idiom: value for idiom, value in split.items() if len(idiom) == 3}


class _TokenCache(dict[str, int]):
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
