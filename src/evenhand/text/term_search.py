"""Finds many terms in a text at a cost that hardly grows with their number."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from evenhand.core.records import Mention

_QUOTES = "'\u2019\u2018\u02bc"
_ANY_QUOTE = f"[{_QUOTES}]"
_WORD = re.compile(r"\w")
# In a folded text these are letters and digits whatever they were before; others are looked at more closely.
_OUTSIDE_WORD = "(?<![a-z0-9_])"


class TermSpan(NamedTuple):
    """Which term stands where."""

    rank: int
    """The term's place in the list it was given in."""
    start: int
    end: int


class TermSearcher:
    """Finds terms; of those that start together the first of the list wins, and matches do not overlap.

    A term is taken literally but for three things: case is ignored as regular expressions ignore it, letter
    by letter; a space stands for any white space, a straight apostrophe for a curly one too. A list of terms
    of which each has its turn at every place of the text would cost places x terms. Here text and terms are
    folded to one spelling; at each place where a term could start, what stands there is looked up once for
    every length that a term with that first letter has.
    """

    def __init__(self, terms: Sequence[Mention]) -> None:
        self._terms = tuple(terms)
        self._ranks: dict[str, list[int]] = {}
        self._sizes: list[int] = []
        lengths: dict[str, set[int]] = {}
        for rank, term in enumerate(self._terms):
            folded = " ".join(term.text.split()).translate(_FOLD)
            self._ranks.setdefault(folded, []).append(rank)
            lengths.setdefault(folded[0], set()).add(len(folded))
            self._sizes.append(len(folded))
        self._lengths = {first: tuple(sorted(sizes)) for first, sizes in lengths.items()}
        firsts = "".join(map(re.escape, lengths))
        before = _OUTSIDE_WORD if all(term.whole_word for term in self._terms) else ""
        self._starts = re.compile(f"{before}[{firsts}]" if lengths else "(?!)")
        self._spellings: dict[int, re.Pattern[str]] = {}

    def find(self, text: str) -> Iterator[TermSpan]:
        """Every match, in the order of the text."""
        # One spelling, in which every letter stays one letter and every run of white space is one space.
        folded = text.translate(_FOLD)
        origins: Sequence[int] = range(len(folded))
        if "  " in folded:
            neighbours = zip("x" + folded, folded, strict=False)
            origins = [place for place, pair in enumerate(neighbours) if pair != (" ", " ")]
            folded = "".join(folded[origin] for origin in origins)
        done = 0
        for match in self._starts.finditer(folded):
            place = match.start()
            if place < done:
                continue
            ranks: list[int] = []
            for length in self._lengths[folded[place]]:
                # At the end of the text the piece is shorter, and then no term of that length.
                piece = folded[place : place + length]
                if piece in self._ranks and len(piece) == length:
                    ranks += self._ranks[piece]
            for rank in sorted(ranks):
                start, end = origins[place], origins[place + self._sizes[rank] - 1] + 1
                if self._fits(rank, text, start, end):
                    yield TermSpan(rank, start, end)
                    done = place + self._sizes[rank]
                    break

    def _fits(self, rank: int, text: str, start: int, end: int) -> bool:
        """Whether a candidate is a match: folding is coarser than ignoring case beyond ASCII."""
        term = self._terms[rank]
        if term.whole_word and (
            (start > 0 and _WORD.match(text, start - 1) is not None) or _WORD.match(text, end) is not None
        ):
            return False
        if term.text.isascii() and text[start:end].isascii():
            return True
        if rank not in self._spellings:
            parts = (re.escape(part).replace("'", _ANY_QUOTE) for part in term.text.split())
            self._spellings[rank] = re.compile(r"\s+".join(parts), re.IGNORECASE)
        return self._spellings[rank].fullmatch(text, start, end) is not None


class _FoldTable(dict[int, str]):
    """A translation table that learns: any two characters that may match have the same fold."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if character.isspace():
            folded = " "
        elif character in _QUOTES:
            folded = "'"
        else:
            # Down, up and down again: long s, Kelvin and final sigma join their letters only on the way.
            folded = character.lower()[0].upper()[0].lower()[0]
        self[code] = folded
        return folded


_FOLD = _FoldTable()
