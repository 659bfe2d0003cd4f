"""Word tokens."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

_WORD = re.compile(r"\w+(?:'\w+)?")


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

    >>> words("He's well-read.")
    ["he's", 'well', 'read']
    """
    return _WORD.findall(text.lower())


def find_tokens(text: str) -> list[Token]:
    """The same words with their places in the text.

    Words are found before they are lower-cased, so that places fit the text as given; the two orders differ
    only for letters whose lower-case form is longer (the Turkish capital dotted i).
    """
    return [Token(match[0].lower(), match.start(), match.end()) for match in _WORD.finditer(text)]


_QUOTES = str.maketrans(
    {
        "\u2018": "'",
        "\u2019": "'",
        "\u201b": "'",
        "\u2032": "'",
        "\u02bc": "'",
        "\u00b4": "'",
        "\u201c": '"',
        "\u201d": '"',
        "\u201f": '"',
        "\u2033": '"',
        "\u00ab": '"',
        "\u00bb": '"',
    }
)
# Characters that take no room on the page and yet make two equal-looking strings differ.
_INVISIBLE = dict.fromkeys((0x00AD, 0x200B, 0x2060, 0xFEFF))
# Those of them that stand inside a word; a zero-width space stands between two.
_INSIDE_WORDS = dict.fromkeys((0x00AD, 0x2060, 0xFEFF))
# Every Unicode space but the line ends, which carry structure.
_SPACE_RUN = re.compile(r"[^\S\r\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029]+")


def compose_unicode(text: str) -> str:
    """The text in Unicode NFC, without soft hyphens, word joiners and byte-order marks.

    A letter and its accent are one character, and a word is not cut by what nobody sees. Everything else
    stays: quotes, spaces, and the joiners that shape scripts and emoji.

    >>> composed("Jose\u0301") == composed("Jo\u00ads\u00e9") == "Jos\u00e9"
    True
    """
    return text if text.isascii() else unicodedata.normalize("NFC", text.translate(_INSIDE_WORDS))


def normalise_text(text: str) -> str:
    """The text in Unicode NFC with plain quotes and single plain spaces inside each line.

    Curly, prime and angle quotes become ``'`` or ``"``; every run of spaces (no-break, thin, tab ...) becomes
    one space; soft hyphens, zero-width spaces and byte-order marks go; line ends stay. Applying it twice
    changes nothing more.

    >>> normalise("She\u2019s\u00a0here")
    "She's here"
    """
    # NFC comes last as well as first: a removed joiner can bring a letter and its accent together.
    folded = unicodedata.normalize("NFC", text).translate(_QUOTES).translate(_INVISIBLE)
    return _SPACE_RUN.sub(" ", unicodedata.normalize("NFC", folded))


def fold_term(text: str) -> str:
    """A key under which two spellings of one term meet: normalised, case-folded, spaces collapsed.

    >>> fold("New\u00a0 York") == fold("new york")
    True
    """
    return " ".join(normalise_text(text).casefold().split())
