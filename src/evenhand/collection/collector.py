"""From a page to prompts: which groups it speaks of, which of its sentences are taken, and why not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

from evenhand.collection.group_rules import GroupRule, GroupRules
from evenhand.collection.page_streams import SourcePage, page_categories, plain_text
from evenhand.text.sentences import cut_first_sentence, split_sentences

EARLY_WORDS: Final = 8
"""The term is among the first eight words."""
WORDS_KEPT: Final = 5
"""Words of a prompt that are not part of the term."""
SHORTEST_SENTENCE: Final = 9
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


class PromptCut(NamedTuple):
    """A prompt, or why there is none."""

    prompt: str | None
    reason: Reason | None = None


class TermFinder:
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


def cut_prompt(sentence: str, term: TermFinder) -> PromptCut:
    """The beginning of a sentence up to its fifth word that is not part of the term, and at least the term.

    >>> cut("An animator is an artist who makes many images.", Term("Animator")).prompt
    'An animator is an artist who'
    """
    words = [match.span() for match in _WORD.finditer(sentence)]
    if len(words) < SHORTEST_SENTENCE:
        return PromptCut(None, "short")
    if not _END.search(sentence):
        return PromptCut(None, "incomplete")
    found = term.span(sentence)
    if found is None:
        return PromptCut(None, "no_early_term")
    inside = [place for place, (start, end) in enumerate(words) if start < found[1] and end > found[0]]
    if inside[-1] >= EARLY_WORDS:
        return PromptCut(None, "no_early_term")
    last = max(inside[-1], _fifth(len(words), inside))
    if last + 1 >= len(words):
        return PromptCut(None, "nothing_left")
    return PromptCut(sentence[: words[last][1]])


def _fifth(count: int, inside: list[int]) -> int:
    """The place of the fifth word outside the term, or of the last one where there are fewer."""
    outside = [place for place in range(count) if place not in inside]
    return outside[min(WORDS_KEPT, len(outside)) - 1]


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


_OPENING = 2000
"""Letters of a page in which its first sentence is looked for."""
_SUBJECT = re.compile(
    r"(?:The |An? )?[\"“]?(?P<subject>[^\"”(,]{2,80}?)[\"”]?"
    r"(?=\s*\(|,|\s+(?:is|was|are|were|refers to|may refer to)\b)"
)
_NO_SUBJECT = re.compile(r"^(?:In|On|At|During|After|As|By|For|From|This|There|It)\b|\b(?:has|have|had)\b")
_BRACKETS = re.compile(r"\([^)]*\)")
_IN_BRACKETS = re.compile(r" ?\(([^()\n]*+)\)")
_DATES_collector = re.compile(r"\b(?:born|died|\d{4})\b|\A\W*\Z")
_LONGEST_TITLE = 1000


class CollectedPrompt(NamedTuple):
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


class PageResult(NamedTuple):
    """What a page gave."""

    prompts: list[CollectedPrompt]
    rejected: Counter[tuple[str, str, str]]
    """Sentences left out, by domain, group and reason."""


def collect_prompts(page: SourcePage, groups: GroupRules) -> PageResult:
    """The prompts of a page, and its other sentences counted by why they are not."""
    found = PageResult([], Counter())
    named = page_categories(page)
    opening = "" if page.is_wikitext else cut_first_sentence(page.text[:_OPENING].lstrip())
    title = page.title or find_subject(opening)
    rules = groups.match_groups(title, opening, named) if title else []
    if not rules:
        return found
    text = plain_text(page)
    sentences = _sentences(text)
    opening = opening or cut_first_sentence(text[:_OPENING].lstrip())
    person = is_person(_name(title), opening, named)
    for rule in rules:
        fault: Reason | None = None
        if rule.person != person:
            fault = "no_person" if rule.person else "about_person"
        found.prompts.extend(_take_prompts(rule, title, sentences, page, fault, found.rejected))
    return found


def find_subject(sentence: str) -> str:
    """What a page without a title is about: what its first sentence says something of.

    >>> subject("A tailor is somebody who mends clothes."), subject("Ann Roe (born 1950) is a pilot.")
    ('Tailor', 'Ann Roe')
    """
    match = _SUBJECT.match(sentence)
    words = match["subject"].strip() if match else ""
    return "" if _NO_SUBJECT.search(words) else words[:1].upper() + words[1:]


def _take_prompts(
    rule: GroupRule,
    title: str,
    sentences: list[str],
    page: SourcePage,
    fault: Reason | None,
    rejected: Counter[tuple[str, str, str]],
) -> Iterator[CollectedPrompt]:
    term = TermFinder(_name(title), person=rule.person)
    for number, sentence in enumerate(sentences, start=1):
        prompt, reason = cut_prompt(sentence, term)
        if fault or reason:
            rejected[rule.domain, rule.name, reason or fault or "short"] += 1
        elif prompt is not None:
            key = title.replace(" ", "_")
            yield CollectedPrompt(
                rule.domain, rule.name, key, f"{prompt} ", sentence, title, number, page.byte
            )


def _sentences(text: str) -> list[str]:
    """The sentences of a page; a line end also ends one.

    Dates of birth and death in brackets are dropped, as in the published sentences: they would be the prompt.
    """
    lines = (line.strip() for line in _IN_BRACKETS.sub(_without_dates, text).split("\n"))
    return [sentence for line in lines if line for sentence in split_sentences(line)]


def _without_dates(found: re.Match[str]) -> str:
    return "" if _DATES_collector.search(found[1]) else found[0]


def _name(title: str) -> str:
    return _BRACKETS.sub("", title[:_LONGEST_TITLE]).replace("_", " ").strip()
