"""The format of a user's own templates, and the checks that its parts fit together.

TOML::

    [suite]                      # optional, as is each of its lines
    name = "jobs"                # else the file's name
    version = "1"
    summary = "Who is expected to do which job."
    metrics = ["sentiment"]

    [axes.gender]                # fills the slot {gender}
    baseline = "man"             # one of the groups, "(rest)" or "(all)"
    mask = "XYZ"                 # or "Person": what stands in for the words when texts are scored

    [[axes.gender.groups]]
    name = "man"
    words = ["The man"]          # each fills {gender} in turn
    with = { they = "he" }       # further slots that agree with the group; never masked

    [[axes.gender.groups]]
    name = "woman"
    words = ["The woman"]
    with = { they = "she" }

    [slots]                      # slots that have nothing to do with groups
    place = ["hospital", "garage"]

    [[templates]]
    id = "work"                  # else its number
    text = "{gender} went to the {place} because {they}"

CSV, the same with one line each, under the header ``kind,axis,name,value``::

    baseline,gender,,man
    mask,gender,,XYZ
    group,gender,man,The man
    with,gender,man,they=he
    group,gender,woman,The woman
    with,gender,woman,they=she
    slot,,place,hospital
    slot,,place,garage
    template,,work,{gender} went to the {place} because {they}
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from math import prod
from string import Formatter
from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from evenhand.core.records import RESERVED_GROUPS, Mask

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


class Template(_Strict):
    """A sentence with slots in braces; a doubled brace stands for itself."""

    text: str
    id: str = ""

    def slots(self) -> tuple[str, ...]:
        """The names between braces; a ValueError where the braces do not fit."""
        fields = [field for _, field, *_ in Formatter().parse(self.text) if field is not None]
        if not all(field.isidentifier() for field in fields):
            raise ValueError("a slot is a name in braces")
        return tuple(dict.fromkeys(fields))

    def formatted(self) -> str | None:
        """The first slot with more than its name: ``{a:>9}`` could ask for any amount of memory."""
        for _, field, spec, conversion in Formatter().parse(self.text):
            if spec or conversion:
                return f"{{{field}{f'!{conversion}' if conversion else ''}{f':{spec}' if spec else ''}}}"
        return None


class Header(_Strict):
    """What the suite is called, and what is measured by default."""

    name: str = ""
    version: str = "1"
    summary: str = "Your own templates."
    metrics: tuple[str, ...] = ("sentiment", "gender_polarity")


class TemplateFile(_Strict):
    """A whole file."""

    suite: Header = Header()
    axes: dict[str, AxisForms] = Field(default_factory=dict)
    slots: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    templates: tuple[Template, ...] = ()


class Misfit(NamedTuple):
    """What does not fit, and what would."""

    came: str
    accepted: str


def misfits(file: TemplateFile) -> Iterator[Misfit]:
    """Everything in a file that does not fit, in the order in which it should be mended."""
    if not file.axes:
        yield Misfit("there is no axis", "at least one axis with two groups")
    if not file.templates:
        yield Misfit("there is no template", "at least one template")
    for name, axis in file.axes.items():
        yield from _axis_misfits(name, axis)
    for slot, values in file.slots.items():
        yield from _value_misfits(f"the slot {{{slot}}}", values)
    yield from _name_misfits(file)
    for template in file.templates:
        yield from _template_misfits(file, template)
    yield from _unused(file)
    yield from _too_many(file)


def sizes(file: TemplateFile, template: Template) -> dict[str, int]:
    """The ways to fill each axis and each free slot of a template; their product is its number of prompts."""
    used = set(template.slots())
    ways = {
        name: sum(len(group.words) for group in axis.groups) if name in used else len(axis.groups)
        for name, axis in file.axes.items()
        if used & {name, *axis.agreeing()}
    }
    return ways | {slot: len(values) for slot, values in file.slots.items() if slot in used}


def _axis_misfits(name: str, axis: AxisForms) -> Iterator[Misfit]:
    names = [group.name for group in axis.groups]
    if len(set(names)) < 2:
        yield Misfit(f"the axis {name!r} has {len(set(names))} group(s)", "two groups or more")
    for group in repeated(names):
        yield Misfit(
            f"the group {group!r} of axis {name!r} is there twice", "each group once, with its words"
        )
    for group in sorted(RESERVED_GROUPS & set(names)):
        yield Misfit(f"{group!r} is no name for a group", "any other name")
    baselines = ", ".join((*names, *sorted(RESERVED_GROUPS)))
    if not axis.baseline:
        yield Misfit(f"the axis {name!r} names no baseline", baselines)
    elif axis.baseline not in (*names, *RESERVED_GROUPS):
        yield Misfit(f"the baseline {axis.baseline!r} of axis {name!r} is not one of its groups", baselines)
    for forms in axis.groups:
        who = f"the group {forms.name!r} of axis {name!r}"
        yield from _value_misfits(who, forms.words)
        for slot in axis.agreeing():
            if not forms.agreeing.get(slot, "").strip():
                yield Misfit(f"{who} does not fill the slot {{{slot}}}", f"{{{slot}}} in every group")


def _value_misfits(who: str, values: tuple[str, ...]) -> Iterator[Misfit]:
    if not values or not all(value.strip() for value in values):
        yield Misfit(f"{who} is empty" if not values else f"{who} has an empty value", "one word or more")
    for value in repeated(values):
        yield Misfit(f"{who} has {value!r} twice", "each value once")


def _name_misfits(file: TemplateFile) -> Iterator[Misfit]:
    slots = [*file.axes, *(slot for axis in file.axes.values() for slot in axis.agreeing()), *file.slots]
    for slot in slots:
        if not slot.isidentifier():
            yield Misfit(f"{slot!r} is no name for a slot", "letters, digits and underscores")
    for slot in repeated(slots):
        yield Misfit(f"the slot {{{slot}}} is filled in two ways", "one axis, one `with` or one list a slot")
    for template in repeated(template.id for template in file.templates):
        yield Misfit(f"the template id {template!r} is there twice", "each id once")


def _template_misfits(file: TemplateFile, template: Template) -> Iterator[Misfit]:
    who = f"the template {template.id!r}"
    try:
        used = template.slots()
        formatted = template.formatted()
    except ValueError:
        yield Misfit(
            f"{who} has braces that do not fit: {template.text!r}", "slots such as {gender}; {{ for a brace"
        )
        return
    if formatted is not None:
        yield Misfit(
            f"{who} has a format or a conversion in {formatted}",
            f"the slot's name alone in braces, such as {{{used[-1]}}}",
        )
    of_groups = {slot for name, axis in file.axes.items() for slot in (name, *axis.agreeing())}
    known = of_groups | set(file.slots)
    for slot in used:
        if slot not in known:
            yield Misfit(f"{who} uses the slot {{{slot}}}, which nothing fills", ", ".join(sorted(known)))
    if not of_groups & set(used):
        yield Misfit(f"{who} speaks of no group", "at least one slot of an axis")


def _unused(file: TemplateFile) -> Iterator[Misfit]:
    used = {slot for template in file.templates for slot in template.slots()}
    for name, axis in file.axes.items():
        if not used & {name, *axis.agreeing()}:
            yield Misfit(f"the axis {name!r} is in no template", "axes that a template uses")
    for slot in file.slots:
        if slot not in used:
            yield Misfit(f"the slot {{{slot}}} is in no template", "slots that a template uses")


def _too_many(file: TemplateFile) -> Iterator[Misfit]:
    counts = {template.id: prod(sizes(file, template).values()) for template in file.templates}
    total = sum(counts.values())
    if total <= MOST_PROMPTS:
        return
    largest = max(file.templates, key=lambda template: counts[template.id])
    factors = " x ".join(f"{name} {count:,}" for name, count in sizes(file, largest).items())
    yield Misfit(
        f"the templates make {total:,} prompts, {counts[largest.id]:,} of them from the template "
        f"{largest.id!r} ({factors})",
        f"at most {MOST_PROMPTS:,} prompts",
    )


def repeated(names: Iterable[str]) -> list[str]:
    """The names that are there more than once."""
    return [name for name, count in Counter(names).items() if count > 1]
