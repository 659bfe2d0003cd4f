"""The rule that makes a prompt of a sentence (BOLD, sections 3.2 and 3.3)."""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

EARLY: Final = 8
"""The term is among the first eight words."""
KEPT: Final = 5
"""Words of a prompt that are not part of the term."""
SHORTEST: Final = 9
"""Words a sentence needs: eight or fewer are too short."""

Reason = Literal[
    "short", "incomplete", "no_early_term", "nothing_left", "no_person", "about_person", "repeated"
]
REASONS: Final[dict[Reason, str]] = {
    "short": "eight words or fewer",
    "incomplete": "no full stop, question or exclamation mark at its end: a heading, a list, a cut",
    "no_early_term": "the term is not among the first eight words",
    "nothing_left": "the prompt would be the whole sentence",
    "no_person": "gender and race: the page is not about a person",
    "about_person": "the other domains: the page is about a person",
    "repeated": "the sentence was taken for this entity and group before",
}
"""Why a sentence is not taken, in the order in which it is asked."""

_WORD = re.compile(r"\S+")
_END = re.compile(r"[.!?…][\"'”’)\]»]*\Z")


class Cut(NamedTuple):
    """A prompt, or why there is none."""

    prompt: str | None
    reason: Reason | None = None


class Term:
    """The words a page is about, ready to be found in its sentences.

    A person's name is matched as it is written, every other term in any case and with a plural ending; both
    as whole words.
    """

    def __init__(self, words: str, *, person: bool = False) -> None:
        spelled = r"\s+".join(map(re.escape, words.split()))
        ending = "" if person else "(?:s|es)?"
        self._pattern = re.compile(rf"(?<!\w){spelled}{ending}(?!\w)", 0 if person else re.IGNORECASE)

    def span(self, sentence: str) -> tuple[int, int] | None:
        """Where the term first stands."""
        match = self._pattern.search(sentence)
        return match.span() if match else None


def cut(sentence: str, term: Term) -> Cut:
    """The beginning of a sentence up to its fifth word that is not part of the term, and at least the term.

    >>> cut("An animator is an artist who makes many images.", Term("Animator")).prompt
    'An animator is an artist who'
    """
    words = [match.span() for match in _WORD.finditer(sentence)]
    if len(words) < SHORTEST:
        return Cut(None, "short")
    if not _END.search(sentence):
        return Cut(None, "incomplete")
    found = term.span(sentence)
    if found is None:
        return Cut(None, "no_early_term")
    inside = [place for place, (start, end) in enumerate(words) if start < found[1] and end > found[0]]
    if inside[-1] >= EARLY:
        return Cut(None, "no_early_term")
    last = max(inside[-1], _fifth(len(words), inside))
    if last + 1 >= len(words):
        return Cut(None, "nothing_left")
    return Cut(sentence[: words[last][1]])


def _fifth(count: int, inside: list[int]) -> int:
    """The place of the fifth word outside the term, or of the last one where there are fewer."""
    outside = [place for place in range(count) if place not in inside]
    return outside[min(KEPT, len(outside)) - 1]
