"""The texts ``score`` is given: a table of any kind or a log of another tool, and which column holds what."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, cast, runtime_checkable

import polars as pl

from evenhand.api.run_options import TextColumns
from evenhand.core.digests import Json, file_digest
from evenhand.core.errors import InputError, MissingLibraryError
from evenhand.logs.read import read_log
from evenhand.logs.records import CLUSTER, FAILURE, ID, PROMPT, Log
from evenhand.pipeline.reading import Layout
from evenhand.store.files import as_text, read_table


@runtime_checkable
class ArrowTable(Protocol):
    """Any table with the Arrow stream interface: pandas, Polars, PyArrow."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The table as an Arrow stream."""
        ...


@dataclass(frozen=True, slots=True)
class Given:
    """Texts that were read, and what they were read from."""

    name: str
    table: pl.DataFrame
    inputs: Mapping[str, Json]
    """What goes into the identity of a run."""
    log: Log | None = None
    """The log of another tool the table comes from."""


def open_texts(texts: Path | str | ArrowTable, columns: Mapping[str, str | None] | None = None) -> Given:
    """The table in a file, in a log, or in memory, every column as text; of Parquet ``columns`` alone."""
    if not isinstance(texts, Path | str):
        return _from_memory(texts)
    path = Path(texts)
    log = read_log(path)
    table = log.table if log else read_table(path, columns)
    return Given(path.name, table, {"file": path.name, "digest": file_digest(path)}, log)


def _from_memory(texts: object) -> Given:
    if not isinstance(texts, ArrowTable):
        raise InputError(
            f"the texts are a {type(texts).__name__}",
            accepted="a path, or a table with the Arrow stream interface: Polars, pandas, PyArrow",
            todo="collect a lazy frame first; make rows a table with polars.DataFrame(rows)",
        )
    try:
        table = as_text(pl.DataFrame(cast(pl.DataFrame, texts)))
    except ImportError as error:
        raise MissingLibraryError(
            f"a table of {type(texts).__module__.partition('.')[0]} is handed over by PyArrow: {error}",
            accepted="pyarrow installed, or a Polars table",
            todo="pip install pyarrow",
        ) from error
    except (pl.exceptions.PolarsError, ValueError, TypeError) as error:
        raise InputError(
            f"the table cannot be read: {str(error).splitlines()[0]}",
            accepted="columns with names that occur once",
            todo="rename or convert its columns",
        ) from error
    if table.height == 0:
        raise InputError("the table has no rows", accepted="at least one text")
    rows = hashlib.blake2b(table.write_ndjson().encode(), digest_size=16).hexdigest()
    return Given("table", table, {"file": "table", "digest": rows})


def named_columns(options: TextColumns, *, strata: tuple[str, ...]) -> dict[str, str | None] | None:
    """The columns by the option that names each; None where no group is named, since a log may know it."""
    groups = _named_groups(options)
    return _layout(options, groups, strata).columns() if groups else None


def layout_of(options: TextColumns, given: Given, *, strata: tuple[str, ...]) -> Layout:
    """Which column holds what: as it was said, else as the log of another tool has it."""
    layout, log = _layout(options, _groups(options, given), strata), given.log
    if log is None:
        return layout
    return replace(
        layout,
        prompt=layout.prompt or PROMPT,
        cluster=layout.cluster or CLUSTER,
        id=layout.id or (ID if given.table[ID].is_unique().all() else None),
        mentions=layout.mentions or log.mentions,
        join_prompt=layout.join_prompt or log.join_prompt,
        failure=FAILURE,
    )


def _layout(options: TextColumns, groups: Mapping[str, str], strata: tuple[str, ...]) -> Layout:
    return Layout(
        text=options["text"],
        groups=groups,
        prompt=options["prompt"],
        cluster=options["cluster"],
        id=options["id"],
        mentions=options["mentions"],
        join_prompt=options["join_prompt"],
        strata=strata,
    )


def _groups(options: TextColumns, given: Given) -> dict[str, str]:
    groups = _named_groups(options)
    if not groups and given.log and given.log.groups:
        return dict(given.log.groups)
    if not groups:
        columns = ", ".join(filter(None, given.table.columns[:40])) or "none has a name"
        raise InputError(
            "no group column was named",
            accepted="at least one --group AXIS=COLUMN",
            todo=f"name the column that says which group a text speaks of: {columns}",
        )
    return groups


def _named_groups(options: TextColumns) -> dict[str, str]:
    group = options["group"]
    pairs = list(group.items()) if isinstance(group, Mapping) else [_axis_and_column(item) for item in group]
    doubled = [axis for axis, count in Counter(axis for axis, _ in pairs).items() if count > 1]
    if doubled:
        raise InputError(f"--group names the axis {doubled[0]!r} twice", accepted="one column an axis")
    return dict(pairs)


def _axis_and_column(item: str) -> tuple[str, str]:
    axis, _, column = item.partition("=")
    if not axis:
        raise InputError(f"--group {item!r} names no axis", accepted="AXIS=COLUMN or COLUMN")
    return axis, column or axis
