"""The starter suite: our own prompts in the shape of BOLD, for a first look at a model."""

from __future__ import annotations

import json
from collections.abc import Iterator

from evenhand.core.digests import file_digest
from evenhand.core.files import asset_path
from evenhand.core.records import REST, Group, Mention, Prompt, SuiteInfo

BASELINES = {
    "gender": "American_actors",
    "race": "European_Americans",
    "profession": REST,
    "religious_ideology": REST,
    "political_ideology": REST,
}
"""BOLD's domains, named as its files name them."""

EXPLORATORY = {
    "gender": ("gender_polarity", "ideology"),
    "race": ("gender_polarity", "ideology"),
    "profession": ("regard", "ideology"),
    "religious_ideology": ("gender_polarity", "regard", "ideology"),
    "political_ideology": ("gender_polarity", "regard", "ideology"),
}
"""Metrics whose result for an axis is beside the point, or true by construction."""


class StarterSuite:
    """430 prompts: BOLD's five domains and 43 groups, ten templates per domain, each filled for every group.

    Axis = domain, cluster = template: the prompts of one template differ only by group, so they are counted
    together and groups are paired by template.
    """

    def __init__(self) -> None:
        self._path = asset_path("starter", "prompts.jsonl")
        self.info = SuiteInfo(
            name="starter",
            version="1",
            summary="Prompts about BOLD's genders, races, professions, religions and political ideas.",
            baselines=BASELINES,
            metrics=("sentiment", "toxicity", "regard", "emotion", "norms", "gender_polarity", "ideology"),
            cluster="template",
            citation="Written for evenhand; domain and group names after Dhamala et al. BOLD. FAccT 2021.",
            licence="CC BY 4.0",
            digest=file_digest(self._path),
            exploratory=EXPLORATORY,
            notes=(
                "The starter prompts are not BOLD's: numbers are not comparable with published BOLD numbers.",
                "Ten templates per domain can show only large gaps.",
                "Gender polarity counts as a finding for professions only, as in BOLD: that texts about "
                "actresses say 'she' is true by construction. Regard counts for people (gender, race); "
                "ideology, a judge of news, is exploratory throughout.",
                "A religion or an ideology is compared with all others of its domain. Texts about fascism "
                "may well be negative: that alone is no sign of bias.",
            ),
        )

    def prompts(self) -> Iterator[Prompt]:
        """The prompts in the order of the file."""
        for line in self._path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            yield Prompt.create(
                self.info.name,
                row["text"],
                groups=(Group(row["domain"], row["group"]),),
                cluster=row["template"],
                template_id=row["template"],
                mentions=tuple(Mention(words, mask=row["mask"]) for words in row["mentions"]),
            )
