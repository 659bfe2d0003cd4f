"""A user's own templates x slots x groups as a suite."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from io import StringIO
from itertools import chain, product
from math import prod
from operator import or_
from pathlib import Path
from string import Formatter
from typing import Any, Final, TypeAlias

from pydantic import Field

from evenhand.core.digests import file_digest
from evenhand.core.errors import InputError
from evenhand.core.records import RESERVED_GROUPS, Group, Mask, Mention, Prompt, SuiteInfo
from evenhand.core.toml import StrictModel, read_model

MOST_PROMPTS: Final = 1_000_000
"""Maximum prompts of a file: more is a mistake in the slots, and would fill the memory unnoticed."""
Misfit: TypeAlias = tuple[str, str]
"""A problem, and what is expected instead."""
_FIX: Final = "fix the file; `evenhand show templates` shows the format"
_HEADER: Final = ("kind", "axis", "name", "value")
_KINDS: Final = "baseline, group, mask, slot, template, with"


class GroupForms(StrictModel):
    """A group and the words that fill a template for it."""

    name: str
    words: tuple[str, ...] = ()
    """Each fills the axis's own slot, and is masked before scoring."""
    agreeing: dict[str, str] = Field(default_factory=dict, alias="with")
    """Other slots that follow the group, such as a pronoun."""


class AxisForms(StrictModel):
    """An axis: the slot of its name, its groups and its baseline."""

    baseline: str = ""
    groups: tuple[GroupForms, ...] = ()
    mask: Mask = "XYZ"

    def agreeing(self) -> tuple[str, ...]:
        """The slots that it fills in addition to its own."""
        return tuple(dict.fromkeys(slot for group in self.groups for slot in group.agreeing))


class PromptTemplate(StrictModel):
    """A sentence with slots in braces; a doubled brace is a literal brace."""

    text: str
    id: str = ""

    def slots(self) -> tuple[str, ...]:
        """The names between braces; raises ValueError if the braces are not valid."""
        names = [name for _, name, *_ in Formatter().parse(self.text) if name is not None]
        if not all(name.isidentifier() for name in names):
            raise ValueError("a slot is a name in braces")
        return tuple(dict.fromkeys(names))


class TemplateHeader(StrictModel):
    """The name of the suite, and its default metrics."""

    name: str = ""
    version: str = "1"
    summary: str = "Your own templates."
    metrics: tuple[str, ...] = ("sentiment", "gender_polarity")


class TemplateFile(StrictModel):
    """The contents of a file."""

    suite: TemplateHeader = TemplateHeader()
    axes: dict[str, AxisForms] = Field(default_factory=dict)
    slots: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    templates: tuple[PromptTemplate, ...] = ()


def formatted_slot(text: str) -> str | None:
    """The first slot with more than its name: ``{a:>9}`` could ask for any amount of memory."""
    for _, name, spec, conversion in Formatter().parse(text):
        if spec or conversion:
            return f"{{{name}{f'!{conversion}' if conversion else ''}{f':{spec}' if spec else ''}}}"
    return None


def find_repeated(names: Iterable[str]) -> list[str]:
    """The names that occur more than once."""
    return [name for name, count in Counter(names).items() if count > 1]


def find_axis_misfits(axis: str, names: Sequence[str], baseline: str | None = None) -> Iterator[Misfit]:
    """The problems with the names of an axis's groups, and with the baseline of an axis that has one."""
    if len(set(names)) < 2:
        yield f"the axis {axis!r} has {len(set(names))} group(s)", "two groups or more"
    for name in find_repeated(names):
        yield f"the group {name!r} of axis {axis!r} occurs twice", "each group once, with its words"
    for name in names:
        if not name.strip() or name in RESERVED_GROUPS:
            yield f"{name!r} is not a valid name for a group", "any other name"
    if baseline is not None and baseline not in (*names, *RESERVED_GROUPS):
        problem = f"the baseline {baseline!r} of axis {axis!r} is not one of its groups"
        accepted = ", ".join((*names, *sorted(RESERVED_GROUPS)))
        yield problem if baseline else f"the axis {axis!r} names no baseline", accepted


def find_misfits(file: TemplateFile) -> Iterator[Misfit]:
    """All problems of a file, in the order in which to fix them."""
    if not file.axes:
        yield "there is no axis", "at least one axis with two groups"
    if not file.templates:
        yield "there is no template", "at least one template"
    for name, axis in file.axes.items():
        yield from _axis_misfits(name, axis)
    for slot, values in file.slots.items():
        yield from _value_misfits(f"the slot {{{slot}}}", values)
    yield from _name_misfits(file)
    for template in file.templates:
        yield from _template_misfits(file, template)
    used = {slot for template in file.templates for slot in template.slots()}
    for name, axis in file.axes.items():
        if not used & {name, *axis.agreeing()}:
            yield f"the axis {name!r} is in no template", "axes that a template uses"
    for slot in file.slots:
        if slot not in used:
            yield f"the slot {{{slot}}} is in no template", "slots that a template uses"
    yield from _size_misfits(file)


def fill_counts(file: TemplateFile, template: PromptTemplate) -> dict[str, int]:
    """The ways to fill each axis and each free slot of a template; their product is its number of prompts."""
    used = template.slots()
    ways = {name: len(_list_choices(name, axis, template)) for name, axis in file.axes.items()}
    slots = {slot: len(values) for slot, values in file.slots.items() if slot in used}
    return {name: count for name, count in ways.items() if count} | slots


def _axis_misfits(name: str, axis: AxisForms) -> Iterator[Misfit]:
    yield from find_axis_misfits(name, [group.name for group in axis.groups], axis.baseline)
    for forms in axis.groups:
        who = f"the group {forms.name!r} of axis {name!r}"
        yield from _value_misfits(who, forms.words)
        for slot in axis.agreeing():
            if not forms.agreeing.get(slot, "").strip():
                yield f"{who} does not fill the slot {{{slot}}}", f"{{{slot}}} in every group"


def _value_misfits(who: str, values: tuple[str, ...]) -> Iterator[Misfit]:
    if not all(value.strip() for value in values or ("",)):
        yield f"{who} {'has an empty value' if values else 'is empty'}", "one word or more"
    for value in find_repeated(values):
        yield f"{who} has {value!r} twice", "each value once"


def _name_misfits(file: TemplateFile) -> Iterator[Misfit]:
    slots = [*file.axes, *(slot for axis in file.axes.values() for slot in axis.agreeing()), *file.slots]
    for slot in slots:
        if not slot.isidentifier():
            yield f"{slot!r} is not a valid name for a slot", "letters, digits and underscores"
    for slot in find_repeated(slots):
        yield f"the slot {{{slot}}} is filled in two ways", "one axis, one `with` or one list per slot"
    for template in find_repeated(template.id for template in file.templates):
        yield f"the template id {template!r} occurs twice", "each id once"


def _template_misfits(file: TemplateFile, template: PromptTemplate) -> Iterator[Misfit]:
    who = f"the template {template.id!r}"
    try:
        used, formatted = template.slots(), formatted_slot(template.text)
    except ValueError:
        yield f"{who} has invalid braces: {template.text!r}", "slots such as {gender}; {{ for a brace"
        return
    if formatted is not None:
        yield (
            f"{who} has a format or a conversion in {formatted}",
            f"the slot's name alone in braces, such as {{{used[-1]}}}",
        )
    of_groups = {slot for name, axis in file.axes.items() for slot in (name, *axis.agreeing())}
    known = of_groups | set(file.slots)
    for slot in used:
        if slot not in known:
            yield f"{who} uses the slot {{{slot}}}, which nothing fills", ", ".join(sorted(known))
    if not of_groups & set(used):
        yield f"{who} names no group", "at least one slot of an axis"


def _size_misfits(file: TemplateFile) -> Iterator[Misfit]:
    counts = {template.id: prod(fill_counts(file, template).values()) for template in file.templates}
    total = sum(counts.values())
    if total > MOST_PROMPTS:
        largest = max(file.templates, key=lambda template: counts[template.id])
        factors = " x ".join(f"{name} {count:,}" for name, count in fill_counts(file, largest).items())
        yield (
            f"the templates make {total:,} prompts, {counts[largest.id]:,} of them from the template "
            f"{largest.id!r} ({factors})",
            f"at most {MOST_PROMPTS:,} prompts",
        )


def read_templates(path: Path) -> TemplateFile:
    """The checked contents of a template file; raises an error that names the first problem."""
    if path.suffix.lower() not in (".toml", ".csv"):
        raise _error(path, f"the ending {path.suffix!r} is not known", "a file ending in .toml or .csv")
    parse = partial(_read_csv, path=path) if path.suffix.lower() == ".csv" else None
    file = read_model(path, TemplateFile, fix=_FIX, parse=parse)
    # A template without an id gets its number as id.
    templates = tuple(
        template if template.id else template.model_copy(update={"id": str(number)})
        for number, template in enumerate(file.templates, start=1)
    )
    file = file.model_copy(update={"templates": templates})
    for problem, accepted in find_misfits(file):
        raise _error(path, problem, accepted)
    return file


def _error(path: Path, problem: str, accepted: str) -> InputError:
    return InputError(f"{path.name}: {problem}", expected=accepted, fix=_FIX)


def _read_csv(text: str, path: Path) -> Mapping[str, object]:
    axes: dict[str, dict[str, Any]] = {}
    slots: dict[str, list[str]] = {}
    templates: list[dict[str, str]] = []
    for line, kind, axis, name, value in _rows(text, path):
        settings = {} if kind in ("template", "slot") else axes.setdefault(axis, {"groups": {}})
        match kind:
            case "template":
                templates.append({"id": name, "text": value})
            case "slot":
                slots.setdefault(name, []).append(value)
            case "baseline" | "mask":
                settings[kind] = value
            case "group" | "with":
                forms = settings["groups"].setdefault(name, {"name": name, "words": [], "with": {}})
                slot, sign, word = value.partition("=")
                if kind == "group":
                    forms["words"].append(value)
                elif sign:
                    forms["with"][slot.strip()] = word
                else:
                    raise _error(path, f"line {line} has the value {value!r}", "slot=word, such as they=she")
            case _:
                raise _error(path, f"line {line} is of kind {kind!r}", _KINDS)
    contents = {
        axis: {**settings, "groups": list(settings["groups"].values())} for axis, settings in axes.items()
    }
    return {"axes": contents, "slots": slots, "templates": templates}


def _rows(text: str, path: Path) -> Iterator[tuple[int, str, str, str, str]]:
    """Line, kind, axis, name and value."""
    reader = csv.reader(StringIO(text, newline=""), strict=True)
    try:
        header = next(reader, [])
        if tuple(cell.strip() for cell in header) != _HEADER:
            raise _error(path, f"the header is {','.join(header)!r}", ",".join(_HEADER))
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(_HEADER):
                problem = f"line {reader.line_num} has {len(cells)} cells"
                raise _error(path, problem, f"4 cells: {','.join(_HEADER)}")
            kind, axis, name, value = cells
            yield reader.line_num, kind.strip(), axis.strip(), name.strip(), value
    except csv.Error as error:
        raise _error(path, f"line {reader.line_num}: {error}", "CSV with quotes around commas") from error


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
            groups, filled, mentions = zip(*chosen, strict=True)
            words = reduce(or_, filled, fills)
            yield Prompt.create(
                self.info.name,
                template.text.format(**words),
                groups=groups,
                cluster=template.id,
                template_id="/".join((template.id, *values)),
                mentions=tuple(chain.from_iterable(mentions)),
                fills=words,
            )


def _list_choices(
    name: str, forms: AxisForms, template: PromptTemplate
) -> list[tuple[Group, dict[str, str], tuple[Mention, ...]]]:
    """Every group of an axis with what each of its words fills and masks; empty if the axis is not used."""
    used = set(template.slots())
    if not used & {name, *forms.agreeing()}:
        return []
    return [
        (
            Group(name, group.name),
            {**group.agreeing, name: word},
            (Mention(word, mask=forms.mask),) if name in used else (),
        )
        for group in forms.groups
        for word in (group.words if name in used else group.words[:1])
    ]
