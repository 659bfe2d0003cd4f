"""Tables of any library go in, and tables of any library come out."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from tests.logs.make_files import BAD, GOOD

import evenhand
from evenhand.audits.score import open_texts
from evenhand.core.errors import InputError

ROWS = {"text": [GOOD, BAD, None], "who": ["a", "b", "b"], "n": [1, 2, 3], "x": [0.5, float("nan"), 2.0]}
TEXT = {"text": [GOOD, BAD, None], "who": ["a", "b", "b"], "n": ["1", "2", "3"], "x": ["0.5", None, "2.0"]}


class Stream:
    """A table of which nothing is known but the interface."""

    def __init__(self, table: pl.DataFrame) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def test_any_table_with_the_arrow_interface_is_read() -> None:
    assert open_texts(Stream(pl.DataFrame(ROWS))).table.to_dict(as_series=False) == TEXT


def test_a_table_of_pandas_is_read_without_its_index() -> None:
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    pytest.importorskip("pyarrow", reason="pandas hands tables over by PyArrow")
    table = pandas.DataFrame(ROWS, index=["p", "q", "r"])
    assert open_texts(table).table.to_dict(as_series=False) == TEXT


def test_a_table_of_pyarrow_is_read() -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="needs PyArrow")
    assert open_texts(pyarrow.table(ROWS)).table.to_dict(as_series=False) == TEXT


def test_the_same_rows_are_the_same_run_whatever_holds_them() -> None:
    table = pl.DataFrame(ROWS)
    assert open_texts(Stream(table)).inputs == open_texts(table).inputs
    assert open_texts(table[:2]).inputs != open_texts(table).inputs


def test_tables_go_out_to_pandas_and_arrow(tmp_path: Path) -> None:
    pytest.importorskip("pandas", reason="needs pandas")
    pyarrow = pytest.importorskip("pyarrow", reason="needs PyArrow")
    run = evenhand.score(pl.DataFrame(ROWS), group=["who"], metrics="sentiment", out=tmp_path / "run")
    groups = run.table("groups")
    assert groups.to_pandas()["group"].tolist() == groups["group"].to_list()
    assert pyarrow.table(groups).num_rows == groups.height == groups.to_arrow().num_rows


@pytest.mark.parametrize("texts", [pl.DataFrame(ROWS).lazy(), [{"text": "x"}], {"text": ["x"]}, 3])
def test_what_is_no_table_is_explained(texts: object) -> None:
    with pytest.raises(InputError) as caught:
        evenhand.score(texts, group=["who"])  # type: ignore[arg-type]
    assert str(caught.value) == (
        f"the texts are a {type(texts).__name__}. Expected: a path, or a table with the Arrow stream "
        "interface: Polars, pandas, PyArrow. Fix: collect a lazy frame first; make rows a table with "
        "polars.DataFrame(rows)."
    )


def test_columns_of_one_name_are_explained() -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="needs PyArrow")
    table = pyarrow.table([["x"], ["y"]], names=["text", "text"])
    with pytest.raises(InputError) as caught:
        evenhand.score(table, group=["who"])
    assert str(caught.value).startswith("the table cannot be read: ")
    assert str(caught.value).endswith(
        "Expected: columns with names that occur once. Fix: rename or convert its columns."
    )


def test_no_rows_are_explained() -> None:
    with pytest.raises(InputError, match="the table has no rows"):
        evenhand.score(pl.DataFrame({"text": [], "who": []}), group=["who"])


def test_a_group_per_text_asks_whether_columns_are_swapped(tmp_path: Path) -> None:
    table = pl.DataFrame({"text": ["north", "south"] * 6, "who": [f"text {number}" for number in range(12)]})
    run = evenhand.score(table, group=["who"], metrics="sentiment", out=tmp_path / "run")
    asked = "who: 12 groups in 12 texts: are --text and --group swapped?"
    assert asked in run.manifest["warnings"]
