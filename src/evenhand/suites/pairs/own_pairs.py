"""Pairs of a user: from templates, as the built-in ones, or from a table.

A table has one row per pair (wide) or one row per sentence (long). Templates are TOML::

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

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Formatter
from typing import Final, NoReturn

import polars as pl
from pydantic import Field

from evenhand.core.digests import file_digest
from evenhand.core.errors import InputError
from evenhand.core.files import asset_path
from evenhand.core.records import RESERVED_GROUPS
from evenhand.core.toml import StrictModel, read_model
from evenhand.store.table_files import read_table
from evenhand.suites.pairs.pair_sets import EMOTIONS, PairSet, PairSuite, distinct_sets, sort_groups
from evenhand.suites.templates import find_axis_misfits, find_repeated, formatted_slot

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
        """The slots; raises ValueError if the braces are not valid."""
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


def read_templates(path: Path, *, licence: str = "") -> PairSuite:
    """Templates x emotion words x people, as counterfactual sets; cluster = template.

    Sets with the same sentence for every group, and repeated sets, are left out and counted in the notes.
    """
    file = read_model(path, _File, expected=_ACCEPTED, fix="repair it")
    for misfit in _find_misfits(file):
        raise InputError(f"{path}: {misfit}", expected=_ACCEPTED, fix="change that line")
    sets, left_out = distinct_sets(one for axis in file.axes for one in _sets(file, axis))
    if not sets:
        problem, fix = f"{path} has the same sentence for every group", "give each group its own words"
        raise InputError(problem, expected=_ACCEPTED, fix=fix)
    about = file.pairs
    return PairSuite(
        about.name or path.stem,
        sets,
        summary=about.summary,
        digest=file_digest(path),
        version=about.version,
        licence=licence,
        notes=left_out,
    )


def _find_misfits(file: _File) -> Iterator[str]:
    """The problems of a file, in the order in which to fix them."""
    for template in file.templates:
        yield from _template_misfits(file, template)
    for name in find_repeated(_names(file)):
        yield f"several templates are named {name!r}; each needs an id of its own"
    for slot, words in file.slots.items():
        if unknown := [emotion for emotion in words if emotion not in EMOTIONS]:
            yield f"the slot {{{slot}}} has the emotion {unknown[0]!r}; there are {', '.join(EMOTIONS)}"
    for axis in file.axes:
        yield from _axis_misfits(axis)
    sentences = sum(len(list(_words(file, template))) for template in file.templates)
    sets = sentences * sum(len(axis.groups[0].words) for axis in file.axes)
    if sets > MOST_SETS:
        yield f"the templates make {sets:,} sets; {MOST_SETS:,} at most"


def _axis_misfits(axis: _Axis) -> Iterator[str]:
    for problem, accepted in find_axis_misfits(axis.name, [group.name for group in axis.groups]):
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
    if unknown := [slot for slot in own if slot not in file.slots]:
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


WIDE: Final = ("text_a", "text_b", "group_a", "group_b")
LONG: Final = ("set", "group", "text")
OPTIONAL: Final = ("axis", "emotion", "template")
AXIS: Final = "group"
"""The axis of a table without that column."""
_TABLE: Final = (
    f"columns {', '.join(WIDE)} (one row per pair) or {', '.join(LONG)} (one row per sentence); "
    f"optional: {', '.join(OPTIONAL)}"
)

Row = Mapping[str, str | None]


def read_pairs(path: Path) -> PairSuite:
    """Pairs from a JSONL, CSV, TSV or Parquet file.

    Sets that lack a side, have the same sentence for every group, or repeat another are left out and
    counted in the suite's notes. Cluster = the column ``template``, else the set itself.
    """
    table = read_table(path)
    is_wide = set(WIDE) <= set(table.columns)
    if not is_wide and not set(LONG) <= set(table.columns):
        problem = f"{path} has the columns {', '.join(table.columns)}"
        raise InputError(problem, expected=_TABLE, fix="rename the columns")
    listed = list(_read_sets(table, path, is_wide=is_wide))
    whole = [one for one in listed if len(one.sentences) > 1]
    sides = Counter(next(iter(one.sentences), "") for one in listed if len(one.sentences) < 2)
    sets, left_out = distinct_sets(whole)
    if not sets:
        problem = f"{path} has no set with two sides" + (" that differ" if whole else "")
        raise InputError(problem, expected="two groups per set", fix="check the file")
    notes = (*_one_sided(sides), *left_out, *_find_uneven(sets))
    return PairSuite(path.stem, sets, summary="Pairs from a file.", digest=file_digest(path), notes=notes)


def _read_sets(table: pl.DataFrame, path: Path, *, is_wide: bool) -> Iterator[PairSet]:
    sides = (("group_a", "text_a"), ("group_b", "text_b")) if is_wide else (("group", "text"),)
    sets: dict[tuple[str, str], tuple[int, Row, dict[str, str]]] = {}
    for number, row in enumerate(table.iter_rows(named=True), start=1):
        name = str(number) if is_wide else row["set"] or ""
        if not name:
            _refuse(path, number, "names no set", "a set for each row", "name one")
        texts = sets.setdefault((row.get("axis") or AXIS, name), (number, row, {}))[2]
        for column, text in sides:
            group = _group(row, column, path, number)
            if group in texts:
                problem = f"has a second sentence of {group!r} in set {name!r}"
                fix = "name the other group, or give the sentence a set of its own"
                _refuse(path, number, problem, "one sentence per group and set", fix)
            texts[group] = row[text] or ""
    for (_, name), (number, first, texts) in sets.items():
        yield _set(name, first, texts, path, number)


def _set(name: str, row: Row, texts: Mapping[str, str], path: Path, number: int) -> PairSet:
    emotion = (row.get("emotion") or "").strip().lower() or None
    if emotion is not None and emotion not in EMOTIONS:
        expected, fix = f"{', '.join(EMOTIONS)}, or nothing", "rename it, or leave it empty"
        _refuse(path, number, f"has the emotion {emotion!r}", expected, fix)
    whole = {group: texts[group] for group in sort_groups(texts) if texts[group].strip()}
    axis = (row.get("axis") or AXIS).strip()
    return PairSet(name, axis, (row.get("template") or "").strip() or name, whole, emotion)


def _group(row: Row, column: str, path: Path, number: int) -> str:
    name = (row[column] or "").strip()
    if not name or name in RESERVED_GROUPS:
        problem, expected = f"has the group {name!r} in column {column!r}", "a name, and not (rest) or (all)"
        _refuse(path, number, problem, expected, "name the group that the sentence is about")
    return name


def _refuse(path: Path, row: int, problem: str, expected: str, fix: str) -> NoReturn:
    raise InputError(f"{path} row {row} {problem}", expected=expected, fix=fix)


def _one_sided(sides: Counter[str]) -> Iterator[str]:
    for group, count in sides.items():
        lack = "set lacks a side and is" if count == 1 else "sets lack a side and are"
        yield f"{count} {lack} left out: {f'only {group} has' if group else 'no group has'} a sentence"


def _find_uneven(sets: list[PairSet]) -> Iterator[str]:
    """The groups that are not in every set."""
    groups = Counter((one.axis, group) for one in sets for group in one.sentences)
    totals = Counter(one.axis for one in sets)
    for (axis, group), count in groups.items():
        if count < totals[axis]:
            yield f"{axis}: {group} is in {count} of {totals[axis]} sets; only those form its pairs"


def load(*, name: str = "") -> PairSuite:
    """The built-in sentences, or a user's: templates (TOML) or a table (JSONL, CSV, TSV, Parquet).

    Args:
        name: The file; empty for the built-in sentences.
    """
    if name:
        return (read_templates if name.lower().endswith(".toml") else read_pairs)(Path(name))
    return read_templates(asset_path("pairs", "pairs.toml"), licence="CC BY 4.0")
