"""One spelling for strings that look the same.

`normalise` and `fold` are for comparing words, never for the text a metric scores; `composed` changes nothing
a reader sees, and is for both.
"""

from __future__ import annotations

import re
import unicodedata

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


def composed(text: str) -> str:
    """The text in Unicode NFC, without soft hyphens, word joiners and byte-order marks.

    A letter and its accent are one character, and a word is not cut by what nobody sees. Everything else
    stays: quotes, spaces, and the joiners that shape scripts and emoji.

    >>> composed("Jose\u0301") == composed("Jo\u00ads\u00e9") == "Jos\u00e9"
    True
    """
    return text if text.isascii() else unicodedata.normalize("NFC", text.translate(_INSIDE_WORDS))


def normalise(text: str) -> str:
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


def fold(text: str) -> str:
    """A key under which two spellings of one term meet: normalised, case-folded, spaces collapsed.

    >>> fold("New\u00a0 York") == fold("new york")
    True
    """
    return " ".join(normalise(text).casefold().split())
