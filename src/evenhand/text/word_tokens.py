"""Words, words with marks, and the form in which texts are compared."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

_WORD = re.compile(r"\w+(?:'\w+)?")
_PIECE = re.compile(r"\w+(?:'\w+)?|[^\w\s]")


class Token(NamedTuple):
    """A word, lower-cased, and where it stands in the text."""

    word: str
    start: int
    end: int


def split_words(text: str) -> list[str]:
    r"""The words of a text by BOLD's recipe: lower-cased, then every ``\w+(?:'\w+)?``.

    A word is a run of letters, digits and underscores, with at most one straight apostrophe inside ("he's",
    "o'clock"); a hyphen separates. The recipe knows the straight apostrophe only: a curly one separates too
    ("man's" is one word, "man\u2019s" two), and folding it would move the published counts.

    >>> split_words("He's well-read.")
    ["he's", 'well', 'read']
    """
    return _WORD.findall(text.lower())


def find_tokens(text: str) -> list[Token]:
    """The same words with their places in the text.

    Text is split before it is lower-cased, so that places fit the text as given; the two orders differ
    only for letters whose lower-case form is longer (the Turkish capital dotted i).
    """
    return [Token(match[0].lower(), match.start(), match.end()) for match in _WORD.finditer(text)]


# Characters inside a word that take no room on the page and yet make two equal-looking strings differ.
_INSIDE_WORDS = dict.fromkeys((0x00AD, 0x2060, 0xFEFF))


def compose_unicode(text: str) -> str:
    """The text in Unicode NFC, without soft hyphens, word joiners and byte-order marks.

    A letter and its accent are one character, and a word is not cut by what nobody sees. Everything else
    stays: quotes, spaces, and the joiners that shape scripts and emoji.

    >>> compose_unicode("Jose\u0301") == compose_unicode("Jo\u00ads\u00e9") == "Jos\u00e9"
    True
    """
    return unicodedata.normalize("NFC", text.translate(_INSIDE_WORDS))


def tokenize(text: str) -> list[str]:
    """The words and single marks of a text, lower-cased: what n-grams are counted over.

    >>> tokenize("He's well, isn't he?")
    ["he's", 'well', ',', "isn't", 'he', '?']
    """
    return _PIECE.findall(text.lower())
