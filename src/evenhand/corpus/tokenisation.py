"""The tokenisation rule of corpus counts: what a word is, how words are compared, where a unit ends.

* A *word* is a run of letters, marks and digits of any script (Unicode categories L, M, N) and underscores.
  All else separates words: ``king's`` is ``king`` and ``s``, ``well-read`` is two words, ``#sad`` is ``sad``.
  So do marks that only change the look of a symbol (variation selectors, enclosing marks), as in emoji.
* Words are compared *folded*, letter by letter: the case-folded form if that is one letter, else the
  lower-case form if that is one, else the letter itself. Accents are kept.
* A *term* of several words (``brother-in-law``, ``ma'am``, ``New York``) matches where its words follow each
  other, separated by at most `GAP_BYTES` bytes of blanks, tabs, hyphens and apostrophes. Terms match
  independently of each other: ``black man`` also matches ``man``.
* A *sentence* ends at a newline, and at ``.``, ``?`` or ``!`` before white space; a *line* at a newline; a
  *document* at an empty line. A record of a table or dump is a document, and its end ends all three.
* A unit without a word is not counted. Bytes that are not UTF-8 separate words, and are reported.

``paper`` is the rule of the affective-bias paper: some ASCII punctuation and all digits are deleted first,
so ``don't`` becomes ``dont``; terms that contain a separator can then never match.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import cache
from typing import Literal

import numpy as np
import numpy.typing as npt

WordRule = Literal["words", "paper"]
CountingUnit = Literal["sentence", "line", "document"]
ClusterUnit = Literal["document", "line", "file"]
"""The observations that intervals treat as independent."""

PAPER_DELETED = b"~!@#$%^&*()_-+={}[]|\\/><'?.,`:;0123456789"
"""The bytes that the paper's released scripts delete before they split words."""
GAPS = (" ", "\t", "-", "'", "\u2019", "\u2018", "\u02bc", "\u2010", "\u2011", "\u00a0")
"""The characters allowed between two words of a term."""
GAP_BYTES = 16
RECORD_END = 0xFF
"""Ends a record in the byte stream; no UTF-8 text holds this byte."""

_LETTERS_END, _LATE_MARKS = 0x40000, range(0xE0000, 0xE0200)
"""Unicode has no letters, marks or digits elsewhere; checking every code point would take a second."""
_SELECTORS = frozenset(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
"""Variation selectors: the heart of ``\u2764\ufe0fhappy`` must not become part of the word."""
PAPER_STOP = re.compile(rb"[.?!](?=[ \t\r\n\x0b\x0c])")


@cache
def letter_tables() -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32]]:
    """For every code point, whether it is part of a word, and its folded form."""
    size = sys.maxunicode + 1
    is_word = np.zeros(size, dtype=np.uint8)
    folded = np.arange(size, dtype=np.int32)
    for code in (*range(_LETTERS_END), *_LATE_MARKS):
        letter = chr(code)
        if is_word_letter(letter):
            is_word[code] = 1
            folded[code] = ord(fold_letter(letter))
    return is_word, folded


def fold_letter(letter: str) -> str:
    """The form in which a letter is compared; always one letter."""
    for form in (letter.casefold(), letter.lower()):
        if len(form) == 1:
            return form
    return letter


def is_word_letter(letter: str) -> bool:
    """Whether a letter can be part of a word."""
    if letter in _SELECTORS:
        return False
    category = unicodedata.category(letter)
    return letter == "_" or (category[0] in "LMN" and category != "Me")


def split_words(text: str) -> list[str]:
    """The folded words of a text.

    >>> split_words("Ma'am, the King's WELL-read")
    ['ma', 'am', 'the', 'king', 's', 'well', 'read']
    """
    return "".join(fold_letter(letter) if is_word_letter(letter) else " " for letter in text).split()
