"""VADER's sentence rules over token classes, compiled: the same sums as vaderSentiment 3.3.2, bit for bit.

A text is a row of token classes (see `vader.TokenTable`). Each rule keeps the original's order of operations,
its floating-point steps and its oddities, because a score must not depend on which way it was computed.
Importing this module imports numba, so it is done on first use. The compiled code is kept beside this file in
``__pycache__``, or in the user's cache folder where that is read-only; ``NUMBA_CACHE_DIR`` names another one.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt
from numba import njit

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


class Table(NamedTuple):
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


def compiled(function: _F) -> _F:
    """The function in machine code, kept on disk, with its type as it was."""
    return cast(_F, njit(cache=True, nogil=True)(function))


@compiled
def compounds(
    ids: Words,
    ends: Counts,
    exclamations: Counts,
    questions: Counts,
    table: Table,
) -> Floats:
    """The compound score of each text, not yet rounded; text *k* is ``ids[ends[k - 1]:ends[k]]``."""
    out = np.zeros(len(ends))
    start = 0
    for k in range(len(ends)):
        words = ids[start : ends[k]]
        start = ends[k]
        if len(words):
            total = _total(sentiments(words, table))
            emphasis = _emphasis(exclamations[k], questions[k])
            if total > 0:
                total += emphasis
            elif total < 0:
                total -= emphasis
            out[k] = min(1.0, max(-1.0, total / math.sqrt((total * total) + 15)))
    return out


@compiled
def sentiments(words: Words, t: Table) -> Floats:
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


@compiled
def _is_modifier(words: Words, i: int, t: Table) -> bool:
    kind_of = t.code[words[i]] == KIND and i + 1 < len(words) and t.code[words[i + 1]] == OF
    return bool(kind_of or t.booster[words[i]] != 0)


@compiled
def _valence(words: Words, i: int, mixed_case: bool, t: Table) -> float:
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
        valence = _negated(valence + boost, words, i, distance, t)
        if distance == 3:
            valence = _idiom(valence, words, i, t)
    return _least(valence, words, i, t)


@compiled
def _own_valence(words: Words, i: int, t: Table) -> float:
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


@compiled
def _boost(word: int, valence: float, mixed_case: bool, t: Table) -> float:
    boost = float(t.booster[word])
    if boost == 0:
        return 0.0
    if valence < 0:
        boost *= -1
    if mixed_case and t.upper[word]:
        boost = boost + CAPS if valence > 0 else boost - CAPS
    return boost


@compiled
def _negated(valence: float, words: Words, i: int, distance: int, t: Table) -> float:
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


@compiled
def _idiom(valence: float, words: Words, i: int, t: Table) -> float:
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
        found = _later(found, t.pair_valence[zero, following])
        if i + 2 < len(words):
            found = _later(found, _triple(zero, following, t.code[words[i + 2]], t))
    valence = _later(valence, found)
    return valence + float(t.pair_booster[three, two]) + float(t.pair_booster[two, one])


@compiled
def _later(before: float, after: float) -> float:
    return before if np.isnan(after) else after


@compiled
def _triple(a: int, b: int, c: int, t: Table) -> float:
    for k in range(len(t.triple_valence)):
        if t.triples[k, 0] == a and t.triples[k, 1] == b and t.triples[k, 2] == c:
            return float(t.triple_valence[k])
    return np.nan


@compiled
def _least(valence: float, words: Words, i: int, t: Table) -> float:
    if i == 0 or t.code[words[i - 1]] != LEAST:
        return valence
    if i > 1 and t.code[words[i - 2]] in (AT, VERY):
        return valence
    return valence * NEGATION


@compiled
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


@compiled
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


@compiled
def _emphasis(exclamations: int, questions: int) -> float:
    emphasis = min(exclamations, 4) * 0.292
    if questions > 3:
        return emphasis + 0.96
    if questions > 1:
        return emphasis + questions * 0.18
    return emphasis
