"""Word pieces to clean text: BERT's tokenizer splits at every mark and keeps no spaces."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest

_INSIDE = "##"
_TIGHT_BEFORE = frozenset(",.;:?!)]}%…")
_TIGHT_AFTER = frozenset("([{$£€#@")
_JOINERS = frozenset("-/")
_CLITICS = frozenset({"s", "t", "re", "ve", "ll", "d", "m"})
_APOSTROPHES = frozenset("'’")
_INITIAL = re.compile(r"(?:\A|[\s.(\"])[A-Za-z]\.\Z")
_NUMBER_MARK = re.compile(r"\d[.,:]\Z")
_ELISION = re.compile(r"(?:\A|\s)[A-Za-z]['’]\Z")


def joined(before: str, pieces: Sequence[str]) -> str:
    """The text of pieces as it goes on after ``before``, with the space that separates them.

    Spaces are put back by rule: none before a closing mark or after an opening one, double quotes by turns,
    hyphens, slashes, clitics, initials and numbers closed up. What the tokenizer lost (the case of uncased
    models, spaces around a dash) stays lost.

    >>> joined("The old", ["##est", "man", "'", "s", "well", "-", "known", "dog", "(", "3", ")", "."])
    "est man's well-known dog (3)."
    """
    text = before
    for piece, following in zip_longest(pieces, pieces[1:], fillvalue=""):
        if piece.startswith(_INSIDE) and len(piece) > len(_INSIDE):
            text += piece.removeprefix(_INSIDE)
        else:
            text += (" " if _is_spaced(text, piece, following) else "") + piece
    return text[len(before) :]


def _is_spaced(text: str, piece: str, following: str) -> bool:
    """Whether a space stands between the text and its next piece."""
    last = text[-1:]
    if not last or last.isspace() or last in _TIGHT_AFTER:
        return False
    if piece in _TIGHT_BEFORE or piece in _APOSTROPHES:
        return False
    if piece == '"':
        return text.count('"') % 2 == 0
    if last == '"':
        return text.count('"') % 2 == 0
    if last in _APOSTROPHES:
        return piece.lower() not in _CLITICS and not _ELISION.search(text)
    if piece in _JOINERS or last in _JOINERS:
        return not _joins(text, piece, following)
    return not _goes_on(text, piece, following)


def _joins(text: str, piece: str, following: str) -> bool:
    """Whether a hyphen or slash stands between two words or numbers."""
    if piece in _JOINERS:
        return text[-1].isalnum() and following[:1].isalnum()
    return text[-2:-1].isalnum() and piece[:1].isalnum()


def _goes_on(text: str, piece: str, following: str) -> bool:
    """Whether the piece continues a number (1,000; 3.5; 12:30) or a row of initials (U.S.)."""
    if piece.isdigit() and _NUMBER_MARK.search(text):
        return text[-1] == "." or len(piece) == (3 if text[-1] == "," else 2)
    return len(piece) == 1 and piece.isalpha() and following == "." and bool(_INITIAL.search(text))
