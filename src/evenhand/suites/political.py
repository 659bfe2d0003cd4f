"""The political suite: names, US states and topics, in prompts that do or do not name a side."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Literal, NotRequired, TypedDict, cast, get_args

from evenhand.core.digests import file_digest
from evenhand.core.errors import InputError
from evenhand.core.files import asset_path
from evenhand.core.records import ALL, Group, Mask, Mention, Prompt, SuiteInfo

PromptKind = Literal["indirect", "liberal", "conservative", "direct"]
Pronouns = dict[str, str]


class _Option(TypedDict):
    name: str
    keywords: list[str]
    printed: NotRequired[list[str]]
    pronouns: NotRequired[Pronouns]


class _Template(TypedDict):
    number: int
    kind: str
    text: str
    variants: NotRequired[list[Pronouns]]


class _Attribute(TypedDict):
    name: str
    options: list[_Option]
    prompts: list[_Template]


class _Suite(TypedDict):
    version: str
    citation: str


class _File(TypedDict):
    suite: _Suite
    attributes: list[_Attribute]


class PoliticalSuite:
    """Prompts of Liu et al. 2021, Appendices A and B: three attributes, their options and keywords.

    Axis = attribute, group = option, baseline = all options, cluster = keyword.

    Args:
        kind: ``indirect`` prompts hold only the keyword (562); ``liberal`` and ``conservative`` ones also
            name that side (384 each); ``direct`` is both sides (768). Each prompt has its kind in ``meta``.
        printed: Use the topics exactly as the paper prints them, where two ran together.
        name: The kind, as ``--suite political:direct`` gives it.
    """

    def __init__(self, *, kind: str = "indirect", printed: bool = False, name: str = "") -> None:
        self._kind = _check_kind(name or kind)
        self._printed = printed
        path = asset_path("suites", "political.toml")
        self._file = cast(_File, tomllib.loads(path.read_text(encoding="utf-8")))
        head = self._file["suite"]
        self.info = SuiteInfo(
            name="political" if self._kind == "indirect" else f"political:{self._kind}",
            version=head["version"] + ("+printed" if printed else ""),
            summary="How far a text leans when a prompt names a person, a US state or a topic.",
            baselines={attribute["name"]: ALL for attribute in self._file["attributes"]},
            metrics=("ideology", "sentiment"),
            cluster="keyword",
            distances={"ideology": ("ideology",)},
            sides=("liberal", "conservative"),
            citation=head["citation"],
            licence="CC BY 4.0; keywords and prompts quoted from the paper",
            digest=file_digest(path),
            notes=(
                "US politics of 2016. Names stand for a gender, and some also hint at race.",
                "Options have few keywords (healthcare two, leaning blue states three): their intervals are "
                "wide.",
            ),
        )

    def prompts(self) -> Iterator[Prompt]:
        """The prompts by attribute, option, keyword and template."""
        for attribute in self._file["attributes"]:
            templates = [template for template in attribute["prompts"] if self._is_wanted(template)]
            for option in attribute["options"]:
                keywords = option.get("printed", option["keywords"]) if self._printed else option["keywords"]
                for keyword in keywords:
                    for template in templates:
                        yield from self._fill_template(attribute["name"], option, keyword, template)

    def _is_wanted(self, template: _Template) -> bool:
        return template["kind"] == self._kind or (self._kind == "direct" and template["kind"] != "indirect")

    def _fill_template(
        self, attribute: str, option: _Option, keyword: str, template: _Template
    ) -> Iterator[Prompt]:
        variants = template.get("variants")
        mask: Mask = "Person" if attribute == "gender" else "XYZ"
        for pronouns in variants or [option.get("pronouns", {})]:
            subject = pronouns.get("subject", "")
            fills = {"keyword": keyword, **pronouns}
            ending = f"-{subject}" if variants else ""
            yield Prompt.create(
                self.info.name,
                template["text"].format(**fills, Subject=subject.capitalize()),
                groups=(Group(attribute, option["name"]),),
                cluster=keyword,
                template_id=f"{attribute}-{template['number']:02d}{ending}",
                mentions=(Mention(keyword, mask=mask),),
                fills=fills,
                meta={"kind": template["kind"]},
            )


def _check_kind(kind: str) -> PromptKind:
    if kind not in get_args(PromptKind):
        raise InputError(
            f"the political suite has no prompts of kind {kind!r}",
            expected=", ".join(get_args(PromptKind)),
            fix="for example --suite political:direct",
        )
    return cast(PromptKind, kind)
