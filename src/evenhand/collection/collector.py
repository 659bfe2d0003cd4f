"""From a page to prompts: which groups it speaks of, which of its sentences are taken, and why not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from evenhand.collection.cutting import Reason, Term, cut
from evenhand.collection.groups import GroupRule, Groups
from evenhand.collection.pages import Page, categories, plain
from evenhand.collection.persons import is_person
from evenhand.text.sentences import cut_first_sentence, split_sentences

_OPENING = 2000
"""Letters of a page in which its first sentence is looked for."""
_SUBJECT = re.compile(
    r"(?:The |An? )?[\"“]?(?P<subject>[^\"”(,]{2,80}?)[\"”]?"
    r"(?=\s*\(|,|\s+(?:is|was|are|were|refers to|may refer to)\b)"
)
_NO_SUBJECT = re.compile(r"^(?:In|On|At|During|After|As|By|For|From|This|There|It)\b|\b(?:has|have|had)\b")
_BRACKETS = re.compile(r"\([^)]*\)")
_IN_BRACKETS = re.compile(r" ?\(([^()\n]*+)\)")
_DATES = re.compile(r"\b(?:born|died|\d{4})\b|\A\W*\Z")
_LONGEST_TITLE = 1000


class Taken(NamedTuple):
    """A prompt with where it was found."""

    domain: str
    group: str
    key: str
    prompt: str
    wiki: str
    """The whole sentence."""
    page: str
    sentence: int
    """Its number on the page, from 1."""
    byte: int
    """Where the page begins in its file, unpacked."""


class Collected(NamedTuple):
    """What a page gave."""

    taken: list[Taken]
    rejected: Counter[tuple[str, str, str]]
    """Sentences left out, by domain, group and reason."""


def collect(page: Page, groups: Groups) -> Collected:
    """The prompts of a page, and its other sentences counted by why they are not."""
    found = Collected([], Counter())
    named = categories(page)
    opening = "" if page.is_wikitext else cut_first_sentence(page.text[:_OPENING].lstrip())
    title = page.title or subject(opening)
    rules = groups.of(title, opening, named) if title else []
    if not rules:
        return found
    text = plain(page)
    sentences = _sentences(text)
    opening = opening or cut_first_sentence(text[:_OPENING].lstrip())
    person = is_person(_name(title), opening, named)
    for rule in rules:
        fault: Reason | None = None
        if rule.person != person:
            fault = "no_person" if rule.person else "about_person"
        found.taken.extend(_taken(rule, title, sentences, page, fault, found.rejected))
    return found


def subject(sentence: str) -> str:
    """What a page without a title is about: what its first sentence says something of.

    >>> subject("A tailor is somebody who mends clothes."), subject("Ann Roe (born 1950) is a pilot.")
    ('Tailor', 'Ann Roe')
    """
    match = _SUBJECT.match(sentence)
    words = match["subject"].strip() if match else ""
    return "" if _NO_SUBJECT.search(words) else words[:1].upper() + words[1:]


def _taken(
    rule: GroupRule,
    title: str,
    sentences: list[str],
    page: Page,
    fault: Reason | None,
    rejected: Counter[tuple[str, str, str]],
) -> Iterator[Taken]:
    term = Term(_name(title), person=rule.person)
    for number, sentence in enumerate(sentences, start=1):
        prompt, reason = cut(sentence, term)
        if fault or reason:
            rejected[rule.domain, rule.name, reason or fault or "short"] += 1
        elif prompt is not None:
            key = title.replace(" ", "_")
            yield Taken(rule.domain, rule.name, key, f"{prompt} ", sentence, title, number, page.byte)


def _sentences(text: str) -> list[str]:
    """The sentences of a page; a line end also ends one.

    Dates of birth and death in brackets are dropped, as in the published sentences: they would be the prompt.
    """
    lines = (line.strip() for line in _IN_BRACKETS.sub(_without_dates, text).split("\n"))
    return [sentence for line in lines if line for sentence in split_sentences(line)]


def _without_dates(found: re.Match[str]) -> str:
    return "" if _DATES.search(found[1]) else found[0]


def _name(title: str) -> str:
    return _BRACKETS.sub("", title[:_LONGEST_TITLE]).replace("_", " ").strip()
