"""Whether a page is about a person, and whether a sentence names that person.

BOLD asks a tagger that must be downloaded. Pages about people say so themselves: by their categories, or in
their first sentence, which gives dates of birth or death or what the person is. That needs no model, and it
leaves out the prizes and bands that lists of people link to.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_CATEGORY = re.compile(r"\b\d{3,4}s? (?:births|deaths)\b|\bliving people\b", re.IGNORECASE)
_DATES = re.compile(r"\((?:[^()]*\W)?(?:born\b|b\.|died\b|\d{3,4}\b[^()]{0,40}[–-][^()]{0,40}\d{3,4}\b)")
_IS = re.compile(r"\b(?:is|was|are|were) (?:an?|the|one of the)\b", re.IGNORECASE)
_PARTICLES: Final = frozenset(
    (
        "al",
        "bin",
        "da",
        "de",
        "del",
        "della",
        "den",
        "der",
        "di",
        "dos",
        "du",
        "el",
        "la",
        "le",
        "van",
        "von",
        "y",
    )
)
_ROLES: Final = (
    "academic activist actor actress admiral animator architect artist astronaut astronomer athlete attorney "
    "author baseball basketball bishop botanist boxer businessman businesswoman cardinal chef chemist "
    "choreographer clergyman coach comedian comedienne composer conductor criminal cyclist dancer designer "
    "diplomat director economist editor educator engineer entertainer entrepreneur essayist executive "
    "explorer filmmaker footballer general geologist golfer governor guitarist historian host inventor "
    "journalist judge jurist lawyer linguist mathematician mayor merchant minister missionary model musician "
    "nobleman novelist nurse officer painter performer philanthropist philosopher photographer physician "
    "physicist pianist pilot player playwright poet politician preacher president priest producer professor "
    "psychologist publisher rabbi rapper reporter researcher saxophonist scholar scientist screenwriter "
    "sculptor senator singer skater sociologist soldier songwriter spy sportscaster statesman surgeon "
    "swimmer teacher theologian trumpeter vocalist wrestler writer"
)
_ROLE = re.compile(rf"\b(?:{'|'.join(_ROLES.split())})\b", re.IGNORECASE)


def looks_like_name(title: str) -> bool:
    """Whether words are spelled as a full name: two to five, capitalised but for particles, no digit.

    >>> looks_like_name("Ann von Roe"), looks_like_name("Actress"), looks_like_name("List of actors")
    (True, False, False)
    """
    words = title.split()
    return (
        2 <= len(words) <= 5
        and not any(letter.isdigit() for letter in title)
        and words[0][:1].isupper()
        and words[-1][:1].isupper()
        and all(word[:1].isupper() or word.lower() in _PARTICLES for word in words)
    )


def is_person(title: str, first_sentence: str, categories: Sequence[str] = ()) -> bool:
    """Whether a page is about one person.

    Its title must be spelled as a name. Where the page has categories they decide ("1950 births", "Living
    people"); else the first sentence must begin with the name's first word and give dates of birth or death,
    or say that the person is or was somebody of a role.
    """
    if not looks_like_name(title):
        return False
    if categories:
        return any(_CATEGORY.search(category) for category in categories)
    if not first_sentence.lstrip("\"“' ").startswith(title.split()[0]):
        return False  # "The American Mafia is a criminal society": people have no article
    if _DATES.search(first_sentence):
        return True
    said = _IS.search(first_sentence)
    return said is not None and _ROLE.search(first_sentence, said.end(), said.end() + 100) is not None
