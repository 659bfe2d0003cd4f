"""Whole-word matching by trying every term at every place."""

from __future__ import annotations

from typing import NamedTuple


class TermMatch(NamedTuple):
    """A term and where it stands in a text."""

    term: str
    start: int
    end: int


def find_slowly(terms: list[str], text: str) -> list[TermMatch]:
    found: list[TermMatch] = []
    at = 0
    ordered = sorted({term.strip() for term in terms} - {""}, key=lambda term: (-len(term), term))
    while at < len(text):
        ends = [(term, _end(term, text, at)) for term in ordered]
        hits = [(term, end) for term, end in ends if end is not None]
        if hits:
            found.append(TermMatch(hits[0][0], at, hits[0][1]))
            at = max(hits[0][1], at + 1)
        else:
            at += 1
    return found


def _end(term: str, text: str, at: int) -> int | None:
    if at > 0 and _is_word(text[at - 1]):
        return None
    place = at
    for number, part in enumerate(term.split()):
        if number:
            before = place
            while place < len(text) and text[place].isspace():
                place += 1
            if place == before:
                return None
        if text[place : place + len(part)].lower() != part.lower():
            return None
        place += len(part)
    return None if place < len(text) and _is_word(text[place]) else place


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"
