"""The tokenisation rule of corpus counts: what a word is, how words are compared, where a unit ends.

* A *word* is a run of letters, marks and digits of any script (Unicode categories L, M, N) and underscores.
  Everything else separates: ``king's`` is ``king`` and ``s``, ``well-read`` two words, ``#sad`` is ``sad``.
  So do marks that only choose the look of a symbol (variation selectors, enclosing marks): they end emoji.
* Words are compared *folded*, letter by letter: the case-folded letter where that is one letter, else its
  lower case where that is one, else the letter itself. No accent is dropped.
* A *term* of several words (``brother-in-law``, ``ma'am``, ``New York``) is found where its words follow each
  other with a gap of at most `GAP_BYTES` bytes of blanks, tabs, hyphens and apostrophes between them. Every
  term is found for itself: ``black man`` is found together with ``man``.
* A *sentence* ends at a newline, and at ``.``, ``?`` or ``!`` before white space; a *line* at a newline; a
  *document* at an empty line. The record of a table or dump is a document, and ends all of them.
* A unit without a word is not counted. Bytes that are not UTF-8 separate words, and are reported.

`PAPER` is the rule of the affective-bias paper: some ASCII punctuation and the digits are deleted first, so
that ``don't`` is ``dont``; terms that hold a separator can then never be found.
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
CountingMode = Literal["flag", "distinct"]
ClusterUnit = Literal["document", "line", "file"]
"""What is taken as independent of each other."""

PAPER_DELETED = b"~!@#$%^&*()_-+={}[]|\\/><'?.,`:;0123456789"
"""What the paper's released scripts delete before they split words."""
GAPS = (" ", "\t", "-", "'", "\u2019", "\u2018", "\u02bc", "\u2010", "\u2011", "\u00a0")
"""What may stand between two words of a term."""
GAP_BYTES = 16
RECORD_END = 0xFF
"""Ends a record in the byte stream; no UTF-8 text holds this byte."""

_LETTERS_END, _LATE_MARKS = 0x40000, range(0xE0000, 0xE0200)
"""Unicode has no letters, marks or digits elsewhere; asking for every code point would take a second."""
_OF_SYMBOLS = frozenset(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
"""Variation selectors: the heart of ``\u2764\ufe0fhappy`` must not become a part of the word."""
PAPER_STOP = re.compile(rb"[.?!](?=[ \t\r\n\x0b\x0c])")


@cache
def letter_tables() -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32]]:
    """The rule for every code point: whether it makes words, and its folded form."""
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
    """The form under which a letter is compared; always one letter."""
    for form in (letter.casefold(), letter.lower()):
        if len(form) == 1:
            return form
    return letter


def is_word_letter(letter: str) -> bool:
    """Whether a letter belongs to words."""
    if letter in _OF_SYMBOLS:
        return False
    category = unicodedata.category(letter)
    return letter == "_" or (category[0] in "LMN" and category != "Me")


def split_words(text: str) -> list[str]:
    """The folded words of a text.

    >>> split_words("Ma'am, the King's WELL-read")
    ['ma', 'am', 'the', 'king', 's', 'well', 'read']
    """
    return "".join(fold_letter(letter) if is_word_letter(letter) else " " for letter in text).split()
