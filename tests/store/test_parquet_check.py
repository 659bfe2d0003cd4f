"""Headers of Parquet, written here byte by byte (Thrift's compact protocol) as other writers write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.store.parquet_check import check_parquet


def varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)


def number(value: int) -> tuple[int, bytes]:
    return 6, varint(2 * value)


def text(value: bytes, length: int | None = None) -> tuple[int, bytes]:
    return 8, varint(len(value) if length is None else length) + value


def one(value: tuple[int, bytes]) -> tuple[int, bytes]:
    """A list of one value."""
    return 9, bytes([1 << 4 | value[0]]) + value[1]


def struct(fields: dict[int, tuple[int, bytes]]) -> tuple[int, bytes]:
    written, last = b"", 0
    for key, (kind, value) in fields.items():
        written += bytes([key - last << 4 | kind]) + value
        last = key
    return 12, written + b"\0"


def write(path: Path, *, longest: tuple[int, bytes]) -> Path:
    """A column of one page of two values, whose header holds the largest text."""
    packed = b"\0" * 20
    about = struct({1: number(2), 5: struct({1: longest})})
    _, header = struct({2: number(len(packed)), 3: number(len(packed)), 5: about})
    column = struct({5: number(2), 7: number(len(header + packed)), 9: number(4)})
    group = struct({1: one(struct({3: column})), 3: number(2)})
    _, footer = struct({1: number(1), 3: number(2), 4: one(group)})
    path.write_bytes(b"PAR1" + header + packed + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    return path


@pytest.mark.parametrize("length", [3, 100_000, 1_200_002])
def test_a_header_may_hold_a_whole_text(tmp_path: Path, length: int) -> None:
    check_parquet(write(tmp_path / "a.parquet", longest=text(b"x" * length)))


def test_a_text_that_would_be_longer_than_its_column_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", longest=text(b"x" * 100_000, length=1 << 40))
    with pytest.raises(ValueError, match=r"^its headers end early$"):
        check_parquet(path)
