"""The prompts of a suite as documents of another tool, marked so that ``evenhand score`` knows them again."""

from __future__ import annotations

from dataclasses import asdict
from typing import NamedTuple

from evenhand.core import registry
from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.core.protocols import Suite
from evenhand.core.records import Execution, Prompt, SuiteInfo
from evenhand.logs.records import MARK
from evenhand.pipeline.tables import spread

Document = dict[str, Json]


class Documents(NamedTuple):
    """The prompts of a suite as another tool takes them."""

    info: SuiteInfo
    rows: list[Document]


def documents(suite: str | Suite, *, limit: int | None = None, offline: bool = False) -> Documents:
    """One document a prompt: its text, its id, and the mark with groups, cluster and words to mask.

    Args:
        suite: A name such as ``starter`` or ``templates:FILE``, or a suite.
        limit: So many prompts, spread over the groups.
        offline: Whether the Hub must not be asked.
    """
    if limit is not None and limit < 1:
        raise InputError(f"limit is {limit}", accepted="1 or more", todo="change it")
    found = registry.suite(suite, execution=Execution(offline=offline)) if isinstance(suite, str) else suite
    # A harness has nothing to ask where a prompt has no text, as five of BOLD's.
    prompts = spread([prompt for prompt in found.prompts() if prompt.text.strip()])[:limit]
    if not prompts:
        raise InputError(f"suite {found.info.name!r} has no prompts", accepted="at least one prompt")
    return Documents(found.info, [_document(prompt, found.info) for prompt in prompts])


def _document(prompt: Prompt, info: SuiteInfo) -> Document:
    groups: Json = {group.axis: group.name for group in prompt.groups}
    mark: Json = {
        "suite": info.name,
        "version": info.version,
        "digest": info.digest,
        "prompt": prompt.text,
        "cluster": prompt.cluster,
        "template": prompt.template_id,
        "groups": groups,
        "baselines": dict(info.baselines),
        "mentions": [asdict(one) for one in prompt.mentions],
        "stop": info.spec.stop,
    }
    return {"id": prompt.id, "prompt": prompt.text, MARK: mark}
