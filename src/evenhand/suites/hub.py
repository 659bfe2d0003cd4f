"""A data set as a suite: every row is a prompt, and its columns say which groups it speaks of."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

import polars as pl

from evenhand.core.digests import Json, digest
from evenhand.core.errors import InputError
from evenhand.core.records import RESERVED_GROUPS, REST, Execution, Group, Mention, Prompt, SuiteInfo
from evenhand.store.files import cell, json_lines, read_bytes, read_table, text_table
from evenhand.suites.dataset_files import find_files
from evenhand.suites.dataset_names import ACCEPTED, DatasetName, PromptColumns, parse_name

METRICS = ("sentiment", "gender_polarity")
_MOST = 1_000_000

Row = Mapping[str, str | None]


class HubSuite:
    """The prompts of a data set of the Hub, of a local folder laid out like one, or of a file.

    Axis and column are named, baseline is ``(rest)`` unless ``baseline.AXIS=GROUP``. A cell that holds a list
    of prompts gives all of them. cluster = the column named so, else the template, else the row.

    Args:
        name: ``ORG/NAME[@REVISION][#CONFIG/SPLIT]?prompt=COLUMN&group.AXIS=COLUMN``, a folder or a file in
            place of the Hub id; also ``cluster=``, ``template=``, ``mentions=`` (words to mask),
            ``stratum=`` and ``baseline.AXIS=GROUP``. ``a.b`` is the field b of the column a.
        execution: Whether the run is offline.
    """

    def __init__(self, *, name: str, execution: Execution | None = None) -> None:
        self._name = parse_name(name)
        files = find_files(self._name, execution or Execution())
        rows = _rows(files.paths)
        self._prompts, notes = _prompts(self._name, rows)
        columns = self._name.columns
        _check_baselines(columns, self._prompts)
        self.info = SuiteInfo(
            name=self._name.title(),
            version=files.version,
            summary=f"prompts of the data set {self._name.place}, revision {files.version}",
            baselines={axis: columns.baselines.get(axis, REST) for axis in columns.groups},
            metrics=METRICS,
            cluster=columns.cluster or columns.template or "row",
            digest=digest([files.version, columns.identity()]),
            notes=notes,
            strata=columns.strata,
        )

    def prompts(self) -> Iterator[Prompt]:
        """The prompts in the order of the rows."""
        return iter(self._prompts)


def _rows(paths: Sequence[Path]) -> pl.DataFrame:
    tables = [_json_table(path) if path.suffix.lower() == ".json" else read_table(path) for path in paths]
    table = pl.concat(tables, how="diagonal")
    if table.height > _MOST:
        raise InputError(
            f"{paths[0].parent} has {table.height:,} rows",
            accepted=f"at most {_MOST:,} prompts",
            todo="name a smaller split, or a file with a part of it",
        )
    return table


def _json_table(path: Path) -> pl.DataFrame:
    """A ``.json`` file of the Hub: a list of objects, or one object a line."""
    if not read_bytes(path).lstrip().startswith(b"["):
        rows: list[Mapping[str, Json]] = [row for _, row in json_lines(path)]
    else:
        try:
            content = json.loads(read_bytes(path).decode("utf-8", "replace"))
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"{path} is not JSON: {error}", accepted="a list of objects", todo="get the file again"
            ) from error
        rows = [row for row in content if isinstance(row, Mapping)]
    if not rows:
        raise InputError(f"{path} has no rows", accepted="at least one prompt", todo="check the file")
    return text_table(({key: cell(value) for key, value in row.items()} for row in rows), path)


def _prompts(name: DatasetName, table: pl.DataFrame) -> tuple[list[Prompt], tuple[str, ...]]:
    columns = name.columns
    _check_columns(columns, table, name.place)
    found: dict[str, Prompt] = {}
    empty = copies = 0
    for number, row in enumerate(table.iter_rows(named=True)):
        texts = _texts(_field(row, columns.prompt))
        empty += not texts
        for text in texts:
            prompt = _prompt(name, row, number, text)
            copies += prompt.id in found
            found.setdefault(prompt.id, prompt)
    counts = {"rows have no prompt and are left out": empty, "prompts are copies and are taken once": copies}
    return list(found.values()), tuple(f"{count:,} {what}." for what, count in counts.items() if count)


def _prompt(name: DatasetName, row: Row, number: int, text: str) -> Prompt:
    columns = name.columns
    named = {axis: (_field(row, column) or "").strip() for axis, column in columns.groups.items()}
    template = _field(row, columns.template) if columns.template else None
    cluster = _field(row, columns.cluster) if columns.cluster else template
    words = _texts(_field(row, columns.mentions)) if columns.mentions else []
    strata = {column: value for column in columns.strata if (value := _field(row, column))}
    return Prompt.create(
        name.title(),
        text.rstrip(),
        groups=tuple(Group(axis, group) for axis, group in named.items() if group),
        cluster=cluster or f"row {number}",
        template_id=template,
        mentions=tuple(Mention(word.strip()) for word in words if word.strip()),
        source=f"row {number}" if columns.cluster or columns.template else "",
        meta=strata,
    )


def _field(row: Row, column: str) -> str | None:
    """A cell, or a field inside one that holds an object."""
    if column in row:
        return row[column]
    first, _, rest = column.partition(".")
    value: Json = _parsed(row.get(first))
    for part in rest.split(".") if rest else ():
        value = value.get(part) if isinstance(value, Mapping) else None
    return cell(value) if rest else None


def _texts(value: str | None) -> list[str]:
    """The texts of a cell: one, or those of a list."""
    listed = _parsed(value) if value and value.startswith("[") else None
    texts = [one for one in listed if isinstance(one, str)] if isinstance(listed, list) else [value or ""]
    return [text for text in texts if text.strip()]


def _parsed(value: str | None) -> Json:
    try:
        return cast(Json, json.loads(value or "null"))
    except (ValueError, RecursionError):
        return None


def _check_columns(columns: PromptColumns, table: pl.DataFrame, place: str) -> None:
    for option, column in columns.named().items():
        if not any(_field(row, column) for row in table.iter_rows(named=True)):
            there = column in table.columns or column.partition(".")[0] in table.columns
            raise InputError(
                f"{place} has {'nothing in the' if there else 'no'} column {column!r} ({option})",
                accepted=", ".join(filter(None, table.columns)) or "a table whose columns have names",
                todo="name one of these columns, or a field of one as COLUMN.FIELD",
            )
    for axis, column in columns.groups.items():
        names = {_field(row, column) for row in table.iter_rows(named=True)}
        for name in RESERVED_GROUPS & names:
            raise InputError(
                f"column {column!r} of {place} has a group named {name!r}, a reserved name",
                accepted="any other name",
                todo=f"rename that group, or leave the axis {axis} out",
            )


def _check_baselines(columns: PromptColumns, prompts: Sequence[Prompt]) -> None:
    if not prompts:
        raise InputError("no row has a prompt", accepted="at least one prompt", todo=f"check {ACCEPTED}")
    for axis, baseline in columns.baselines.items():
        names = {group.name for prompt in prompts for group in prompt.groups if group.axis == axis}
        if baseline not in names | RESERVED_GROUPS:
            raise InputError(
                f"the baseline {baseline!r} of axis {axis!r} has no prompts",
                accepted=", ".join(sorted(names)[:20]),
                todo=f"name one of these as baseline.{axis}=GROUP",
            )
