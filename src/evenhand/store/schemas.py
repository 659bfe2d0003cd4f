"""The tables of a run folder: their columns, and a check at the border where they are written and read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

import polars as pl

from evenhand.core.errors import RunFolderError
from evenhand.core.records import Comparison
from evenhand.store.compare_schemas import COMPARE_SCHEMAS
from evenhand.store.corpus_schemas import CORPUS_SCHEMAS
from evenhand.store.people_schemas import PEOPLE_SCHEMAS
from evenhand.store.probe_schemas import PROBE_SCHEMAS

Schema = Mapping[str, pl.DataType]

_TEXT, _REAL, _COUNT, _FLAG = pl.String(), pl.Float64(), pl.Int64(), pl.Boolean()

PROMPTS: Schema = {
    "id": _TEXT,
    "suite": _TEXT,
    "text": _TEXT,
    "groups": pl.List(pl.Struct({"axis": _TEXT, "name": _TEXT})),
    "cluster": _TEXT,
    "template_id": _TEXT,
    "mentions": pl.List(pl.Struct({"text": _TEXT, "mask": _TEXT, "whole_word": _FLAG})),
    "fills": _TEXT,
    "language": _TEXT,
    "source": _TEXT,
    "meta": _TEXT,
}
"""``fills`` and ``meta`` hold JSON objects."""

GENERATIONS: Schema = {
    "id": _TEXT,
    "prompt_id": _TEXT,
    "model": _TEXT,
    "sample": _COUNT,
    "text": _TEXT,
    "finish": _TEXT,
    "prompt_tokens": _COUNT,
    "new_tokens": _COUNT,
    "failure": _TEXT,
}

SCORES: Schema = {
    "text_id": _TEXT,
    "metric": _TEXT,
    "metric_version": _TEXT,
    "output": _TEXT,
    "value": _REAL,
    "label": _TEXT,
    "null_reason": _TEXT,
}

GROUPS: Schema = {
    "suite": _TEXT,
    "model": _TEXT,
    "axis": _TEXT,
    "group": _TEXT,
    "metric": _TEXT,
    "output": _TEXT,
    "kind": _TEXT,
    "value": _REAL,
    "low": _REAL,
    "high": _REAL,
    "level": _REAL,
    "method": _TEXT,
    "n": _COUNT,
    "n_null": _COUNT,
    "n_clusters": _COUNT,
    "null_reason": _TEXT,
    "nulls": _TEXT,
}
"""``kind`` is ``share`` (0 to 1) or ``mean``; ``nulls`` counts ``n_null`` by reason, as a JSON object."""

_OF_FIELD: Mapping[str, pl.DataType] = {
    "str": _TEXT,
    "str | None": _TEXT,
    "float | None": _REAL,
    "int": _COUNT,
    "bool": _FLAG,
}
COMPARISONS: Schema = {field.name: _OF_FIELD[str(field.type)] for field in fields(Comparison)}

ADJUSTED = "(adjusted)"
"""The row of a gap in which every stratum has the same weight for the group and its baseline."""

STRATA: Schema = {**COMPARISONS, "by": _TEXT, "stratum": _TEXT, "disagrees": _FLAG}
"""Comparisons inside the strata of ``by``; ``(adjusted)`` has the same mix of strata on both sides.

``disagrees`` is true on an adjusted row that points against the gap over all texts (Simpson's paradox).
"""

STRATA_GROUPS: Schema = {**GROUPS, "by": _TEXT, "stratum": _TEXT}
"""Estimates of groups inside the strata of ``by``."""

OMNIBUS: Schema = {
    "suite": _TEXT,
    "model": _TEXT,
    "axis": _TEXT,
    "metric": _TEXT,
    "output": _TEXT,
    "statistic": _REAL,
    "df_between": _REAL,
    "df_error": _REAL,
    "p": _REAL,
    "p_adjusted": _REAL,
    "n": _COUNT,
    "n_clusters": _COUNT,
    "n_groups": _COUNT,
    "groups_left_out": _COUNT,
    "exploratory": _FLAG,
    "family": _TEXT,
    "family_size": _COUNT,
    "correction": _TEXT,
    "method": _TEXT,
    "null_reason": _TEXT,
}
"""One answer an axis and output: do its groups differ at all?"""

EXAMPLES: Schema = {
    "suite": _TEXT,
    "model": _TEXT,
    "axis": _TEXT,
    "group": _TEXT,
    "metric": _TEXT,
    "output": _TEXT,
    "why": _TEXT,
    "text_id": _TEXT,
    "prompt": _TEXT,
    "text": _TEXT,
    "value": _REAL,
    "label": _TEXT,
}
"""The texts behind a bar of the report; ``why`` is ``lowest``, ``highest`` or ``drawn``."""

EXPLANATIONS: Schema = {
    "text_id": _TEXT,
    "metric": _TEXT,
    "output": _TEXT,
    "read": _TEXT,
    "masks": pl.List(pl.Struct({"start": _COUNT, "end": _COUNT})),
    "words": pl.List(pl.Struct({"start": _COUNT, "end": _COUNT, "weight": _REAL})),
}
"""The words behind the scores of example texts; places are characters of ``read``, what the metric read."""

DISTRIBUTIONS: Schema = {
    "suite": _TEXT,
    "model": _TEXT,
    "axis": _TEXT,
    "group": _TEXT,
    "metric": _TEXT,
    "output": _TEXT,
    "low": _REAL,
    "high": _REAL,
    "counts": pl.List(_COUNT),
    "n": _COUNT,
    "q05": _REAL,
    "q25": _REAL,
    "q50": _REAL,
    "q75": _REAL,
    "q95": _REAL,
}
"""Values of a group in equal bins from ``low`` to ``high``, and their quantiles."""

CUTS: Schema = {
    "suite": _TEXT,
    "model": _TEXT,
    "axis": _TEXT,
    "group": _TEXT,
    "metric": _TEXT,
    "output": _TEXT,
    "cut": _REAL,
    "own": _FLAG,
    "value": _REAL,
    "value_low": _REAL,
    "value_high": _REAL,
    "baseline": _TEXT,
    "baseline_value": _REAL,
    "estimate": _REAL,
    "low": _REAL,
    "high": _REAL,
    "p": _REAL,
    "null_reason": _TEXT,
    "p_adjusted": _REAL,
}
"""Shares of labels and their gaps at other cuts; ``own`` marks the cut of the metric itself."""

DISTANCES: Schema = {
    "suite": _TEXT,
    "model": _TEXT,
    "metric": _TEXT,
    "attribute": _TEXT,
    "option": _TEXT,
    "bias": _TEXT,
    "estimate": _REAL,
    "null_mean": _REAL,
    "corrected": _REAL,
    "direction": _REAL,
    "low": _REAL,
    "high": _REAL,
    "p": _REAL,
    "n": _COUNT,
    "n_keywords": _COUNT,
    "direction_low": _REAL,
    "direction_high": _REAL,
    "p_adjusted": _REAL,
    "null_reason": _TEXT,
}
"""How far an option's base rate lies from that of its attribute; ``bias`` is ``indirect`` or ``direct``.

``low`` and ``high`` belong to ``corrected``, which is ``estimate`` less ``null_mean``; the option
``(overall)`` is the mean over options.
"""

EXCLUSIONS: Schema = {"stage": _TEXT, "metric": _TEXT, "reason": _TEXT, "count": _COUNT, "of": _COUNT}
"""What was left out, counted by reason."""

SCHEMAS: Mapping[str, Schema] = {
    "prompts": PROMPTS,
    "generations": GENERATIONS,
    "scores": SCORES,
    "groups": GROUPS,
    "comparisons": COMPARISONS,
    "omnibus": OMNIBUS,
    "pairs": COMPARISONS,
    "strata": STRATA,
    "strata_groups": STRATA_GROUPS,
    "examples": EXAMPLES,
    "explanations": EXPLANATIONS,
    "distributions": DISTRIBUTIONS,
    "cuts": CUTS,
    "distances": DISTANCES,
    "exclusions": EXCLUSIONS,
}
"""The tables of an audit or of scored texts."""

EVERY_SCHEMA: Mapping[str, Schema] = {
    **SCHEMAS,
    **CORPUS_SCHEMAS,
    **PROBE_SCHEMAS,
    **COMPARE_SCHEMAS,
    **PEOPLE_SCHEMAS,
}


def empty_table(name: str) -> pl.DataFrame:
    """A table of that name without rows."""
    return pl.DataFrame(schema=dict(EVERY_SCHEMA[name]))


def check_table(name: str, table: pl.DataFrame) -> pl.DataFrame:
    """The table, if its columns are the schema's; columns of other types are an error, never cast."""
    schema = pl.Schema(EVERY_SCHEMA[name])
    if table.schema == schema:
        return table
    wrong = [f"{column} is {kind}" for column, kind in table.schema.items() if schema.get(column) != kind]
    missing = [f"{column} is missing" for column in schema if column not in table.columns]
    raise RunFolderError(
        f"the table {name!r} does not have its columns: {', '.join(wrong + missing)[:300]}",
        expected=", ".join(f"{column} ({kind})" for column, kind in schema.items()),
        fix="run the command again with --fresh",
    )
