"""Whole-word, case-insensitive matching of many terms, of one word or several."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

_QUOTE = "['\u2019\u2018\u02bc]"


class TermMatch(NamedTuple):
    """A term and where it stands in the text."""

    term: str
    """As it was given to `Terms`, whatever its case in the text."""
    start: int
    end: int


class Terms:
    """A list of terms, ready to be found in texts.

    A match is a whole word (no letter, digit or underscore touches it) in any case; a space in a term stands
    for any white space, a straight apostrophe for a curly one too. Matches do not overlap: the leftmost wins,
    and of those that start together the longest. The corpus scanner has a faster kernel with the same rule.

    >>> [match.term for match in Terms(["New York", "york"]).find("In new  york, not Yorkshire")]
    ['New York']
    """

    def __init__(self, terms: Iterable[str]) -> None:
        unique = {term.strip() for term in terms} - {""}
        self.terms = tuple(sorted(unique, key=longest_first))
        branches = "|".join(f"({term_pattern(term)})" for term in self.terms)
        self._pattern = re.compile(branches, re.IGNORECASE)

    def find(self, text: str) -> list[TermMatch]:
        """Every match, in the order of the text."""
        if not self.terms:
            return []
        return [
            TermMatch(self.terms[(match.lastindex or 1) - 1], match.start(), match.end())
            for match in self._pattern.finditer(text)
        ]


def term_pattern(term: str, *, whole_word: bool = True) -> str:
    """A regular expression for one term taken literally; compile it with ``re.IGNORECASE``."""
    parts = (re.escape(part).replace("'", _QUOTE) for part in term.split())
    body = r"\s+".join(parts)
    return rf"(?<!\w){body}(?!\w)" if whole_word else body


def longest_first(term: str) -> tuple[int, str]:
    """A sort key: a longer term is tried before a shorter one that it contains."""
    return -len(term), term
