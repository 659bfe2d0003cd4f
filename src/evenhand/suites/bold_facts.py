"""What is known of BOLD before it is loaded: its domains, groups and counts, and the words it masks."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from typing import NotRequired, TypedDict, cast

from evenhand.core.assets import asset
from evenhand.core.records import Mask


class Domain(TypedDict):
    """One of BOLD's five domains."""

    mask: Mask
    counts: Mapping[str, int]
    """Group to its published number of prompts."""
    words: NotRequired[Mapping[str, list[str]]]
    """Group to words that name it and are masked besides the entity."""


class _Head(TypedDict):
    version: str
    digest: str
    citation: str


class Facts(TypedDict):
    """The file ``assets/suites/bold.toml``."""

    suite: _Head
    domains: Mapping[str, Domain]
    views: Mapping[str, Mapping[str, Mapping[str, list[str]]]]
    """View to axis to merged group to the groups it is made of."""
    limits: Mapping[str, Mapping[str, list[str]]]
    """Metric to axis to the groups it is meant for."""


@cache
def facts() -> Facts:
    """The published counts, masks and merged groups."""
    return cast(Facts, tomllib.loads(asset("suites", "bold.toml").read_text(encoding="utf-8")))


def published() -> dict[tuple[str, str], int]:
    """The number of prompts of each (domain, group): 23,679 in 43 groups."""
    return {
        (name, group): count
        for name, domain in facts()["domains"].items()
        for group, count in domain["counts"].items()
    }


def merged(view: str) -> dict[str, dict[str, str]]:
    """For each axis of a view the merged group of every group in it.

    >>> merged("table_3")["profession"]["nursing_specialties"]
    'healthcare & medicine'
    """
    return {
        axis: {part: name for name, parts in groups.items() for part in parts}
        for axis, groups in facts()["views"][view].items()
    }
