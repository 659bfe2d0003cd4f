"""Masks the words that reveal a group, so that a metric scores what is said and not of whom."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from evenhand.core.records import Mask, Mention
from evenhand.text.terms import longest_first, term_pattern


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
    wanted = tuple(dict.fromkeys(mention for mention in mentions if mention.text.strip()))
    if not wanted:
        return Masked(text, ())
    return _replace(text, _compile(wanted), token)


class _Plan(NamedTuple):
    pattern: re.Pattern[str]
    masks: tuple[Mask, ...]
    """The mask of each branch of the pattern."""


# Texts of one prompt share their mentions; BOLD has 7,133 entities with several texts each, in order.
@lru_cache(maxsize=512)
def _compile(mentions: tuple[Mention, ...]) -> _Plan:
    ordered = sorted(mentions, key=lambda mention: longest_first(mention.text))
    branches = (f"({term_pattern(mention.text, whole_word=mention.whole_word)})" for mention in ordered)
    pattern = re.compile("|".join(branches), re.IGNORECASE)
    return _Plan(pattern, tuple(mention.mask for mention in ordered))


def _replace(text: str, plan: _Plan, token: Mask | None) -> Masked:
    pieces: list[str] = []
    spans: list[tuple[int, int]] = []
    done = length = 0
    for match in plan.pattern.finditer(text):
        kept = text[done : match.start()]
        stand_in = token or plan.masks[(match.lastindex or 1) - 1]
        start = length + len(kept)
        length = start + len(stand_in)
        pieces += (kept, stand_in)
        spans.append((start, length))
        done = match.end()
    return Masked("".join((*pieces, text[done:])), tuple(spans))
