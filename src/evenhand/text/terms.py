"""Whole-word, case-insensitive matching of many terms, of one word or several."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from evenhand.text.finder import Finder, Sought


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
        self._finder = Finder([Sought(term) for term in self.terms])

    def find(self, text: str) -> list[TermMatch]:
        """Every match, in the order of the text."""
        return [TermMatch(self.terms[rank], start, end) for rank, start, end in self._finder.find(text)]


def longest_first(term: str) -> tuple[int, str]:
    """A sort key: a longer term is tried before a shorter one that it contains."""
    return -len(term), term
