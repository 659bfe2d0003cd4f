"""A user's own templates x slots x groups as a suite."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

from evenhand.core.digests import file_digest
from evenhand.core.errors import InputError
from evenhand.core.records import Group, Mention, Prompt, SuiteInfo
from evenhand.suites.template_files import read_templates
from evenhand.suites.template_format import AxisForms, Template


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
                accepted="a TOML or CSV file of templates, slots and groups",
                todo="for example --suite templates:jobs.toml",
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
                yield from self._filled(template, dict(zip(free, values, strict=True)))

    def _filled(self, template: Template, fills: dict[str, str]) -> Iterator[Prompt]:
        values = [f"{slot}={value}" for slot, value in fills.items()]
        choices = (_choices(name, forms, template) for name, forms in self._file.axes.items())
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


def _choices(name: str, forms: AxisForms, template: Template) -> list[_Choice]:
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
