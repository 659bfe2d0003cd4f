"""Finds the token classes of ASCII texts straight in their bytes, compiled.

The same three steps as `vader_words` takes for any text: split at white space, strip punctuation unless two
characters or fewer remain, look the lower-cased word up. Here they are one pass that makes no Python string.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.metrics.vader_rules import Counts, Words, compiled

Bytes = npt.NDArray[np.uint8]
Slots = npt.NDArray[np.int32]

_SLOTS = 1 << 15
_SPACE, _PUNCTUATION, _UPPER, _LOWER = 1, 2, 4, 8
_EXCLAMATION, _QUESTION, _QUOTE, _N, _T = b"!?'nt"


class Dictionary(NamedTuple):
    """An open-addressed table of words, and what each byte is."""

    kinds: Bytes
    """For each byte the bits that hold: white space, punctuation, capital, small letter."""
    slots: Slots
    """The number of the word in a slot; 0 where it is empty."""
    starts: Counts
    """Where the word of a number starts in ``letters``; it ends where the next one starts."""
    letters: Bytes

    @classmethod
    def of(cls, words: Mapping[str, int]) -> Dictionary:
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


@compiled
def token_classes(text: Bytes, ends: Counts, dictionary: Dictionary) -> tuple[Words, Counts, Counts, Counts]:
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


@compiled
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


@compiled
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


@compiled
def _holds_nt(text: Bytes, first: int, last: int) -> bool:
    for i in range(first + 1, last - 1):
        if text[i] == _QUOTE and _small(text[i - 1]) == _N and _small(text[i + 1]) == _T:
            return True
    return False


@compiled
def _count_marks(text: Bytes, ends: Counts, marks: Counts) -> None:
    start = 0
    for k in range(len(ends)):
        exclamations = questions = 0
        for i in range(start, ends[k]):
            exclamations += text[i] == _EXCLAMATION
            questions += text[i] == _QUESTION
        marks[1, k], marks[2, k] = exclamations, questions
        start = ends[k]


@compiled
def _small(byte: int) -> int:
    # Signed throughout: numba turns a mix of signed and unsigned integers into floats.
    return int(np.int64(byte) + 32 if 65 <= byte <= 90 else np.int64(byte))


@compiled
def _hash(text: Bytes, first: int, last: int) -> int:
    """The slot of a word, capitals taken as small letters: 32-bit FNV-1a folded to 15 bits."""
    value = 2166136261
    for i in range(first, last):
        value = ((value ^ _small(text[i])) * 16777619) & 0xFFFFFFFF
    return (value ^ (value >> 15)) & (_SLOTS - 1)
