"""The content of a log: a table of texts, the meaning of its columns, and warnings for readers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from evenhand.core.digests import Json
from evenhand.store.table_files import text_table, to_cell
from evenhand.text.sentences import first_sentence_end

TEXT, PROMPT, CLUSTER, ID, FAILURE = "text", "prompt", "cluster", "id", "failure"
"""The columns that every log has; other fields of a log get dotted names."""
MARK_KEY = "evenhand"
"""The field of a document or of metadata that marks a task made from an evenhand suite."""

_DEEPEST = 8

Row = dict[str, str | None]


@dataclass(frozen=True, slots=True)
class ToolLog:
    """The texts of a log."""

    tool: str
    table: pl.DataFrame
    summary: str
    """Its content, in one line for the plan."""
    groups: Mapping[str, str] = field(default_factory=dict)
    """Axis to column, if the task declares the groups of its prompts; else the user must name them."""
    baselines: Mapping[str, str] = field(default_factory=dict)
    mentions: str | None = None
    join_prompt: bool = False
    """True if a text continues its prompt."""
    warnings: tuple[str, ...] = ()


def flatten_value(name: str, value: Json, depth: int = 0) -> Row:
    """A value as cells: objects under dotted names, everything else as text, lists as JSON.

    >>> flatten_value("doc", {"race": {"name": "A"}, "n": 1})
    {'doc.race.name': 'A', 'doc.n': '1'}
    """
    if not (isinstance(value, Mapping) and value and depth < _DEEPEST):
        return {name: to_cell(value)}
    cells: Row = {}
    for key, part in value.items():
        for column, cell in flatten_value(f"{name}.{key}", part, depth + 1).items():
            # A key may itself contain a dot: of two equal names, the first is kept.
            cells.setdefault(column, cell)
    return cells


def read_tool_log(
    rows: Iterable[Row], path: Path, *, tool: str, prefix: str, summary: str, warnings: tuple[str, ...] = ()
) -> ToolLog:
    """The log with these rows; ``prefix`` is the column prefix of the mark in tasks made from a suite.

    The mark names axes, their baselines and the words to mask. A partial run of the task may cover only
    some axes; the others are null throughout.
    """
    table = text_table(rows, path)
    start = f"{prefix}.{MARK_KEY}."
    groups: dict[str, str] = {}
    baselines: dict[str, str] = {}
    for column in table.columns:
        kind, dot, axis = column.removeprefix(start).partition(".")
        values = table[column].drop_nulls()[:1].to_list() if column.startswith(start) and dot else ()
        if values and kind == "groups":
            groups[axis] = column
        elif values and kind == "baselines":
            baselines[axis] = values[0]
    mentions = f"{start}mentions" if f"{start}mentions" in table.columns else None
    return ToolLog(tool, table, summary, groups, baselines, mentions, bool(groups), warnings)


def answer_rows(
    answers: Iterable[tuple[str, str | None, str | None]], tree: Json, *, prefix: str, cells: Row
) -> list[Row]:
    """One row per answer: its id, its text, or the reason that there is none.

    ``tree`` is the task's data for the prompt, and becomes columns under ``prefix``. The prompt in its mark
    is the suite's: the input of the model may be wrapped in a chat template.
    """
    mark = read_mark(tree)
    marked: Row = {name: to_cell(mark.get(name)) or cells[name] for name in (PROMPT, CLUSTER)}
    shared: Row = {**cells, **marked, **flatten_value(prefix, tree)}
    return [
        {TEXT: text and to_cell(cut_answer(text, mark)), ID: id, FAILURE: failure, **shared}
        for id, text, failure in answers
    ]


def read_mark(tree: Json) -> Mapping[str, Json]:
    """The data that a task made from a suite stores for a prompt, in a document or in metadata."""
    return read_object(read_object(tree).get(MARK_KEY))


def read_object(value: Json) -> Mapping[str, Json]:
    """The value if it is an object, else an empty object."""
    return value if isinstance(value, Mapping) else {}


def read_list(value: Json) -> Sequence[Json]:
    """The value if it is a list, else an empty list."""
    return value if isinstance(value, list) else ()


def cut_answer(text: str, mark: Mapping[str, Json]) -> str:
    """The text, cut as the suite of a task requires: after its first sentence if ``stop`` is ``sentence``."""
    end = first_sentence_end(text) if mark.get("stop") == "sentence" else None
    return text[:end]
