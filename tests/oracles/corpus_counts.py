"""The slow, obvious twin of the corpus kernel: decode, split, look every word up in Python sets."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

from evenhand.corpus.term_lists import TermList, split_term
from evenhand.corpus.tokenisation import GAP_BYTES, GAPS, PAPER_DELETED, fold_letter, is_word_letter

SPACE = "[ \t\n\r\x0b\x0c]"


def units(text: str, unit: str) -> list[str]:
    """The units of a text that is not made of records."""
    if unit == "line":
        return text.split("\n")
    if unit == "document":
        return re.split("\n[ \t\r]*(?=\n)|^[ \t\r]*\n", text)
    return re.split(f"\n|[.?!](?={SPACE})", text)


def tokens(text: str) -> list[tuple[str, str]]:
    """Each word, folded, with what stands between the word before and it."""
    found, word, gap = [], "", ""
    for letter in text + "\n":
        if is_word_letter(letter):
            word += fold_letter(letter)
        else:
            if word:
                found.append((word, gap))
                word, gap = "", ""
            gap += letter
    return found


def joins(gap: str) -> bool:
    return 0 < len(gap.encode()) <= GAP_BYTES and all(letter in GAPS for letter in gap)


def accents(parts: tuple[str, ...]) -> dict[tuple[str, ...], tuple[str, ...]]:
    """A term with its accents composed and decomposed."""
    forms = (unicodedata.normalize(form, " ".join(parts)) for form in ("NFC", "NFD"))
    return {tuple(word for word, _ in tokens(form)): parts for form in forms}


Words = tuple[str, ...]


def terms_in(text: str, spellings: dict[Words, Words], longest: int) -> set[Words]:
    found, tokens_ = set(), tokens(text)
    for i in range(len(tokens_)):
        for size in range(1, longest + 1):
            if i + size > len(tokens_) or not all(joins(tokens_[k][1]) for k in range(i + 1, i + size)):
                break
            parts = tuple(word for word, _ in tokens_[i : i + size])
            if parts in spellings:
                found.add(spellings[parts])
    return found


def count(
    texts: list[str], terms: TermList, *, unit: str = "sentence", rule: str = "words"
) -> Counter[tuple[str, ...]]:
    """Every count by name; ``texts`` are records where there are several, and one text otherwise."""
    lists = {("emotion", name): part for name, part in terms.emotions.items()}
    lists |= {(group.axis, group.name): group.terms for group in terms.groups}
    sets = {key: {split_term(term, rule) for term in part} - {()} for key, part in lists.items()}
    every = set().union(*sets.values())
    spellings = {spelling: parts for term in every for spelling, parts in accents(term).items()}
    longest = max((len(parts) for parts in every), default=1)
    result: Counter[tuple[str, ...]] = Counter()
    for text in texts:
        if rule == "paper" and unit == "document":
            # A line that the rule empties is blank, and ends a document.
            text = text.translate(dict.fromkeys(PAPER_DELETED))
        for piece in [text] if unit == "record" else units(text, unit):
            if rule == "paper":
                piece = piece.translate(dict.fromkeys(PAPER_DELETED))
            if not tokens(piece):
                continue
            result["units",] += 1
            result["words",] += len(tokens(piece))
            _add(result, terms_in(piece, spellings, longest), sets)
    return result


def _add(result, found, sets):
    emotions = [name for (axis, name), part in sets.items() if axis == "emotion" and found & part]
    groups = {key: len(found & part) for key, part in sets.items() if key[0] != "emotion" and found & part}
    for emotion in [*emotions, "*"]:
        result["emotion", emotion] += 1
        for (axis, name), number in groups.items():
            result["flag", emotion, axis, name] += 1
            if emotion != "*":
                result["distinct", emotion, axis, name] += number
        for axis in {axis for axis, _ in groups}:
            result["axis", emotion, axis] += 1
        if groups:
            result["any", emotion] += 1
