"""Conversion between prompts and table rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Any, cast

import polars as pl

from evenhand.core.digests import canonical_json
from evenhand.core.records import Group, Mention, Prompt
from evenhand.store.schemas import EVERY_SCHEMA


def write_prompt_rows(prompts: Iterable[Prompt]) -> pl.DataFrame:
    """One row per prompt."""
    # Built by column: a million prompts take seconds this way, and minutes when built by row.
    listed, schema = list(prompts), EVERY_SCHEMA["prompts"]
    columns: dict[str, Any] = {name: [getattr(prompt, name) for prompt in listed] for name in schema}
    for name in ("groups", "mentions"):
        columns[name] = _lists(columns[name], name)
    for name in ("fills", "meta"):
        columns[name] = [canonical_json(dict(values)) if values else "{}" for values in columns[name]]
    return pl.DataFrame(columns, schema=schema)


def _lists(records: Sequence[Sequence[Group | Mention]], column: str) -> pl.Series:
    """The records of each prompt as a column of lists, built from flat columns: dicts would take minutes."""
    kind = cast(pl.List, EVERY_SCHEMA["prompts"][column])
    parts = cast(pl.Struct, kind.inner).to_schema()
    of_row = {"row": [row for row, part in enumerate(records) for _ in part]}
    of_part = {name: [getattr(record, name) for part in records for record in part] for name in parts}
    flat = pl.DataFrame(of_row | of_part, schema={"row": pl.Int64(), **parts})
    grouped = flat.group_by("row", maintain_order=True).agg(pl.struct(*parts).alias(column))
    rows = pl.DataFrame({"row": pl.int_range(len(records), eager=True)})
    return rows.join(grouped, on="row", how="left", maintain_order="left")[column].fill_null([])


def read_prompt_rows(table: pl.DataFrame) -> list[Prompt]:
    """The prompts of a run, restored from its table."""
    return [
        Prompt(
            **{
                **row,
                "groups": tuple(Group(**group) for group in row["groups"]),
                "mentions": tuple(Mention(**mention) for mention in row["mentions"]),
                "fills": json.loads(row["fills"]),
                "meta": json.loads(row["meta"]),
            }
        )
        for row in table.iter_rows(named=True)
    ]


def interleave_groups(prompts: Sequence[Prompt]) -> list[Prompt]:
    """The same prompts, alternating between groups, so that the first N of them cover every group.

    Within a group the suite's order is kept. A limit then cuts all groups alike, and a larger limit
    only adds prompts.
    """
    queues: dict[tuple[Group, ...], list[Prompt]] = {}
    for prompt in prompts:
        queues.setdefault(prompt.groups, []).append(prompt)
    turns = zip_longest(*queues.values())
    return [prompt for turn in turns for prompt in turn if prompt is not None]
