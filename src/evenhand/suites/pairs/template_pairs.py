"""Pairs from templates: the built-in ones, and a user's own file in the same format.

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

from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import Final

from pydantic import Field

from evenhand.core.digests import file_digest
from evenhand.core.errors import InputError
from evenhand.core.files import asset_path
from evenhand.core.toml import StrictModel, read_model
from evenhand.suites.pairs.pair_sets import EMOTIONS, PairSet, PairSuite, distinct_sets, sort_groups
from evenhand.suites.templates import find_group_misfits, find_repeated, formatted_slot

PERSON: Final = ("person", "Person")
MOST_SETS: Final = 1_000_000
"""Maximum sets of a file: a few lists of a thousand words each would make a billion."""
_ACCEPTED: Final = "a file in the format of `evenhand show pairs`"


class _Head(StrictModel):
    name: str = ""
    version: str = "1"
    summary: str = "Your own pairs."


class _Template(StrictModel):
    text: str
    id: str = ""
    emotion: str | None = None

    def slots(self) -> list[str]:
        return [field for _, field, *_ in Formatter().parse(self.text) if field is not None]

    def emotion_slots(self) -> list[str]:
        """The slots that do not name the person."""
        return [slot for slot in self.slots() if slot not in PERSON]


class _Group(StrictModel):
    name: str
    words: tuple[str, ...]


class _Axis(StrictModel):
    name: str
    groups: tuple[_Group, ...]


class _File(StrictModel):
    pairs: _Head = _Head()
    slots: dict[str, dict[str, tuple[str, ...]]] = Field(default_factory=dict)
    templates: tuple[_Template, ...]
    axes: tuple[_Axis, ...]


class TemplatePairs(PairSuite):
    """Templates x emotion words x people, as counterfactual sets; cluster = template.

    Sets with the same sentence for every group, and repeated sets, are left out and counted in the notes.

    Args:
        name: A TOML file; empty for the built-in templates, which the card describes.
    """

    def __init__(self, *, name: str = "") -> None:
        path = Path(name) if name else asset_path("pairs", "pairs.toml")
        file = read_model(path, _File, expected=_ACCEPTED, fix="repair it")
        for misfit in _find_misfits(file):
            raise InputError(f"{path}: {misfit}", expected=_ACCEPTED, fix="change that line")
        sets, left_out = distinct_sets(one for axis in file.axes for one in _sets(file, axis))
        if not sets:
            raise InputError(
                f"{path} has the same sentence for every group",
                expected=_ACCEPTED,
                fix="give each group its own words",
            )
        super().__init__(
            file.pairs.name or path.stem,
            sets,
            summary=file.pairs.summary,
            digest=file_digest(path),
            version=file.pairs.version,
            licence="" if name else "CC BY 4.0",
            notes=left_out,
        )


def _find_misfits(file: _File) -> Iterator[str]:
    """The problems of a file, in the order in which to fix them."""
    for template in file.templates:
        yield from _template_misfits(file, template)
    for name in find_repeated(_names(file)):
        yield f"several templates are named {name!r}; each needs an id of its own"
    for slot, words in file.slots.items():
        unknown = [emotion for emotion in words if emotion not in EMOTIONS]
        if unknown:
            yield f"the slot {{{slot}}} has the emotion {unknown[0]!r}; there are {', '.join(EMOTIONS)}"
    for axis in file.axes:
        yield from _axis_misfits(axis)
    sentences = sum(sum(1 for _ in _words(file, template)) for template in file.templates)
    sets = sentences * sum(len(axis.groups[0].words) for axis in file.axes)
    if sets > MOST_SETS:
        yield f"the templates make {sets:,} sets; {MOST_SETS:,} at most"


def _axis_misfits(axis: _Axis) -> Iterator[str]:
    for problem, accepted in find_group_misfits(axis.name, [group.name for group in axis.groups]):
        yield f"{problem}; {accepted}"
    counts = {group.name: len(group.words) for group in axis.groups}
    if len(set(counts.values())) > 1 or 0 in counts.values():
        listed = ", ".join(f"{name} {count}" for name, count in counts.items())
        yield f"the groups of axis {axis.name!r} have unequal numbers of words: {listed}"
    for group in axis.groups:
        if not all(word.strip() for word in group.words):
            yield f"the group {group.name!r} of axis {axis.name!r} has an empty word"


def _template_misfits(file: _File, template: _Template) -> Iterator[str]:
    who = f"the template {template.text!r}"
    try:
        slots, own = template.slots(), template.emotion_slots()
        if formatted_slot(template.text):
            yield f"{who} formats a slot; a slot is a name in braces and nothing else"
    except ValueError:
        slots = own = []
    if len(slots) == len(own):
        yield f"{who} has no slot {{person}} or {{Person}}"
    unknown = [slot for slot in own if slot not in file.slots]
    if unknown:
        yield f"{who} uses {{{unknown[0]}}}, which nothing fills"
    if len(own) > 1:
        yield f"{who} has {len(own)} slots of emotion words; one at most"
    if template.emotion is not None and template.emotion not in EMOTIONS:
        yield f"{who} has the emotion {template.emotion!r}"


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
    own = template.emotion_slots()
    if not own:
        yield template.emotion, "", ""
    for slot in own:
        for emotion, words in file.slots[slot].items():
            for word in words:
                yield emotion, slot, word
