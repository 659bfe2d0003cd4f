"""Headers of Parquet as other writers write them, and what they say of the size of a table."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from tests.store.parquet_bytes import (
    Field,
    i32,
    i64,
    leaf,
    struct,
    text,
    write_parquet,
    write_repeated,
)

from evenhand.store.parquet import check_parquet


def write(path: Path, *, longest: Field) -> Path:
    """A column of one page of two values, whose header holds the largest text."""
    packed = b"\0" * 20
    about = struct({1: i32(2), 5: struct({1: longest})})
    _, header = struct({2: i32(len(packed)), 3: i32(len(packed)), 5: about})
    column = struct({5: i64(2), 7: i64(len(header + packed)), 9: i64(4)})
    schema = [struct({4: text(b"table"), 5: i32(1)}), leaf(b"text")]
    return write_parquet(path, schema, [struct({3: column})], header + packed, 2)


@pytest.mark.parametrize("length", [3, 100_000, 1_200_002])
def test_a_header_may_hold_a_whole_text(tmp_path: Path, length: int) -> None:
    check_parquet(write(tmp_path / "a.parquet", longest=text(b"x" * length)))


def test_a_text_that_would_be_longer_than_its_column_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", longest=text(b"x" * 100_000, length=1 << 40))
    with pytest.raises(ValueError, match=r"^its headers end early$"):
        check_parquet(path)


def test_the_size_of_each_column_is_known_from_the_headers(tmp_path: Path) -> None:
    table = pl.DataFrame(
        {"n": [1, 2, 3], "lists": [["a", "b"], [], None], "parts": [{"x": 1, "y": [2.0, 3.0]}] * 3}
    )
    table.write_parquet(tmp_path / "a.parquet", compression="uncompressed")
    headers = check_parquet(tmp_path / "a.parquet")
    assert headers.rows == 3
    # An empty and a missing list count as one value each; of a struct every part is counted.
    assert {name: (column.values, column.is_nested) for name, column in headers.columns.items()} == {
        "n": (3, False),
        "lists": (4, True),
        "parts": (9, True),
    }
    assert all(0 < column.size < 1000 for column in headers.columns.values())


def test_a_repeated_text_is_small_on_disk_and_read_as_written(tmp_path: Path) -> None:
    path = write_repeated(tmp_path / "a.parquet", b"word", rows=1000, columns=20)
    headers = check_parquet(path)
    assert (headers.rows, len(headers.columns), headers.columns["text19"].values) == (1000, 20, 1000)
    table = pl.read_parquet(path)
    assert table.select("text").to_series().to_list() == ["word"] * 1000
    in_list = write_repeated(tmp_path / "b.parquet", b"word", rows=1000, in_list=True)
    assert pl.read_parquet(in_list)["text"].to_list() == [["word"] * 1000]
    assert check_parquet(in_list).columns["text"].values == 1000


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    path = write_repeated(tmp_path / "a.parquet", b"word", rows=3, columns=3)
    path.write_bytes(path.read_bytes().replace(b"text2", b"text1"))
    with pytest.raises(ValueError, match=r"^two columns are named 'text1'$"):
        check_parquet(path)
