"""Tables for spreadsheets: a cell that begins like a formula would be run when the file is opened.

Where the comma is a decimal mark, spreadsheets take another separator: a semicolon or a tab, and with it the
line ends inside a text, begins a cell there. What follows one is guarded like the beginning of a cell. Every
text stands in quotes, so that a number that begins a line does not become a formula with what follows it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import polars as pl

from evenhand.stats.scales import number_of

_FORMULA: Final = r"(?:[^\S\t\r\n]|['\"])*[=+\-@\uff1d\uff0b\uff0d\uff20]"
"""The beginning of what is taken for a formula; some spreadsheets take the wide forms too."""
_BEGINS: Final = rf"\A(?=[ ']*[\t\r\n])|(?:\A|(?<=[;\t\r\n]))(?={_FORMULA})"
"""Where one begins: in a cell, and where the cell may be cut. White space at its start is skipped."""
_BARE: Final = re.compile(_BEGINS)
_QUOTED: Final = re.compile(rf"\A'(?=[ ']*[\t\r\n])|(?:\A|(?<=[;\t\r\n]))'(?={_FORMULA})")


def guarded(cell: str) -> str:
    """The cell as a spreadsheet shows it and does not run it: a quote before what begins like a formula.

    >>> guarded("=1+1"), guarded("a;=1+1"), guarded("-1"), guarded("plain")
    ("'=1+1", "a;'=1+1", '-1', 'plain')
    """
    return cell if number_of(cell) is not None else _BARE.sub("'", cell)


def unguarded(cell: str) -> str:
    """What `guarded` was given; a cell that it did not make stays as it is."""
    bare = _QUOTED.sub("", cell)
    return bare if guarded(bare) == cell else cell


def spreadsheet_csv(table: pl.DataFrame, *, decimals: int | None = None) -> str:
    """The table as CSV, with every text guarded and in quotes."""
    return guarded_table(table).write_csv(quote_style="non_numeric", float_precision=decimals)


def guarded_table(table: pl.DataFrame) -> pl.DataFrame:
    """The table with every text guarded, names of columns too."""
    return _mapped(table, guarded)


def unguarded_table(table: pl.DataFrame) -> pl.DataFrame:
    """What `guarded_table` was given."""
    return _mapped(table, unguarded)


def _mapped(table: pl.DataFrame, change: Callable[[str], str]) -> pl.DataFrame:
    texts = [name for name, kind in table.schema.items() if kind == pl.String]
    return table.with_columns(
        pl.col(name).map_elements(change, return_dtype=pl.String, skip_nulls=True) for name in texts
    ).rename(change)
