"""The political suite: names, US states and topics, in prompts with and without a named side."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from evenhand.core.digests import file_digest
from evenhand.core.errors import InputError
from evenhand.core.files import asset_path
from evenhand.core.records import ALL, Group, Mention, Prompt, SuiteInfo

KINDS: Final = ("indirect", "liberal", "conservative", "direct")


class PoliticalSuite:
    """Prompts of Liu et al. 2021, Appendices A and B: three attributes, their options and keywords.

    Axis = attribute, group = option, baseline = all options, cluster = keyword.

    Args:
        kind: ``indirect`` prompts hold only the keyword (562); ``liberal`` and ``conservative`` ones also
            name that side (384 each); ``direct`` is both sides (768). Each prompt has its kind in ``meta``.
        printed: Use the topics exactly as the paper prints them, with two of them run together.
        name: The kind, as ``--suite political:direct`` gives it.
    """

    def __init__(self, *, kind: str = "indirect", printed: bool = False, name: str = "") -> None:
        self._kind = name or kind
        if self._kind not in KINDS:
            raise InputError(
                f"the political suite has no prompts of kind {self._kind!r}",
                expected=", ".join(KINDS),
                fix="for example --suite political:direct",
            )
        self._printed = printed
        path = asset_path("suites", "political.toml")
        self._file = tomllib.loads(path.read_text(encoding="utf-8"))
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
        kinds = ("liberal", "conservative") if self._kind == "direct" else (self._kind,)
        for attribute in self._file["attributes"]:
            templates = [template for template in attribute["prompts"] if template["kind"] in kinds]
            for option in attribute["options"]:
                keywords = option.get("printed", option["keywords"]) if self._printed else option["keywords"]
                for keyword in keywords:
                    for template in templates:
                        yield from self._fill_template(attribute["name"], option, keyword, template)

    def _fill_template(
        self, attribute: str, option: Mapping[str, Any], keyword: str, template: Mapping[str, Any]
    ) -> Iterator[Prompt]:
        variants = template.get("variants")
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
                mentions=(Mention(keyword, mask="Person" if attribute == "gender" else "XYZ"),),
                fills=fills,
                meta={"kind": template["kind"]},
            )
