"""From a page to prompts: matches groups, accepts sentences, and gives reasons for rejected ones.

A TOML file, ours (after BOLD's A.1) or the user's, defines which pages belong to which group.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import AfterValidator, StringConstraints

from evenhand.collection.page_streams import SourcePage, page_categories, plain_text
from evenhand.core.errors import InputError
from evenhand.core.records import RESERVED_GROUPS
from evenhand.core.toml import StrictModel, read_model
from evenhand.text.sentences import cut_first_sentence, split_sentences

EARLY_WORDS: Final = 8
"""The term must be among the first eight words."""
WORDS_KEPT: Final = 5
"""Words of a prompt besides the term."""
SHORTEST_SENTENCE: Final = 9
"""Minimum words of a sentence: eight or fewer are too short."""

Reason = Literal[
    "short", "incomplete", "no_early_term", "nothing_left", "no_person", "about_person", "repeated"
]
REASONS: Final[dict[Reason, str]] = {
    "short": "eight words or fewer",
    "incomplete": "no full stop, question or exclamation mark at the end: a heading, a list, or truncated",
    "no_early_term": "the term is not among the first eight words",
    "nothing_left": "the prompt would be the whole sentence",
    "no_person": "gender and race: the page is not about a person",
    "about_person": "the other domains: the page is about a person",
    "repeated": "the sentence was already accepted for this entity and group",
}
"""Reasons for rejecting a sentence, in the order of the checks."""

_WORD = re.compile(r"\S+")
_END = re.compile(r"[.!?…][\"'”’)\]»]*\Z")


def compile_term(words: str, *, person: bool = False) -> re.Pattern[str]:
    """A pattern for the topic of a page in its sentences.

    A person's name is matched as written, any other term in any case and with a plural ending; both as whole
    words.
    """
    spelled = r"\s+".join(map(re.escape, words.split()))
    ending = "" if person else "(?:s|es)?"
    return re.compile(rf"(?<!\w){spelled}{ending}(?!\w)", 0 if person else re.IGNORECASE)


def cut_prompt(sentence: str, term: re.Pattern[str]) -> tuple[str, None] | tuple[None, Reason]:
    """The beginning of a sentence up to its fifth word outside the term, or the reason why there is none.

    >>> cut_prompt("An animator is an artist who makes many images.", compile_term("Animator"))
    ('An animator is an artist who', None)
    """
    words = [match.span() for match in _WORD.finditer(sentence)]
    if len(words) < SHORTEST_SENTENCE:
        return None, "short"
    if not _END.search(sentence):
        return None, "incomplete"
    match = term.search(sentence)
    start, end = match.span() if match else (0, 0)
    inside = [place for place, word in enumerate(words) if word[0] < end and word[1] > start]
    if not inside or inside[-1] >= EARLY_WORDS:
        return None, "no_early_term"
    outside = [place for place in range(len(words)) if place not in inside]
    last = max(inside[-1], outside[min(WORDS_KEPT, len(outside)) - 1])
    if last + 1 >= len(words):
        return None, "nothing_left"
    return sentence[: words[last][1]], None


_CATEGORY = re.compile(r"\b\d{3,4}s? (?:births|deaths)\b|\bliving people\b", re.IGNORECASE)
_DATES = re.compile(r"\((?:[^()]*\W)?(?:born\b|b\.|died\b|\d{3,4}\b[^()]{0,40}[–-][^()]{0,40}\d{3,4}\b)")
_IS = re.compile(r"\b(?:is|was|are|were) (?:an?|the|one of the)\b", re.IGNORECASE)
_PARTICLES: Final = "al bin da de del della den der di dos du el la le van von y"
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


_OPENING = 2000
"""Characters of a page searched for its first sentence."""
_SUBJECT = re.compile(
    r"(?:The |An? )?[\"“]?(?P<subject>[^\"”(,]{2,80}?)[\"”]?"
    r"(?=\s*\(|,|\s+(?:is|was|are|were|refers to|may refer to)\b)"
)
_NO_SUBJECT = re.compile(r"^(?:In|On|At|During|After|As|By|For|From|This|There|It)\b|\b(?:has|have|had)\b")
_BRACKETS = re.compile(r"\([^)]*\)")
_IN_BRACKETS = re.compile(r" ?\(([^()\n]*+)\)")
_BRACKETED_DATES = re.compile(r"\b(?:born|died|\d{4})\b|\A\W*\Z")
_LONGEST_TITLE = 1000


def looks_like_name(title: str) -> bool:
    """Whether a title looks like a full name: two to five words, capitalised except particles, no digit.

    >>> looks_like_name("Ann von Roe"), looks_like_name("Actress"), looks_like_name("List of actors")
    (True, False, False)
    """
    words = title.split()
    return (
        2 <= len(words) <= 5
        and not any(letter.isdigit() for letter in title)
        and words[0][:1].isupper()
        and words[-1][:1].isupper()
        and all(word[:1].isupper() or word.lower() in _PARTICLES.split() for word in words)
    )


def is_person(title: str, first_sentence: str, categories: Sequence[str] = ()) -> bool:
    """Whether a page is about one person.

    Its title must look like a name. If the page has categories, they decide ("1950 births", "Living people");
    otherwise the first sentence must begin with the name's first word and give dates of birth or death, or
    state a role of the person.
    """
    if not looks_like_name(title):
        return False
    if categories:
        return any(_CATEGORY.search(category) for category in categories)
    if not first_sentence.lstrip("\"“' ").startswith(title.split()[0]):
        return False  # "The American Mafia is a criminal society": names of people have no article
    if _DATES.search(first_sentence):
        return True
    verb = _IS.search(first_sentence)
    return verb is not None and _ROLE.search(first_sentence, verb.end(), verb.end() + 100) is not None


Rejections = Counter[tuple[str, str, str]]
"""Number of rejected sentences by domain, group and reason."""


class CollectedPrompt(NamedTuple):
    """A prompt and its source."""

    domain: str
    group: str
    key: str
    prompt: str
    wiki: str
    """The whole sentence."""
    page: str
    sentence: int
    """The number of the sentence on the page, from 1."""
    byte: int
    """Byte offset of the page in its uncompressed file."""


def collect_prompts(page: SourcePage, groups: GroupRules) -> tuple[list[CollectedPrompt], Rejections]:
    """Collect the prompts of a page, and count its other sentences by reason for rejection."""
    prompts, rejected = list[CollectedPrompt](), Rejections()
    categories = page_categories(page)
    opening = "" if page.is_wikitext else cut_first_sentence(page.text[:_OPENING].lstrip())
    title = page.title or find_subject(opening)
    rules = groups.match_groups(title, opening, categories) if title else []
    if not rules:
        return prompts, rejected
    text = plain_text(page)
    opening = opening or cut_first_sentence(text[:_OPENING].lstrip())
    name = _BRACKETS.sub("", title[:_LONGEST_TITLE]).replace("_", " ").strip()
    person, sentences = is_person(name, opening, categories), split_page(text)
    for rule in rules:
        fault: Reason = "no_person" if rule.person else "about_person"
        term = compile_term(name, person=rule.person)
        for number, sentence in enumerate(sentences, start=1):
            prompt, reason = cut_prompt(sentence, term)
            if prompt is None or rule.person != person:
                rejected[rule.domain, rule.name, reason or fault] += 1
                continue
            source = (f"{prompt} ", sentence, title, number, page.byte)
            prompts.append(CollectedPrompt(rule.domain, rule.name, title.replace(" ", "_"), *source))
    return prompts, rejected


def find_subject(sentence: str) -> str:
    """The topic of a page without a title: the subject of its first sentence.

    >>> find_subject("A tailor is a maker of clothes."), find_subject("Ann Roe (born 1950) is a pilot.")
    ('Tailor', 'Ann Roe')
    """
    match = _SUBJECT.match(sentence)
    words = match["subject"].strip() if match else ""
    return "" if _NO_SUBJECT.search(words) else words[:1].upper() + words[1:]


def split_page(text: str) -> list[str]:
    """The sentences of a page; a line break also ends a sentence.

    Dates of life in brackets are removed, as in the published sentences: they would fill the prompt.
    """
    plain = _IN_BRACKETS.sub(lambda match: "" if _BRACKETED_DATES.search(match[1]) else match[0], text)
    lines = (line.strip() for line in plain.split("\n"))
    return [sentence for line in lines if line for sentence in split_sentences(line)]


def normalise_title(title: str) -> str:
    """A title in the canonical spelling used to compare titles.

    >>> normalise_title("List_of_Asian_Americans ")
    'list of asian americans'
    """
    return " ".join(title.replace("_", " ").split()).casefold()


Words = Annotated[str, StringConstraints(min_length=1, max_length=400)]
_Title = Annotated[Words, AfterValidator(normalise_title)]


class GroupRule(StrictModel):
    """One group and the criteria for its pages; a page that meets any one of them matches."""

    domain: Annotated[str, StringConstraints(pattern=r"^\w[\w-]*$")]
    name: Words
    person: bool = False
    """If true, only pages about people count, and only sentences with the person's name."""
    lists: frozenset[_Title] = frozenset()
    """Pages whose list items link to the group's pages."""
    categories: frozenset[_Title] = frozenset()
    titles: frozenset[_Title] = frozenset()
    title_words: tuple[_Title, ...] = ()
    """Words, one of which must be in the title."""
    openings: tuple[_Title, ...] = ()
    """For text without links or categories: phrases, one of which must be in the first sentence."""

    @cached_property
    def patterns(self) -> tuple[re.Pattern[str] | None, re.Pattern[str] | None]:
        """Patterns for the title and the first sentence; None if there are no words to search for."""
        return _any_of(self.title_words), _any_of(self.openings)


class _File(StrictModel):
    groups: tuple[GroupRule, ...]


class GroupRules(NamedTuple):
    """The groups of a collection, and the links of list pages."""

    rules: tuple[GroupRule, ...]
    linked_titles: Mapping[str, Collection[str]] = {}
    """Linked titles by the title of a list page, all normalised."""

    @property
    def lists(self) -> frozenset[str]:
        """The list pages named in the rules."""
        return frozenset(chain.from_iterable(rule.lists for rule in self.rules))

    def match_groups(self, title: str, first_sentence: str, categories: Sequence[str]) -> list[GroupRule]:
        """The groups to which a page belongs."""
        title, named = normalise_title(title), set(map(normalise_title, categories))
        opening = "" if categories else first_sentence.casefold()
        linked = {name for name, titles in self.linked_titles.items() if title in titles}
        return [
            rule
            for rule in self.rules
            if title in rule.titles
            or linked & rule.lists
            or named & rule.categories
            or any(
                pattern and text and pattern.search(text)
                for pattern, text in zip(rule.patterns, (title, opening), strict=True)
            )
        ]


def read_groups(source: Path) -> GroupRules:
    """Read the groups from a file."""
    expected = "[[groups]] with domain, name and one of lists, categories, titles, title_words, openings"
    fix = "`evenhand build --help` links to a page with an example"
    rules = read_model(source, _File, expected=expected, fix=fix).groups
    names = Counter((rule.domain, rule.name) for rule in rules)
    problems = [f"the group {'/'.join(name)} occurs twice" for name, count in names.items() if count > 1]
    problems += [f"the name {name} is reserved" for _, name in names if name in RESERVED_GROUPS]
    if not rules:
        problems = ["no group is defined"]
    for problem in problems:
        raise InputError(f"{source.name}: {problem}", expected=expected, fix=fix)
    return GroupRules(rules)


def _any_of(words: Sequence[str]) -> re.Pattern[str] | None:
    if not words:
        return None
    return re.compile(rf"(?<!\w)(?:{'|'.join(re.escape(word) for word in words)})(?!\w)")
