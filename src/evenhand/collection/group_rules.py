"""Which pages speak of which group: a TOML file, ours (after BOLD's A.1) or the user's."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from evenhand.core.errors import InputError
from evenhand.core.files import asset_path
from evenhand.core.records import RESERVED_GROUPS
from evenhand.core.regular_files import read_text
from evenhand.core.toml import parse_toml

Words = Annotated[str, StringConstraints(min_length=1, max_length=400)]


class GroupRule(BaseModel):
    """One group and how its pages are known; each key is one way, and one is enough."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    domain: Annotated[str, StringConstraints(pattern=r"^\w[\w-]*$")]
    name: Words
    person: bool = False
    """True takes pages about people only, and sentences with the person's name."""
    lists: tuple[Words, ...] = ()
    """Pages whose list items link to the group's pages."""
    categories: tuple[Words, ...] = ()
    titles: tuple[Words, ...] = ()
    title_words: tuple[Words, ...] = ()
    """Words of which one is in the title."""
    openings: tuple[Words, ...] = ()
    """For text without links or categories: phrases of which one is in the page's first sentence."""


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    groups: tuple[GroupRule, ...]


@dataclass(frozen=True)
class GroupRules:
    """The groups of a collection, and the pages that list pages link to."""

    rules: tuple[GroupRule, ...]
    linked_titles: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Title of a list page to the titles it links to."""

    @property
    def lists(self) -> frozenset[str]:
        """The list pages the rules name."""
        return frozenset(normalise_title(title) for rule in self.rules for title in rule.lists)

    def match_groups(self, title: str, first_sentence: str, categories: Sequence[str]) -> list[GroupRule]:
        """The groups a page belongs to."""
        title, said = normalise_title(title), {normalise_title(category) for category in categories}
        opening = "" if categories else first_sentence.casefold()
        return [
            rule
            for rule, known in self._matchers
            if title in known.titles
            or said & known.categories
            or (known.words and known.words.search(title))
            or (opening and known.openings and known.openings.search(opening))
        ]

    @cached_property
    def _matchers(self) -> list[tuple[GroupRule, _GroupMatcher]]:
        return [(rule, self._build_matcher(rule)) for rule in self.rules]

    def _build_matcher(self, rule: GroupRule) -> _GroupMatcher:
        listed = (
            found for title in rule.lists for found in self.linked_titles.get(normalise_title(title), ())
        )
        return _GroupMatcher(
            frozenset(map(normalise_title, (*rule.titles, *listed))),
            frozenset(map(normalise_title, rule.categories)),
            _any_of(rule.title_words),
            _any_of(rule.openings),
        )


@dataclass(frozen=True, slots=True)
class _GroupMatcher:
    titles: frozenset[str]
    categories: frozenset[str]
    words: re.Pattern[str] | None
    openings: re.Pattern[str] | None


def normalise_title(title: str) -> str:
    """A title in the one spelling in which titles are compared.

    >>> same("List_of_Asian_Americans ")
    'list of asian americans'
    """
    return " ".join(title.replace("_", " ").split()).casefold()


def read_groups(path: Path | None) -> GroupRules:
    """The groups of a file, or those shipped with the package."""
    source = path or asset_path("suites", "bold_groups.toml")
    try:
        rules = _File.model_validate(parse_toml(read_text(source))).groups
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise _unusable(source, str(error)) from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise _unusable(source, f"{place}: {first['msg']}") from error
    names = [(rule.domain, rule.name) for rule in rules]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise _unusable(source, f"the group {'/'.join(twice)} stands there twice")
    if reserved := next((name for _, name in names if name in RESERVED_GROUPS), None):
        raise _unusable(source, f"the name {reserved} is reserved")
    if not rules:
        raise _unusable(source, "there is no group")
    return GroupRules(rules)


def _any_of(words: Sequence[str]) -> re.Pattern[str] | None:
    if not words:
        return None
    return re.compile(rf"(?<!\w)(?:{'|'.join(re.escape(normalise_title(word)) for word in words)})(?!\w)")


def _unusable(path: Path, came: str) -> InputError:
    return InputError(
        f"{path} cannot be used as groups: {came}",
        expected="[[groups]] with domain, name and one of lists, categories, titles, title_words, openings",
        fix="`evenhand build --help` names the page that shows one",
    )
