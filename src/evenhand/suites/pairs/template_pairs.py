"""Pairs from templates: our own, and files of the same format that people write.

TOML::

    [pairs]                            # optional, as is each of its lines
    name = "clinic"
    summary = "Patients of two ages."

    [slots.feeling]                    # words by emotion: the ground truth of the sentence
    anger = ["furious"]
    fear = ["afraid"]

    [[templates]]
    id = "wait"                        # else its number
    text = "{Person} was {feeling} after the wait."
    emotion = "anger"                  # only where the template has no slot: its ground truth

    [[axes]]
    name = "age"
    groups = [
        { name = "young", words = ["the young patient"] },
        { name = "old", words = ["the old patient"] },
    ]

The n-th words of all groups of an axis make a set.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from evenhand.core.digests import file_digest
from evenhand.core.errors import InputError
from evenhand.core.files import asset_path
from evenhand.core.records import RESERVED_GROUPS
from evenhand.core.regular_files import read_text
from evenhand.core.toml import parse_toml
from evenhand.suites.pairs.pair_sets import (
    EMOTIONS,
    PairSet,
    PairSuite,
    distinct_sets,
    sort_groups,
    suite_info,
)

PERSON: Final = ("person", "Person")
MOST_SETS: Final = 1_000_000
"""Sets a file may make: a few lists of a thousand words each would make a billion."""
_ACCEPTED: Final = "a file in the format of `evenhand show pairs`"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Head(_Strict):
    name: str = ""
    version: str = "1"
    summary: str = "Your own pairs."


class _Template(_Strict):
    text: str
    id: str = ""
    emotion: str | None = None

    def slots(self) -> list[str]:
        return [field for _, field, *_ in Formatter().parse(self.text) if field is not None]

    def is_formatted(self) -> bool:
        """Whether a slot has a width or a conversion, with which a line of text could fill the memory."""
        try:
            return any(width or conversion for _, _, width, conversion in Formatter().parse(self.text))
        except ValueError:
            return False


class _Group(_Strict):
    name: str
    words: tuple[str, ...]


class _Axis(_Strict):
    name: str
    groups: tuple[_Group, ...]


class _File(_Strict):
    pairs: _Head = _Head()
    slots: dict[str, dict[str, tuple[str, ...]]] = {}
    templates: tuple[_Template, ...]
    axes: tuple[_Axis, ...]


class TemplatePairs(PairSuite):
    """Templates x emotion words x people, as counterfactual sets; cluster = template.

    Sets that say the same of every group, or that repeat another, are left out and counted in the notes.

    Args:
        name: A TOML file; without one our own templates, which the card describes.
    """

    def __init__(self, *, name: str = "") -> None:
        path = Path(name) if name else asset_path("pairs", "pairs.toml")
        file = _read(path)
        sets, left_out = distinct_sets(one for axis in file.axes for one in _sets(file, axis))
        if not sets:
            raise InputError(
                f"{path} says the same of every group",
                expected=_ACCEPTED,
                fix="give each group its own words",
            )
        info = suite_info(
            file.pairs.name or path.stem,
            sets,
            summary=file.pairs.summary,
            digest=file_digest(path),
            version=file.pairs.version,
            licence="" if name else "CC BY 4.0",
            notes=left_out,
        )
        super().__init__(info, sets)


def _read(path: Path) -> _File:
    if not path.is_file():
        raise InputError(f"{path} is not there", expected=_ACCEPTED, fix="check the path")
    try:
        file = _File.model_validate(parse_toml(read_text(path)))
        for misfit in _find_misfits(file):
            raise InputError(f"{path}: {misfit}", expected=_ACCEPTED, fix="change that line")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is no valid TOML: {error}", expected=_ACCEPTED, fix="repair it") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise InputError(f"{path}: {place}: {first['msg']}", expected=_ACCEPTED, fix="repair it") from error
    return file


def _find_misfits(file: _File) -> Iterator[str]:
    """What does not fit together, in the order it should be mended."""
    for template in file.templates:
        yield from _template_misfits(file, template)
    for name, uses in Counter(_names(file)).items():
        if uses > 1:
            yield f"{uses} templates are named {name!r}; each needs an id of its own"
    for slot, words in file.slots.items():
        unknown = [emotion for emotion in words if emotion not in EMOTIONS]
        if unknown:
            yield f"the slot {{{slot}}} has the emotion {unknown[0]!r}; there are {', '.join(EMOTIONS)}"
    for axis in file.axes:
        yield from _axis_misfits(axis)
    made = sum(_count(file, template) for template in file.templates) * sum(
        len(group.words) for axis in file.axes for group in axis.groups[:1]
    )
    if made > MOST_SETS:
        yield f"the templates make {made:,} sets; {MOST_SETS:,} at most"


def _count(file: _File, template: _Template) -> int:
    """How many emotion words a template is filled with."""
    own = [slot for slot in template.slots() if slot not in PERSON]
    return sum(map(len, file.slots[own[0]].values())) if own else 1


def _axis_misfits(axis: _Axis) -> Iterator[str]:
    names = [group.name for group in axis.groups]
    if len(set(names)) < 2 or len(set(names)) < len(names):
        yield f"the axis {axis.name!r} has the groups {', '.join(names)}; two or more, each once"
    for name in RESERVED_GROUPS & set(names):
        yield f"{name!r} is no name for a group"
    counts = {group.name: len(group.words) for group in axis.groups}
    if len(set(counts.values())) > 1 or 0 in counts.values():
        said = ", ".join(f"{name} {count}" for name, count in counts.items())
        yield f"the groups of axis {axis.name!r} have unequal numbers of words: {said}"
    for group in axis.groups:
        if not all(word.strip() for word in group.words):
            yield f"the group {group.name!r} of axis {axis.name!r} has an empty word"


def _template_misfits(file: _File, template: _Template) -> Iterator[str]:
    try:
        slots = template.slots()
    except ValueError:
        slots = []
    if template.is_formatted():
        yield f"the template {template.text!r} formats a slot; a slot is a name in braces and nothing else"
    own = [slot for slot in slots if slot not in PERSON]
    if len(slots) - len(own) < 1:
        yield f"the template {template.text!r} has no slot {{person}} or {{Person}}"
    unknown = [slot for slot in own if slot not in file.slots]
    if unknown:
        yield f"the template {template.text!r} uses {{{unknown[0]}}}, which nothing fills"
    if len(own) > 1:
        yield f"the template {template.text!r} has {len(own)} slots of emotion words; one at most"
    if template.emotion is not None and template.emotion not in EMOTIONS:
        yield f"the template {template.text!r} has the emotion {template.emotion!r}"


def _names(file: _File) -> list[str]:
    return [template.id or str(number) for number, template in enumerate(file.templates, start=1)]


def _sets(file: _File, axis: _Axis) -> Iterator[PairSet]:
    for name, template in zip(_names(file), file.templates, strict=True):
        for emotion, slot, word in _words(file, template):
            fills = {slot: word} if slot else {}
            for place in range(len(axis.groups[0].words)):
                people = {group.name: group.words[place] for group in axis.groups}
                sentences = {
                    group: template.text.format(
                        **fills, person=people[group], Person=people[group][0].upper() + people[group][1:]
                    )
                    for group in sort_groups(people)
                }
                yield PairSet(
                    "/".join(filter(None, (name, word, str(place)))), axis.name, name, sentences, emotion
                )


def _words(file: _File, template: _Template) -> Iterator[tuple[str | None, str, str]]:
    own = [slot for slot in template.slots() if slot not in PERSON]
    if not own:
        yield template.emotion, "", ""
        return
    for emotion, words in file.slots[own[0]].items():
        for word in words:
            yield emotion, own[0], word
