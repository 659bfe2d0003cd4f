"""A user's own templates x slots x groups as a suite."""

from __future__ import annotations

import csv
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from io import StringIO
from itertools import product
from math import prod
from pathlib import Path
from string import Formatter
from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evenhand.core.digests import file_digest
from evenhand.core.errors import InputError
from evenhand.core.records import RESERVED_GROUPS, Group, Mask, Mention, Prompt, SuiteInfo
from evenhand.core.regular_files import read_text
from evenhand.core.toml import parse_toml

MOST_PROMPTS: Final = 1_000_000
"""Prompts a file may make: more is a slip of the slots, and would fill the memory before it is noticed."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class GroupForms(_Strict):
    """A group and what fills a template for it."""

    name: str
    words: tuple[str, ...] = ()
    """Each fills the axis's own slot, and is masked before scoring."""
    agreeing: dict[str, str] = Field(default_factory=dict, alias="with")
    """Other slots that follow the group, such as a pronoun."""


class AxisForms(_Strict):
    """An axis: the slot of its name, its groups and its baseline."""

    baseline: str = ""
    groups: tuple[GroupForms, ...] = ()
    mask: Mask = "XYZ"

    def agreeing(self) -> tuple[str, ...]:
        """The slots beside its own that it fills."""
        return tuple(dict.fromkeys(slot for group in self.groups for slot in group.agreeing))


class PromptTemplate(_Strict):
    """A sentence with slots in braces; a doubled brace stands for itself."""

    text: str
    id: str = ""

    def slots(self) -> tuple[str, ...]:
        """The names between braces; a ValueError where the braces do not fit."""
        names = [name for _, name, *_ in Formatter().parse(self.text) if name is not None]
        if not all(name.isidentifier() for name in names):
            raise ValueError("a slot is a name in braces")
        return tuple(dict.fromkeys(names))

    def formatted_slot(self) -> str | None:
        """The first slot with more than its name: ``{a:>9}`` could ask for any amount of memory."""
        for _, name, spec, conversion in Formatter().parse(self.text):
            if spec or conversion:
                return f"{{{name}{f'!{conversion}' if conversion else ''}{f':{spec}' if spec else ''}}}"
        return None


class TemplateHeader(_Strict):
    """What the suite is called, and what is measured by default."""

    name: str = ""
    version: str = "1"
    summary: str = "Your own templates."
    metrics: tuple[str, ...] = ("sentiment", "gender_polarity")


class TemplateFile(_Strict):
    """A whole file."""

    suite: TemplateHeader = TemplateHeader()
    axes: dict[str, AxisForms] = Field(default_factory=dict)
    slots: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    templates: tuple[PromptTemplate, ...] = ()


class FormatError(NamedTuple):
    """What does not fit, and what would."""

    problem: str
    expected: str


def find_misfits(file: TemplateFile) -> Iterator[FormatError]:
    """Everything in a file that does not fit, in the order in which it should be mended."""
    if not file.axes:
        yield FormatError("there is no axis", "at least one axis with two groups")
    if not file.templates:
        yield FormatError("there is no template", "at least one template")
    for name, axis in file.axes.items():
        yield from _axis_misfits(name, axis)
    for slot, values in file.slots.items():
        yield from _value_misfits(f"the slot {{{slot}}}", values)
    yield from _name_misfits(file)
    for template in file.templates:
        yield from _template_misfits(file, template)
    yield from _find_unused(file)
    yield from _find_too_many(file)


def fill_counts(file: TemplateFile, template: PromptTemplate) -> dict[str, int]:
    """The ways to fill each axis and each free slot of a template; their product is its number of prompts."""
    used = set(template.slots())
    ways = {
        name: sum(len(group.words) for group in axis.groups) if name in used else len(axis.groups)
        for name, axis in file.axes.items()
        if used & {name, *axis.agreeing()}
    }
    return ways | {slot: len(values) for slot, values in file.slots.items() if slot in used}


def _axis_misfits(name: str, axis: AxisForms) -> Iterator[FormatError]:
    names = [group.name for group in axis.groups]
    if len(set(names)) < 2:
        yield FormatError(f"the axis {name!r} has {len(set(names))} group(s)", "two groups or more")
    for group in find_repeated(names):
        yield FormatError(
            f"the group {group!r} of axis {name!r} is there twice", "each group once, with its words"
        )
    for group in sorted(RESERVED_GROUPS & set(names)):
        yield FormatError(f"{group!r} is no name for a group", "any other name")
    baselines = ", ".join((*names, *sorted(RESERVED_GROUPS)))
    if not axis.baseline:
        yield FormatError(f"the axis {name!r} names no baseline", baselines)
    elif axis.baseline not in (*names, *RESERVED_GROUPS):
        yield FormatError(
            f"the baseline {axis.baseline!r} of axis {name!r} is not one of its groups", baselines
        )
    for forms in axis.groups:
        who = f"the group {forms.name!r} of axis {name!r}"
        yield from _value_misfits(who, forms.words)
        for slot in axis.agreeing():
            if not forms.agreeing.get(slot, "").strip():
                yield FormatError(f"{who} does not fill the slot {{{slot}}}", f"{{{slot}}} in every group")


def _value_misfits(who: str, values: tuple[str, ...]) -> Iterator[FormatError]:
    if not values or not all(value.strip() for value in values):
        yield FormatError(
            f"{who} is empty" if not values else f"{who} has an empty value", "one word or more"
        )
    for value in find_repeated(values):
        yield FormatError(f"{who} has {value!r} twice", "each value once")


def _name_misfits(file: TemplateFile) -> Iterator[FormatError]:
    slots = [*file.axes, *(slot for axis in file.axes.values() for slot in axis.agreeing()), *file.slots]
    for slot in slots:
        if not slot.isidentifier():
            yield FormatError(f"{slot!r} is no name for a slot", "letters, digits and underscores")
    for slot in find_repeated(slots):
        yield FormatError(
            f"the slot {{{slot}}} is filled in two ways", "one axis, one `with` or one list a slot"
        )
    for template in find_repeated(template.id for template in file.templates):
        yield FormatError(f"the template id {template!r} is there twice", "each id once")


def _template_misfits(file: TemplateFile, template: PromptTemplate) -> Iterator[FormatError]:
    who = f"the template {template.id!r}"
    try:
        used = template.slots()
        formatted = template.formatted_slot()
    except ValueError:
        yield FormatError(
            f"{who} has braces that do not fit: {template.text!r}", "slots such as {gender}; {{ for a brace"
        )
        return
    if formatted is not None:
        yield FormatError(
            f"{who} has a format or a conversion in {formatted}",
            f"the slot's name alone in braces, such as {{{used[-1]}}}",
        )
    of_groups = {slot for name, axis in file.axes.items() for slot in (name, *axis.agreeing())}
    known = of_groups | set(file.slots)
    for slot in used:
        if slot not in known:
            yield FormatError(
                f"{who} uses the slot {{{slot}}}, which nothing fills", ", ".join(sorted(known))
            )
    if not of_groups & set(used):
        yield FormatError(f"{who} speaks of no group", "at least one slot of an axis")


def _find_unused(file: TemplateFile) -> Iterator[FormatError]:
    used = {slot for template in file.templates for slot in template.slots()}
    for name, axis in file.axes.items():
        if not used & {name, *axis.agreeing()}:
            yield FormatError(f"the axis {name!r} is in no template", "axes that a template uses")
    for slot in file.slots:
        if slot not in used:
            yield FormatError(f"the slot {{{slot}}} is in no template", "slots that a template uses")


def _find_too_many(file: TemplateFile) -> Iterator[FormatError]:
    counts = {template.id: prod(fill_counts(file, template).values()) for template in file.templates}
    total = sum(counts.values())
    if total <= MOST_PROMPTS:
        return
    largest = max(file.templates, key=lambda template: counts[template.id])
    factors = " x ".join(f"{name} {count:,}" for name, count in fill_counts(file, largest).items())
    yield FormatError(
        f"the templates make {total:,} prompts, {counts[largest.id]:,} of them from the template "
        f"{largest.id!r} ({factors})",
        f"at most {MOST_PROMPTS:,} prompts",
    )


def find_repeated(names: Iterable[str]) -> list[str]:
    """The names that are there more than once."""
    return [name for name, count in Counter(names).items() if count > 1]


_HEADER = ("kind", "axis", "name", "value")
_KINDS = "baseline, group, mask, slot, template, with"


def read_templates(path: Path) -> TemplateFile:
    """The checked contents of a template file; the first thing that does not fit is an error naming it."""
    reader = {".toml": _from_toml, ".csv": _from_csv}.get(path.suffix.lower())
    if reader is None:
        raise _error(path, f"the ending {path.suffix!r} is not known", "a file ending in .toml or .csv")
    try:
        file = _number_templates(TemplateFile.model_validate(reader(_text(path), path)))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise _error(path, f"{place}: {first['msg']}", "the keys and types of the format") from error
    for came, accepted in find_misfits(file):
        raise _error(path, came, accepted)
    return file


def _error(path: Path, came: str, accepted: str) -> InputError:
    todo = "mend the file; `evenhand show templates` shows the format"
    return InputError(f"{path.name}: {came}", expected=accepted, fix=todo)


def _text(path: Path) -> str:
    try:
        return read_text(path, encoding="utf-8-sig")
    except OSError as error:
        raise _error(path, f"cannot be read ({error.strerror})", "a TOML or CSV file") from error
    except UnicodeDecodeError as error:
        raise _error(path, f"byte {error.start + 1} is not UTF-8", "text in UTF-8") from error


def _number_templates(file: TemplateFile) -> TemplateFile:
    """The file with a number for each template that has no id."""
    templates = tuple(
        template if template.id else template.model_copy(update={"id": str(number)})
        for number, template in enumerate(file.templates, start=1)
    )
    return file.model_copy(update={"templates": templates})


def _from_toml(text: str, path: Path) -> Mapping[str, object]:
    try:
        return parse_toml(text)
    except tomllib.TOMLDecodeError as error:
        raise _error(path, f"no valid TOML: {error}", "TOML 1.0") from error


class _Row(NamedTuple):
    line: int
    kind: str
    axis: str
    name: str
    value: str


@dataclass(slots=True)
class _Axis:
    settings: dict[str, str] = field(default_factory=dict)
    words: dict[str, list[str]] = field(default_factory=dict)
    agreeing: dict[str, dict[str, str]] = field(default_factory=dict)

    def contents(self) -> dict[str, object]:
        groups = [
            {"name": name, "words": self.words.get(name, []), "with": self.agreeing.get(name, {})}
            for name in dict.fromkeys((*self.words, *self.agreeing))
        ]
        return {**self.settings, "groups": groups}


def _from_csv(text: str, path: Path) -> Mapping[str, object]:
    axes: dict[str, _Axis] = {}
    slots: dict[str, list[str]] = {}
    templates: list[dict[str, str]] = []
    for row in _rows(text, path):
        match row.kind:
            case "template":
                templates.append({"id": row.name, "text": row.value})
            case "slot":
                slots.setdefault(row.name, []).append(row.value)
            case _:
                _take(axes.setdefault(row.axis, _Axis()), row, path)
    contents = {name: axis.contents() for name, axis in axes.items()}
    return {"axes": contents, "slots": slots, "templates": templates}


def _take(axis: _Axis, row: _Row, path: Path) -> None:
    """Add what one line says of an axis."""
    match row.kind:
        case "baseline" | "mask":
            axis.settings[row.kind] = row.value
        case "group":
            axis.words.setdefault(row.name, []).append(row.value)
        case "with":
            slot, sign, word = row.value.partition("=")
            if not sign:
                raise _error(path, f"line {row.line} says {row.value!r}", "slot=word, such as they=she")
            axis.agreeing.setdefault(row.name, {})[slot.strip()] = word
        case _:
            raise _error(path, f"line {row.line} is of kind {row.kind!r}", _KINDS)


def _rows(text: str, path: Path) -> Iterator[_Row]:
    reader = csv.reader(StringIO(text, newline=""), strict=True)
    try:
        header = next(reader, [])
        if tuple(cell.strip() for cell in header) != _HEADER:
            raise _error(path, f"the header is {','.join(header)!r}", ",".join(_HEADER))
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield _row(reader.line_num, cells, path)
    except csv.Error as error:
        raise _error(path, f"line {reader.line_num}: {error}", "CSV with quotes around commas") from error


def _row(line: int, cells: list[str], path: Path) -> _Row:
    if len(cells) != len(_HEADER):
        raise _error(path, f"line {line} has {len(cells)} cells", f"4 cells: {','.join(_HEADER)}")
    kind, axis, name, value = cells
    return _Row(line, kind.strip(), axis.strip(), name.strip(), value)


class TemplateSuite:
    """Every template, filled with every combination of groups and slots (format: `template_format`).

    Axis, group and baseline are the file's; cluster = template; prompts that differ only by group share their
    ``template_id``, which names the template and the values of its free slots. A template with slots of two
    axes is filled for every pair of groups and counts for both axes.

    Args:
        name: The file, TOML or CSV, as ``--suite templates:FILE`` gives it.
    """

    def __init__(self, *, name: str) -> None:
        if not name:
            raise InputError(
                "the templates suite was given no file",
                expected="a TOML or CSV file of templates, slots and groups",
                fix="for example --suite templates:jobs.toml",
            )
        path = Path(name)
        self._file = read_templates(path)
        header = self._file.suite
        self.info = SuiteInfo(
            name=header.name or path.stem,
            version=header.version,
            summary=header.summary,
            baselines={axis: forms.baseline for axis, forms in self._file.axes.items()},
            metrics=header.metrics,
            cluster="template",
            digest=file_digest(path),
        )

    def prompts(self) -> Iterator[Prompt]:
        """The prompts by template, free slots and groups."""
        for template in self._file.templates:
            free = [slot for slot in template.slots() if slot in self._file.slots]
            for values in product(*(self._file.slots[slot] for slot in free)):
                yield from self._fill_template(template, dict(zip(free, values, strict=True)))

    def _fill_template(self, template: PromptTemplate, fills: dict[str, str]) -> Iterator[Prompt]:
        values = [f"{slot}={value}" for slot, value in fills.items()]
        choices = (_list_choices(name, forms, template) for name, forms in self._file.axes.items())
        for chosen in product(*(choice for choice in choices if choice)):
            filled = {**fills, **{slot: word for one in chosen for slot, word in one.fills.items()}}
            yield Prompt.create(
                self.info.name,
                template.text.format(**filled),
                groups=tuple(one.group for one in chosen),
                cluster=template.id,
                template_id="/".join((template.id, *values)),
                mentions=tuple(mention for one in chosen for mention in one.mentions),
                fills=filled,
            )


class _Choice(NamedTuple):
    """One way in which an axis can fill a template."""

    group: Group
    fills: dict[str, str]
    mentions: tuple[Mention, ...]


def _list_choices(name: str, forms: AxisForms, template: PromptTemplate) -> list[_Choice]:
    """Every group of an axis with each of its words; empty where the template does not use the axis."""
    used = set(template.slots())
    if not used & {name, *forms.agreeing()}:
        return []
    return [
        _Choice(
            Group(name, group.name),
            {**group.agreeing, name: word},
            (Mention(word, mask=forms.mask),) if name in used else (),
        )
        for group in forms.groups
        for word in (group.words if name in used else group.words[:1])
    ]
