"""How contents become bytes: the writers of each format, which take odd values as they come."""

from __future__ import annotations

import csv
import io
import json
import struct
from collections.abc import Sequence
from typing import cast

import polars as pl
from tests.fuzz.harness import Tree


def as_json(tree: Tree) -> bytes:
    """JSON, with the surrogates and the NaN that Python's writer allows."""
    return json.dumps(tree).encode()


def as_json_lines(tree: Tree) -> bytes:
    """One value a line."""
    rows = tree if isinstance(tree, list) else [tree]
    return b"".join(as_json(row) + b"\n" for row in rows)


def as_lines(tree: Tree) -> bytes:
    """Words with a space between them, one list a line."""
    return _joined(tree, " ")


def as_tab_lines(tree: Tree) -> bytes:
    """Cells with a tab between them, unquoted, one list a line."""
    return _joined(tree, "\t")


def as_csv(tree: Tree) -> bytes:
    """Cells quoted where they must be."""
    return _table(tree, ",")


def as_tsv(tree: Tree) -> bytes:
    """The same with tabs."""
    return _table(tree, "\t")


def as_toml(tree: Tree) -> bytes:
    """TOML: tables as inline tables, which any depth and any key can be written in."""
    if not isinstance(tree, dict):
        return f"value = {_toml(tree)}\n".encode("utf-8", "surrogatepass")
    lines = [f"{json.dumps(key)} = {_toml(value)}" for key, value in tree.items()]
    return ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")


def as_parquet(tree: Tree) -> bytes:
    """Columns of whatever type their values have together."""
    columns = cast("dict[str, Tree]", tree) if isinstance(tree, dict) else {"text": tree}
    height = max((len(cells) for cells in columns.values() if isinstance(cells, list)), default=1)
    series = []
    for name, cells in columns.items():
        listed = [*cells, *[None] * height][:height] if isinstance(cells, list) else [cells] * height
        series.append(_series(str(name).encode("utf-8", "replace").decode(), listed))
    return _written(
        [one for one in series if one.name not in {later.name for later in series if later is not one}]
    )


def _written(series: Sequence[pl.Series]) -> bytes:
    """The columns as Parquet; those it has no type for as text."""
    sink = io.BytesIO()
    try:
        pl.DataFrame(series).write_parquet(sink)
    except pl.exceptions.PolarsError:
        sink = io.BytesIO()
        pl.DataFrame([_as_text(one) for one in series]).write_parquet(sink)
    return sink.getvalue()


def as_safetensors(tree: Tree) -> bytes:
    """The file of a header and data: ``[header, number of data bytes]``."""
    header, size = tree if isinstance(tree, list) and len(tree) == 2 else (tree, 64)
    text = json.dumps(header).encode()
    count = size if isinstance(size, int) and 0 <= size < 1 << 20 else 64
    return struct.pack("<Q", len(text)) + text + bytes(range(256)) * (count // 256) + bytes(count % 256)


def _joined(tree: Tree, separator: str) -> bytes:
    rows = tree if isinstance(tree, list) else [tree]
    lines = [separator.join(map(str, row)) if isinstance(row, list) else str(row) for row in rows]
    return ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")


def _table(tree: Tree, delimiter: str) -> bytes:
    sink = io.StringIO()
    writer = csv.writer(sink, delimiter=delimiter)
    for row in tree if isinstance(tree, list) else [tree]:
        writer.writerow(row if isinstance(row, list) else [row])
    return sink.getvalue().encode("utf-8", "surrogatepass")


def _toml(value: Tree) -> str:
    match value:
        case None:
            return '""'
        case bool():
            return "true" if value else "false"
        case float():
            return repr(value)
        case dict():
            return (
                "{"
                + ", ".join(f"{json.dumps(str(key))} = {_toml(item)}" for key, item in value.items())
                + "}"
            )
        case list():
            return "[" + ", ".join(map(_toml, value)) + "]"
        case int():
            return str(value)
        case _:
            return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def _series(name: str, cells: Sequence[Tree]) -> pl.Series:
    try:
        return pl.Series(name, cells, strict=False)
    except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError):
        return _as_text(pl.Series(name, cells, dtype=pl.Object))


def _as_text(series: pl.Series) -> pl.Series:
    return pl.Series(series.name, [str(cell).encode("utf-8", "replace").decode() for cell in series])
