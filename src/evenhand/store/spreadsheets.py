"""Cells for spreadsheets: what begins like a formula would be run when the file is opened."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import polars as pl

from evenhand.stats.scales import number_of

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What a spreadsheet takes for a formula, or skips before one; some take the wide forms too."""


def guarded(cell: str) -> str:
    """The cell as a spreadsheet shows it and does not run it: a quote before what begins like a formula.

    >>> guarded("=1+1"), guarded("-1"), guarded("plain")
    ("'=1+1", '-1', 'plain')
    """
    bare = cell.lstrip(" '")
    return f"'{cell}" if bare.startswith(_FORMULA) and number_of(cell) is None else cell


def unguarded(cell: str) -> str:
    """What `guarded` was given."""
    return cell[1:] if cell.startswith("'") and guarded(cell[1:]) == cell else cell


def guarded_table(table: pl.DataFrame) -> pl.DataFrame:
    """The table with every cell of text guarded."""
    return _mapped(table, guarded)


def unguarded_table(table: pl.DataFrame) -> pl.DataFrame:
    """What `guarded_table` was given."""
    return _mapped(table, unguarded)


def _mapped(table: pl.DataFrame, change: Callable[[str], str]) -> pl.DataFrame:
    texts = [name for name, kind in table.schema.items() if kind == pl.String]
    return table.with_columns(
        pl.col(name).map_elements(change, return_dtype=pl.String, skip_nulls=True) for name in texts
    )
