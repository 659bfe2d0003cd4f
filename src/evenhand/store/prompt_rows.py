"""Prompts to rows and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import polars as pl

from evenhand.core.digests import canonical_json
from evenhand.core.records import Group, Mention, Prompt
from evenhand.store.schemas import PROMPTS


def write_prompt_rows(prompts: Iterable[Prompt]) -> pl.DataFrame:
    """One row a prompt."""
    records = list(prompts)
    # By columns: a million prompts of a file take seconds so, and minutes as a million rows.
    columns: dict[str, list[object] | pl.Series] = {
        "id": [prompt.id for prompt in records],
        "suite": [prompt.suite for prompt in records],
        "text": [prompt.text for prompt in records],
        "groups": _lists([prompt.groups for prompt in records], "groups"),
        "cluster": [prompt.cluster for prompt in records],
        "template_id": [prompt.template_id for prompt in records],
        "mentions": _lists([prompt.mentions for prompt in records], "mentions"),
        "fills": [canonical_json(dict(prompt.fills)) if prompt.fills else "{}" for prompt in records],
        "language": [prompt.language for prompt in records],
        "source": [prompt.source for prompt in records],
        "meta": [canonical_json(dict(prompt.meta)) if prompt.meta else "{}" for prompt in records],
    }
    return pl.DataFrame(columns, schema=dict(PROMPTS))


def _lists(records: Sequence[Sequence[Group | Mention]], column: str) -> pl.Series:
    """The records of each prompt as a column of lists, built from flat columns: dicts take minutes."""
    kind = PROMPTS[column]
    assert isinstance(kind, pl.List)
    assert isinstance(kind.inner, pl.Struct)
    names = [field.name for field in kind.inner.fields]
    flat = pl.DataFrame(
        {
            "row": [row for row, part in enumerate(records) for _ in part],
            **{name: [getattr(record, name) for part in records for record in part] for name in names},
        },
        schema={"row": pl.Int64(), **{field.name: field.dtype for field in kind.inner.fields}},
    )
    grouped = flat.group_by("row", maintain_order=True).agg(pl.struct(names).alias(column))
    rows = pl.DataFrame({"row": pl.int_range(len(records), eager=True)})
    return rows.join(grouped, on="row", how="left", maintain_order="left")[column].fill_null([])


def read_prompt_rows(table: pl.DataFrame) -> list[Prompt]:
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


def interleave_groups(prompts: Sequence[Prompt]) -> list[Prompt]:
    """The same prompts in turn over groups, so that the first N of them speak of every group.

    Within a group the order of the suite is kept. A limit then cuts all groups alike, and a larger limit
    only adds prompts.
    """
    queues: dict[tuple[Group, ...], list[Prompt]] = {}
    for prompt in prompts:
        queues.setdefault(prompt.groups, []).append(prompt)
    ranked = (item for queue in queues.values() for item in enumerate(queue))
    return [prompt for _, prompt in sorted(ranked, key=lambda item: item[0])]
