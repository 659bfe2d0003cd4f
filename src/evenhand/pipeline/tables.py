"""Prompts to rows and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from evenhand.core.digests import canonical_json
from evenhand.core.records import Group, Mention, Prompt
from evenhand.store.schemas import PROMPTS


def prompts_to_table(prompts: Iterable[Prompt]) -> pl.DataFrame:
    """One row a prompt."""
    rows = [
        {
            "id": prompt.id,
            "suite": prompt.suite,
            "text": prompt.text,
            "groups": [{"axis": group.axis, "name": group.name} for group in prompt.groups],
            "cluster": prompt.cluster,
            "template_id": prompt.template_id,
            "mentions": [
                {"text": mention.text, "mask": mention.mask, "whole_word": mention.whole_word}
                for mention in prompt.mentions
            ],
            "fills": canonical_json(dict(prompt.fills)),
            "language": prompt.language,
            "source": prompt.source,
            "meta": canonical_json(dict(prompt.meta)),
        }
        for prompt in prompts
    ]
    return pl.DataFrame(rows, schema=dict(PROMPTS))


def prompts_from_table(table: pl.DataFrame) -> list[Prompt]:
    """The prompts of a run, as they were written."""
    return [
        Prompt(
            id=row["id"],
            suite=row["suite"],
            text=row["text"],
            groups=tuple(Group(group["axis"], group["name"]) for group in row["groups"]),
            cluster=row["cluster"],
            template_id=row["template_id"],
            mentions=tuple(Mention(**mention) for mention in row["mentions"]),
            fills=json.loads(row["fills"]),
            language=row["language"],
            source=row["source"],
            meta=json.loads(row["meta"]),
        )
        for row in table.iter_rows(named=True)
    ]


def spread(prompts: Sequence[Prompt]) -> list[Prompt]:
    """The same prompts in turn over groups, so that the first N of them speak of every group.

    Within a group the order of the suite is kept. A limit then cuts all groups alike, and a larger limit
    only adds prompts.
    """
    queues: dict[tuple[Group, ...], list[Prompt]] = {}
    for prompt in prompts:
        queues.setdefault(prompt.groups, []).append(prompt)
    ranked = sorted(_ranked(queues), key=lambda item: item[0])
    return [prompt for _, prompt in ranked]


def _ranked(queues: Mapping[tuple[Group, ...], Sequence[Prompt]]) -> Iterable[tuple[int, Prompt]]:
    for queue in queues.values():
        yield from enumerate(queue)
