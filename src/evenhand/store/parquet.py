"""Parquet files: paths are taken literally, and headers are checked before reading.

Polars interprets ``*``, ``?`` and ``[`` in a path as a glob and a leading ``~`` as the home folder: a run
folder ``run?`` would be read together with ``run1``. All Parquet is read and written here, where paths are
taken literally.

Polars also trusts the counts and sizes in a file's headers and allocates that much memory: one changed byte
can abort the process without an error that could be caught. `check_parquet` parses only the headers (Thrift's
compact protocol) and rejects a file with impossible numbers like any other damage. It returns the size of
the table, so that tables that are too large are rejected before they are read.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import polars as pl

from evenhand.core.regular_files import open_regular

_MOST_FOOTER: Final = 1 << 26
"""Maximum bytes of a footer; parsing it takes twenty times as much memory."""
_MOST_HEADER: Final = 1 << 28
"""The same for the header of a page: some writers store the whole minimum and maximum text in it."""
_DEEPEST: Final = 40
_MOST_PAGE: Final = 1 << 31
"""Maximum bytes of an uncompressed page; pages usually have about a mebibyte."""
_RATIO: Final = 100_000
"""Maximum values per byte: a run of equal values takes two bytes whatever its length."""

_FIXED_SIZE, _REPEATED = 7, 2
"""The physical type with a fixed size per value, and the repetition type of a repeated field."""

_ENDS_EARLY: Final = "its headers end early"

Fields = Mapping[int, object]


def scan_parquet(*paths: Path | str) -> pl.LazyFrame:
    """The rows of the files, concatenated; read lazily."""
    # Only a path that begins with ~ is expanded to the home folder, and an absolute path never does.
    return pl.scan_parquet([Path(path).absolute() for path in paths], glob=False, hive_partitioning=False)


def read_parquet(path: Path | str, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """The rows of a file, with all of its columns or these only."""
    rows = scan_parquet(path)
    return (rows if columns is None else rows.select(columns)).collect()


def write_parquet(rows: pl.DataFrame | pl.LazyFrame, path: Path | str) -> None:
    """Write rows to a file; lazy frames are streamed."""
    (rows.sink_parquet if isinstance(rows, pl.LazyFrame) else rows.write_parquet)(Path(path).absolute())


@dataclass(slots=True)
class ParquetColumn:
    """What the headers report about a column."""

    is_nested: bool = False
    """Whether it holds lists or structs; their fields are counted together."""
    pages: list[tuple[int, int]] = field(default_factory=list)
    """The number of values on each page, and its uncompressed size in bytes."""
    dictionaries: int = 0
    """Uncompressed size of its dictionaries in bytes: each text that rows share is stored once."""

    @property
    def values(self) -> int:
        """The number of values on all pages, including nulls."""
        return sum(values for values, _ in self.pages)

    @property
    def size(self) -> int:
        """Uncompressed size of all pages in bytes."""
        return self.dictionaries + sum(size for _, size in self.pages)


class ParquetHeaders(NamedTuple):
    """What the headers report about a table."""

    rows: int
    columns: dict[str, ParquetColumn]


def check_parquet(path: Path | str) -> ParquetHeaders:
    """The headers of a file; raises ValueError if they contradict its size or each other."""
    size = os.path.getsize(path)
    with open_regular(path) as file:
        file.seek(max(0, size - 8))
        length, mark = struct.unpack("<I4s", file.read(8).rjust(8))
        if mark != b"PAR1":
            raise ValueError("it does not end with the Parquet magic number")
        if length > min(size - 12, _MOST_FOOTER):
            raise ValueError(f"its footer claims {length:,} bytes")
        footer = _Compact(file, size - 8 - length, length).struct()
        columns: dict[str, ParquetColumn] = {}
        leaves = list(_leaves(_list(footer.get(2)), columns))
        stored = 0
        for group in _list(footer.get(4)):
            rows, chunks = _number(_fields(group), 3), _list(_fields(group).get(1))
            if len(chunks) != len(leaves):
                raise ValueError(f"a row group has {len(chunks):,} columns, the table {len(leaves):,}")
            for (name, width), chunk in zip(leaves, chunks, strict=True):
                _read_chunk(file, _fields(_fields(chunk).get(3)), rows, size, width, columns[name])
            stored += rows
    return ParquetHeaders(max(stored, _number(footer, 3)), columns)


def _leaves(elements: list[object], columns: dict[str, ParquetColumn]) -> Iterator[tuple[str, int]]:
    """The stored columns in order, with each field of lists and structs; the first element is the table.

    Each comes with the name of its top-level column, which is added to ``columns``, and the bytes per value,
    or 0 if sizes vary.
    """
    column, pending = "", 0
    for element in elements[1:]:
        fields = _fields(element)
        children = _number(fields, 5)
        if not pending:
            pending = 1
            name = fields.get(4)
            column = name.decode("utf-8", "replace") if isinstance(name, bytes) else ""
            if column in columns:
                raise ValueError(f"two columns are named {column[:40]!r}")
            columns[column] = ParquetColumn(is_nested=bool(children) or fields.get(3) == _REPEATED)
        pending += children - 1
        if not children:
            yield column, _number(fields, 2) if fields.get(1) == _FIXED_SIZE else 0


def _read_chunk(
    file: BinaryIO, chunk: Fields, rows: int, size: int, width: int, column: ParquetColumn
) -> None:
    """Add the pages of a column chunk; they must lie within the file and hold as many values as the chunk."""
    values, stored = _number(chunk, 5), _number(chunk, 7)
    places = [place for place in (_number(chunk, 9), _number(chunk, 11)) if place]
    start = min(places, default=0)
    if start + stored > size or rows > _RATIO * max(size, 1) or values > _RATIO * max(size, 1):
        raise ValueError(f"a column of {values:,} values does not fit into the file")
    if rows > values:
        raise ValueError(f"a column has {values:,} values for {rows:,} rows")
    place, remaining = start, values
    while remaining > 0:
        page = _Compact(file, place, min(start + stored - place, _MOST_HEADER)).struct()
        packed, unpacked = _number(page, 3), _number(page, 2)
        place = file.tell() + packed
        if place > start + stored or unpacked > _MOST_PAGE:
            raise ValueError(f"a page of {packed:,} bytes does not fit into its column")
        if count := _values(page, unpacked):
            column.pages.append((count, max(unpacked, count * width)))
        else:
            column.dictionaries += unpacked
        remaining -= count
    if remaining:
        raise ValueError("the pages of a column do not hold as many values as the column")


def _values(page: Fields, unpacked: int) -> int:
    """The number of values of the column that a page holds."""
    if page.get(7) is not None:
        if _number(_fields(page.get(7)), 1) > 8 * unpacked + 8:
            raise ValueError("a dictionary has more entries than bits")
        return 0
    header = _fields(page.get(5) or page.get(8))
    count = _number(header, 1)
    if page.get(8) is not None:
        nulls, rows = _number(header, 2), _number(header, 3)
        levels = _number(header, 5) + _number(header, 6)
        if nulls > count or rows > count or levels > _number(page, 3):
            raise ValueError("a page has more nulls than values")
    if count == 0:
        raise ValueError("a page is empty")
    return count


def _number(fields: Fields, key: int) -> int:
    value = fields.get(key, 0)
    if not isinstance(value, int) or not 0 <= value < 1 << 62:
        raise ValueError(f"a count is {str(value)[:40]}")
    return value


def _fields(value: object) -> Fields:
    if not isinstance(value, Mapping):
        raise ValueError("a header is missing")
    return value


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


class _Compact:
    """A parser for Thrift's compact protocol, as far as headers need it; reads at most ``room`` bytes."""

    def __init__(self, file: BinaryIO, place: int, room: int) -> None:
        file.seek(place)
        self._file, self._room, self._depth = file, room, 0

    def struct(self) -> Fields:
        """The fields of a struct, by number."""
        fields: dict[int, object] = {}
        number = 0
        self._depth += 1
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._zigzag()
            fields[number] = self._value(head & 15)
        self._depth -= 1
        return fields

    def _value(self, kind: int) -> object:
        if self._depth > _DEEPEST:
            raise ValueError("its headers are nested too deeply")
        match kind:
            case 1 | 2:
                return kind == 1
            case 3:
                return self._byte()
            case 4 | 5 | 6:
                return self._zigzag()
            case 7 | 8:
                return self._bytes(8 if kind == 7 else self._varint())
            case 9 | 10:
                head = self._byte()
                return self._items(self._varint() if head >> 4 == 15 else head >> 4, head & 15)
            case 11:
                count = self._varint()
                kinds = self._byte() if count else 0
                return self._items(count, kinds >> 4, kinds & 15)
            case 12:
                return self.struct()
            case _:
                raise ValueError("its headers are invalid")

    def _items(self, count: int, *kinds: int) -> list[object]:
        """The values of a list, or the alternating keys and values of a map."""
        if count > self._room:
            raise ValueError(_ENDS_EARLY)
        self._depth += 1
        # Inside a list a boolean is a separate byte, like a number of kind 3.
        read = [3 if kind in (1, 2) else kind for kind in kinds]
        items = [self._value(kind) for _ in range(count) for kind in read]
        self._depth -= 1
        return items

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _varint(self) -> int:
        value = shift = 0
        while (byte := self._byte()) > 127:
            value |= (byte & 127) << shift
            shift += 7
            if shift > 63:
                raise ValueError("its headers hold an endless number")
        return value | byte << shift

    def _bytes(self, size: int) -> bytes:
        data = self._file.read(size) if size <= self._room else b""
        if len(data) < size:
            raise ValueError(_ENDS_EARLY)
        self._room -= size
        return data

    def _byte(self) -> int:
        return self._bytes(1)[0]
