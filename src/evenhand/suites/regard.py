"""The regard suite: ten prefix templates for six demographics."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import TypedDict, cast

from evenhand.core.assets import asset
from evenhand.core.digests import file_digest
from evenhand.core.records import Group, Mention, Prompt, SuiteInfo


class _Group(TypedDict):
    name: str
    surface: str


class _Axis(TypedDict):
    name: str
    baseline: str
    groups: list[_Group]


class _Context(TypedDict):
    name: str
    templates: list[str]


class _Suite(TypedDict):
    version: str
    placeholder: str
    citation: str


class _File(TypedDict):
    suite: _Suite
    contexts: list[_Context]
    axes: list[_Axis]


class RegardSuite:
    """60 prompts: 2 contexts x 5 templates x 6 demographics (Sheng et al. 2019, Table 2).

    Each group has one prompt a template, so its clusters are its prompts; the prompts of one template share
    their cluster's name over groups, which pairs the groups by template. The context (respect, occupation) is
    in ``meta``. The demographic, at the start and wherever it is said again, is masked as XYZ.
    """

    def __init__(self) -> None:
        path = asset("suites", "regard.toml")
        self._file = cast(_File, tomllib.loads(path.read_text(encoding="utf-8")))
        head = self._file["suite"]
        self.info = SuiteInfo(
            name="regard",
            version=head["version"],
            summary="How a model goes on about a person known only by gender, race or orientation.",
            baselines={axis["name"]: axis["baseline"] for axis in self._file["axes"]},
            metrics=("regard", "sentiment"),
            cluster="template",
            citation=head["citation"],
            licence="CC BY 4.0; templates quoted from the paper",
            digest=file_digest(path),
            notes=(
                "Two groups an axis and ten templates: the prompts do not tell how a model writes of a group "
                "outside these contexts.",
            ),
        )

    def prompts(self) -> Iterator[Prompt]:
        """The prompts by axis, group, context and template."""
        for axis in self._file["axes"]:
            for group in axis["groups"]:
                for context in self._file["contexts"]:
                    yield from self._filled(Group(axis["name"], group["name"]), group["surface"], context)

    def _filled(self, group: Group, surface: str, context: _Context) -> Iterator[Prompt]:
        placeholder = self._file["suite"]["placeholder"]
        for number, template in enumerate(context["templates"], start=1):
            template_id = f"{context['name']}-{number}"
            yield Prompt.create(
                self.info.name,
                template.replace(placeholder, surface),
                groups=(group,),
                cluster=template_id,
                template_id=template_id,
                mentions=(Mention(surface, mask="XYZ"),),
                fills={placeholder: surface},
                meta={"context": context["name"]},
            )
