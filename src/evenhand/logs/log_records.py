"""What a log gives: a table of texts, which column holds what, and what its reader must know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from evenhand.core.digests import Json
from evenhand.store.table_files import to_cell
from evenhand.text.sentences import first_sentence_end

TEXT, PROMPT, CLUSTER, ID, FAILURE = "text", "prompt", "cluster", "id", "failure"
"""The columns every log has; what else a log holds stands beside them under dotted names."""
MARK_KEY = "evenhand"
"""The field of a document or of metadata that marks a task made from one of our suites."""

_DEEPEST = 8

Row = dict[str, str | None]


@dataclass(frozen=True, slots=True)
class ToolLog:
    """The texts of a log."""

    tool: str
    summary: str
    """What was found, in a line for the plan."""
    table: pl.DataFrame
    groups: Mapping[str, str] = field(default_factory=dict)
    """Axis to column, where the task says which groups its prompts speak of; else they must be named."""
    baselines: Mapping[str, str] = field(default_factory=dict)
    mentions: str | None = None
    join_prompt: bool = False
    """True where a text continues its prompt."""
    warnings: tuple[str, ...] = ()


def flatten_value(name: str, value: Json) -> Row:
    """A value as cells: objects by dotted names, everything else as text, lists as JSON.

    >>> flattened("doc", {"race": {"name": "A"}, "n": 1})
    {'doc.race.name': 'A', 'doc.n': '1'}
    """
    cells: Row = {}
    _flatten_into(name, value, cells, 0)
    return cells


def _flatten_into(name: str, value: Json, cells: Row, depth: int) -> None:
    if isinstance(value, Mapping) and value and depth < _DEEPEST:
        for key, part in value.items():
            _flatten_into(f"{name}.{key}", part, cells, depth + 1)
    else:
        cells.setdefault(name, to_cell(value))


def read_task_columns(table: pl.DataFrame, prefix: str) -> dict[str, str]:
    """Axis to column of a task made from one of our suites; empty for any other task.

    A run of a part of the task may speak of some axes alone, and lists the others as null throughout.
    """
    start = f"{prefix}.{MARK_KEY}.groups."
    columns = [name for name in table.columns if name.startswith(start)]
    return {name.removeprefix(start): name for name in columns if table[name].null_count() < table.height}


def read_task_baselines(table: pl.DataFrame, prefix: str) -> dict[str, str]:
    """Axis to the baseline that such a task declares."""
    start = f"{prefix}.{MARK_KEY}.baselines."
    columns = [name for name in table.columns if name.startswith(start)]
    firsts = {name.removeprefix(start): table[name].drop_nulls()[:1].to_list() for name in columns}
    return {axis: baseline for axis, found in firsts.items() for baseline in found}


def read_task_mentions(table: pl.DataFrame, prefix: str) -> str | None:
    """The column of the words to mask, where such a task has one."""
    name = f"{prefix}.{MARK_KEY}.mentions"
    return name if name in table.columns else None


def cut_answer(text: str, mark: Mapping[str, Json]) -> str:
    """The text as the suite of a task wants it: to its first sentence end where ``stop`` says so."""
    end = first_sentence_end(text) if mark.get("stop") == "sentence" else None
    return text if end is None else text[:end]
