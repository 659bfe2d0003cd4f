"""Term lists: emotions and the groups they are counted with, built in or supplied by a user."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from evenhand.core.digests import Json, digest
from evenhand.core.errors import InputError
from evenhand.core.files import asset_path
from evenhand.core.registry import require_library
from evenhand.core.regular_files import read_bytes
from evenhand.core.toml import describe_misfit, parse_toml
from evenhand.corpus.tokenisation import WordRule, split_words
from evenhand.store.atomic_writes import write_text
from evenhand.store.text_sources import ReadProblem

_COMMENT = re.compile(r"(?:^|\s)#(?:\s|$)")
EMOTIONS = frozenset(
    {"anger", "anticipation", "disgust", "fear", "guilt", "happiness", "joy", "love"}
    | {"optimism", "pessimism", "sadness", "shame", "surprise", "trust"}
)
"""Names of flat lists that are read as emotions; every other name is a group."""
AXES: Mapping[str, str] = {
    **dict.fromkeys(
        ("male", "female", "nb", "non-binary", "nonbinary", "man", "woman", "men", "women"), "gender"
    ),
    **dict.fromkeys(("aa", "ea", "african_american", "european_american", "asian", "hispanic"), "race"),
    **dict.fromkeys(
        ("ch", "mu", "jw", "christian", "muslim", "jewish", "buddhist", "hindu", "atheist"), "religion"
    ),
}
"""The axis of a group whose list does not name one."""
OTHER_AXIS = "group"
NONE = "(none)"
"""The baseline: units that name no group of the axis."""
ACCEPTED = (
    '{"emotions": {NAME: [TERM, ..]}, "groups": {AXIS: {NAME: [TERM, ..]}}} as .json or .toml, '
    "a flat {NAME: [TERM, ..]}, or a text file with one term per line"
)


@dataclass(frozen=True, slots=True)
class TermGroup:
    """A social group and the terms that name it."""

    axis: str
    name: str
    terms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TermList:
    """Emotions and groups with their terms; a list holds each term once."""

    emotions: Mapping[str, tuple[str, ...]]
    groups: tuple[TermGroup, ...]
    problems: tuple[ReadProblem, ...] = ()

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes of the groups, in order."""
        return tuple(dict.fromkeys(group.axis for group in self.groups))

    @property
    def size(self) -> tuple[int, int]:
        """The number of emotion terms and of group terms."""
        return sum(map(len, self.emotions.values())), sum(len(group.terms) for group in self.groups)

    def write(self, path: Path) -> None:
        """Write the lists as JSON that `load_terms` reads."""
        groups: dict[str, dict[str, Sequence[str]]] = {}
        for group in self.groups:
            groups.setdefault(group.axis, {})[group.name] = group.terms
        content = {"emotions": dict(self.emotions), "groups": groups}
        write_text(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")

    def identity(self) -> dict[str, Json]:
        """The terms' part of a run's identity: the digest and the names of the lists."""
        lists: Json = [
            {name: list(terms) for name, terms in self.emotions.items()},
            [[group.axis, group.name, list(group.terms)] for group in self.groups],
        ]
        return {
            "digest": digest(lists),
            "emotions": list(self.emotions),
            "groups": [f"{group.axis}/{group.name}" for group in self.groups],
        }


@dataclass(frozen=True, slots=True)
class _Entry:
    """One list of a file: an emotion (axis empty) or a group."""

    axis: str
    name: str
    terms: tuple[str, ...]
    file: str
    data: bytes

    def report(self, term: str, reason: str, *, occurrence: int = 1) -> ReadProblem:
        """A problem at the byte where the n-th occurrence of a term begins in the file."""
        quoted = json.dumps(term, ensure_ascii=False).encode()
        needle = quoted if quoted in self.data else term.encode()
        places = [match.start() for match in re.finditer(re.escape(needle), self.data)][:occurrence]
        return ReadProblem(self.file, places[-1] if places else None, reason)


def builtin_terms() -> TermList:
    """The built-in lists: four emotions, and groups of gender, race and religion."""
    return load_terms([asset_path("terms", "emotions.toml"), asset_path("terms", "groups.toml")])


def load_terms(sources: Sequence[Path | str], *, needs_both: bool = True) -> TermList:
    """The terms of one or more files, with the problems found in them.

    A source is a path, or ``NAME=PATH`` or ``AXIS/NAME=PATH`` for a text file with one term per line. A scan
    needs both emotions and groups; a list that is only to be expanded may have just one of them.
    """
    entries = [entry for source in sources for entry in _entries(source)]
    lists: dict[tuple[str, str], tuple[str, ...]] = {}
    for entry in entries:
        if entry.terms:
            key = (entry.axis, entry.name)
            lists[key] = _unique((*lists.get(key, ()), *entry.terms))
    emotions = {name: terms for (axis, name), terms in lists.items() if not axis}
    groups = tuple(TermGroup(axis, name, terms) for (axis, name), terms in lists.items() if axis)
    for group in groups:
        if group.name == NONE:
            raise InputError(
                f"the axis {group.axis!r} has a group named {NONE!r}",
                expected="any other name: this one stands for texts that name no group",
                fix="give the group another name",
            )
    for kind, part in (("emotion", emotions), ("group", groups)):
        if not part and (needs_both or not lists):
            raise InputError(
                f"no {kind} terms in {', '.join(map(str, sources))}",
                expected=ACCEPTED,
                fix=f"add a list; in flat files these names are emotions: {', '.join(sorted(EMOTIONS))}",
            )
    return TermList(emotions, groups, tuple(_find_problems(entries)))


def find_unmatchable(terms: TermList, rule: WordRule) -> list[str]:
    """Terms that no text can match: under the paper's rule, those that contain a separator."""
    every = [*terms.emotions.values(), *(group.terms for group in terms.groups)]
    return sorted({term for part in every for term in part if not split_term(term, rule)})


def split_term(term: str, rule: WordRule) -> tuple[str, ...]:
    """The folded words of a term; empty if no text can match it.

    >>> split_term("Brother-in-law", "words"), split_term("brother-in-law", "paper")
    (('brother', 'in', 'law'), ())
    """
    parts = split_words(term)
    if rule == "paper":
        whole = len(parts) == 1 and len(parts[0]) == len(term) and not any(map(str.isdigit, term))
        return tuple(parts) if whole and "_" not in term else ()
    return tuple(parts)


def _entries(source: Path | str) -> list[_Entry]:
    label, equals, path_after = str(source).partition("=")
    if not equals or Path(source).exists():
        label, path_after = "", str(source)
    path = Path(path_after)
    try:
        data = read_bytes(path)
        text = data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"the terms {path} cannot be read: {error}", expected=ACCEPTED, fix="check the path"
        ) from error
    if path.suffix.lower() in (".json", ".toml"):
        lists = _parse(text, path)
    else:
        axis, _, name = (label or path.stem).rpartition("/")
        # A # with blanks around it starts a comment (#metoo is a term).
        lines = (_COMMENT.split(line, maxsplit=1)[0].strip() for line in text.splitlines())
        lists = [(axis or _axis(name), name, list(filter(None, lines)))]
    return [_Entry(axis, name, tuple(terms), str(path), data) for axis, name, terms in lists]


class _NamedLists(BaseModel):
    emotions: dict[str, list[str]] = Field(default_factory=dict)
    groups: dict[str, dict[str, list[str]]] = Field(default_factory=dict)


_FLAT_LISTS = TypeAdapter(dict[str, list[str]])


def _parse(text: str, path: Path) -> list[tuple[str, str, list[str]]]:
    """Axis (empty for an emotion), name and terms of each list."""
    try:
        is_toml = path.suffix.lower() == ".toml"
        content = parse_toml(text) if is_toml else json.loads(text, object_pairs_hook=_object)
        if not isinstance(content, dict) or not {"emotions", "groups"} & content.keys():
            flat = _FLAT_LISTS.validate_python(content)
            return [(_axis(name), name, terms) for name, terms in flat.items()]
        named = _NamedLists.model_validate(content)
    except (ValueError, RecursionError) as error:
        reason = describe_misfit(error) if isinstance(error, ValidationError) else error
        raise InputError(
            f"the terms {path} cannot be read: {reason}", expected=ACCEPTED, fix="repair the file"
        ) from error
    groups = [(axis, *one) for axis, lists in named.groups.items() for one in lists.items()]
    return [*(("", *one) for one in named.emotions.items()), *groups]


def _object(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    """A JSON object; the parser alone would drop the first of two lists of the same name."""
    names = [name for name, _ in pairs]
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"the name {repeated!r} occurs twice")
    return dict(pairs)


def _axis(name: str) -> str:
    """The axis of a list whose source names none; empty for an emotion."""
    key = name.lower()
    return "" if key in EMOTIONS else AXES.get(key, OTHER_AXIS)


def _unique(terms: Iterable[str]) -> tuple[str, ...]:
    return tuple({_key(term): term.strip() for term in reversed(list(terms)) if _key(term)}.values())[::-1]


def _key(term: str) -> str:
    return " ".join(split_words(term))


def _find_problems(entries: Iterable[_Entry]) -> list[ReadProblem]:
    """Lists without terms, terms without a word, and terms that repeat within a list or across lists.

    A term shared by an emotion and a group links the two wherever it occurs.
    """
    empty, wordless, repeated, shared = (list[ReadProblem]() for _ in range(4))
    owners: dict[str, tuple[str, str]] = {}
    mentions = Counter[tuple[str, str]]()
    for entry in entries:
        name, terms = entry.name, dict.fromkeys(entry.terms)
        wordless_terms = [term for term in terms if not _key(term)]
        if len(wordless_terms) == len(terms):
            empty.append(entry.report(name, f"the list {name!r} has no terms; it is not counted"))
            continue
        for term in wordless_terms:
            reason = f"{term!r} in {name!r} has no letter or digit; it cannot be found"
            wordless.append(entry.report(term, reason))
        firsts: dict[str, str] = {}
        for term in filter(_key, entry.terms):
            if (first := firsts.get(_key(term))) is not None:
                reason = f"{term!r} is in {name!r} twice; it is counted once"
                repeated.append(entry.report(term, reason, occurrence=2 if term == first else 1))
            firsts.setdefault(_key(term), term)
        for term in filter(_key, terms):
            mentions[entry.file, term] += 1
            owner = owners.setdefault(_key(term), (entry.axis, name))
            if owner != (entry.axis, name):
                reason = f"{term!r} is in {owner[1]!r} and in {name!r}; it is counted in both"
                shared.append(entry.report(term, reason, occurrence=mentions[entry.file, term]))
    return [*empty, *wordless, *repeated, *shared]


_PARTS_OF_SPEECH = ("NOUN", "VERB", "ADJ")
Name = TypeVar("Name")


@dataclass(frozen=True, slots=True)
class Expansion:
    """A term list with inflections, and the forms added to each list."""

    terms: TermList
    added: Mapping[str, tuple[str, ...]]
    """Keyed by the name of the list."""


def expand_terms(terms: TermList) -> Expansion:
    """The lists with the inflections of their single-word terms, from lemminflect's dictionary.

    A form is added only if the dictionary has the word (nothing is guessed) and no other list of its kind has
    the form already. Terms of several words are left unchanged.
    """
    groups = {(group.axis, group.name): group.terms for group in terms.groups}
    emotion_forms, group_forms = _new_forms(terms.emotions), _new_forms(groups)
    expanded = TermList(
        {name: (*part, *emotion_forms[name]) for name, part in terms.emotions.items()},
        tuple(TermGroup(*key, (*part, *group_forms[key])) for key, part in groups.items()),
        terms.problems,
    )
    return Expansion(expanded, {**emotion_forms, **{name: forms for (_, name), forms in group_forms.items()}})


def _new_forms(lists: Mapping[Name, Sequence[str]]) -> dict[Name, tuple[str, ...]]:
    """For each list, the inflections of its words that no list has yet."""
    taken = {_key(term) for terms in lists.values() for term in terms}
    added: dict[Name, tuple[str, ...]] = {}
    for name, terms in lists.items():
        words = [term for term in terms if len(split_words(term)) == 1]
        forms = dict.fromkeys(form for word in words for form in _inflect(word))
        added[name] = tuple(form for form in forms if _key(form) not in taken)
        taken |= {_key(form) for form in forms}
    return added


def _inflect(word: str) -> list[str]:
    """The inflections of a word that is itself a lemma, in a fixed order."""
    library = require_library("lemminflect", "adding inflections")
    word, forms = word.lower(), set[str]()
    for part in _PARTS_OF_SPEECH:
        if word in library.getAllLemmas(word, upos=part).get(part, ()):
            forms.update(*library.getAllInflections(word, upos=part).values())
    return sorted({form.lower() for form in forms} - {word})
