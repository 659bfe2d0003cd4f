"""Masks the words that reveal a group, so that a metric scores what is said and not of whom."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from evenhand.core.records import Mask, Mention
from evenhand.text.finder import Finder, Sought
from evenhand.text.terms import longest_first


class Masked(NamedTuple):
    """A text with masks, and where they stand in it."""

    text: str
    spans: tuple[tuple[int, int], ...]


def mask(text: str, mentions: Sequence[Mention], *, token: Mask | None = None) -> Masked:
    """The text with every occurrence of a mention replaced by its mask, or by ``token`` where one is given.

    Matching ignores case; a mention is a whole word unless it says otherwise; a space stands for any white
    space, a straight apostrophe for a curly one too. Where two mentions could match, the leftmost wins, and
    of those that start together the longest. Endings stay ("the woman's" becomes "XYZ's"), and neighbouring
    masks are not merged. A mention without words masks nothing.

    >>> mask("The woman's job", [Mention("the woman")])
    Masked(text="XYZ's job", spans=((0, 3),))
    """
    return _replace(text, _plan(tuple(mentions)), token) if mentions else Masked(text, ())


class _Plan(NamedTuple):
    finder: Finder
    masks: tuple[Mask, ...]
    """The mask of each term of the finder."""


# Texts of one prompt share their mentions; BOLD has 7,133 entities with several texts each, in order.
@lru_cache(maxsize=512)
def _plan(mentions: tuple[Mention, ...]) -> _Plan:
    wanted = dict.fromkeys(mention for mention in mentions if mention.text.strip())
    ordered = sorted(wanted, key=lambda mention: longest_first(mention.text))
    finder = Finder([Sought(mention.text, mention.whole_word) for mention in ordered])
    return _Plan(finder, tuple(mention.mask for mention in ordered))


def _replace(text: str, plan: _Plan, token: Mask | None) -> Masked:
    pieces: list[str] = []
    spans: list[tuple[int, int]] = []
    done = length = 0
    for found in plan.finder.find(text):
        kept = text[done : found.start]
        stand_in = token or plan.masks[found.rank]
        start = length + len(kept)
        length = start + len(stand_in)
        pieces += (kept, stand_in)
        spans.append((start, length))
        done = found.end
    return Masked("".join((*pieces, text[done:])), tuple(spans))
