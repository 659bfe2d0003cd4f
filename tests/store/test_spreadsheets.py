"""No text is run by a spreadsheet, whatever it takes for the separator, and every text comes back."""

from __future__ import annotations

import csv
import io
import re
import time

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.store.table_files import guard_cell, guard_table, spreadsheet_csv, unguard_cell, unguard_table

CELLS = st.text(st.sampled_from("=+-@'\t\n\r;,\" ab1.\uff1d\u00a0"), max_size=12)
ROWS = st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=4)
SIGNS = ("=", "+", "-", "@", "\uff1d")


@given(CELLS)
def test_guarding_is_undone(cell: str) -> None:
    assert unguard_cell(guard_cell(cell)) == cell


@given(ROWS)
def test_no_separator_makes_a_formula(rows: list[tuple[str, str]]) -> None:
    text = spreadsheet_csv(pl.DataFrame(rows, schema=["a", "b"], orient="row"))
    for cell in (cell for row in csv.reader(io.StringIO(text, newline="")) for cell in row):
        assert not is_formula(cell), repr(text)
    # Elsewhere a quote may stand within a cell and mean nothing: line ends in texts then begin lines.
    for cell in re.split(r"[;\t\r\n]", text):
        number = re.match(r'"([^"]+)"', cell)
        assert not is_formula((number[1] if number else cell).replace('"', "")), repr(text)


def is_formula(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return cell.strip().startswith(SIGNS)
    return False


@given(ROWS)
def test_tables_come_back(rows: list[tuple[str, str]]) -> None:
    table = pl.DataFrame(rows, schema=["a", "=b"], orient="row")
    assert unguard_table(guard_table(table)).equals(table)
    read = pl.read_csv(io.StringIO(spreadsheet_csv(table)), infer_schema=False)
    assert unguard_table(read).equals(table)


@pytest.mark.parametrize(
    ("cell", "safe"),
    [
        ("a;=cmd()", "a;'=cmd()"),
        ("a\t@x\n+1", "a\t'@x\n'+1"),
        ('a; "=1', "a;' \"=1"),
        ("\ta", "'\ta"),
        ("a; b - c; -", "a; b - c;' -"),
        ("-1", "-1"),
        ("1;-1", "1;'-1"),
        ("'=1", "''=1"),
    ],
)
def test_what_is_guarded(cell: str, safe: str) -> None:
    assert guard_cell(cell) == safe
    assert unguard_cell(safe) == cell


@pytest.mark.parametrize("cell", ["'-1", "a;'b", "'quoted'", "-1; '=x"])
def test_what_is_not_of_ours_stays(cell: str) -> None:
    assert unguard_cell(cell) == cell


def test_a_number_does_not_begin_a_formula_with_what_follows() -> None:
    """With a semicolon for the separator and a decimal comma, a line is one cell: -1,5+... would run."""
    table = pl.DataFrame({"id": ["-1"], "text": ["5+cmd|' /C calc'!A0"]})
    assert spreadsheet_csv(table).splitlines()[1] == '"-1","5+cmd|\' /C calc\'!A0"'


@pytest.mark.parametrize("letter", [";", "\n", " ", "'", '"', "=", "-;"])
def test_long_cells_take_no_longer(letter: str) -> None:
    start = time.perf_counter()
    cell = letter * 500_000
    assert unguard_cell(guard_cell(cell)) == cell
    assert time.perf_counter() - start < 10
