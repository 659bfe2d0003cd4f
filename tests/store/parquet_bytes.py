"""Parquet written byte by byte (Thrift's compact protocol), as other writers and attackers write it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

Field = tuple[int, bytes]
MAGIC = b"PAR1"


def varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)


def i32(value: int) -> Field:
    return 5, varint(2 * value)


def i64(value: int) -> Field:
    return 6, varint(2 * value)


def text(value: bytes, length: int | None = None) -> Field:
    return 8, varint(len(value) if length is None else length) + value


def several(values: Sequence[Field]) -> Field:
    size = bytes([len(values) << 4 | values[0][0]]) if len(values) < 15 else bytes([0xF0 | values[0][0]])
    return 9, size + (varint(len(values)) if len(values) >= 15 else b"") + b"".join(one for _, one in values)


def struct(fields: dict[int, Field]) -> Field:
    written, last = b"", 0
    for key, (kind, value) in fields.items():
        written += bytes([key - last << 4 | kind]) + value
        last = key
    return 12, written + b"\0"


def repeated(count: int, value: int) -> bytes:
    """A run of equal values: a few bytes whatever its length."""
    return varint(count << 1) + bytes([value])


def leaf(name: bytes) -> Field:
    """A column of texts without missing ones, as the schema has it."""
    return struct({1: i32(6), 3: i32(0), 4: text(name), 6: i32(0)})


def write_parquet(
    path: Path, schema: Sequence[Field], chunks: Sequence[Field], body: bytes, rows: int
) -> Path:
    """A file of one group of rows; the body begins at byte 4."""
    group = struct({1: several(chunks), 2: i64(len(body)), 3: i64(rows)})
    _, footer = struct({1: i32(1), 2: several(schema), 3: i64(rows), 4: several([group])})
    path.write_bytes(MAGIC + body + footer + len(footer).to_bytes(4, "little") + MAGIC)
    return path


def write_repeated(path: Path, word: bytes, *, rows: int, columns: int = 1, in_list: bool = False) -> Path:
    """Columns ``text``, ``text1`` ... that hold one text in every row, or in one list of the first row.

    The text stands in a dictionary, and a run says how often it occurs: the file stays small.
    """
    schema, chunks, body = [struct({4: text(b"table"), 5: i32(columns)})], [], b""
    for number in range(columns):
        name = b"text%d" % number if number else b"text"
        levels, names = b"", [text(name)]
        if in_list:
            starts, there = repeated(1, 0) + repeated(rows - 1, 1), repeated(rows, 1)
            levels = b"".join(len(part).to_bytes(4, "little") + part for part in (starts, there))
            names += [text(b"list"), text(b"element")]
            schema.append(struct({3: i32(0), 4: text(name), 5: i32(1), 6: i32(3)}))
            schema += [struct({3: i32(2), 4: text(b"list"), 5: i32(1)}), leaf(b"element")]
        else:
            schema.append(leaf(name))
        entry = len(word).to_bytes(4, "little") + word
        shared = struct(
            {1: i32(2), 2: i32(len(entry)), 3: i32(len(entry)), 7: struct({1: i32(1), 2: i32(0)})}
        )
        values = levels + b"\1" + repeated(rows, 0)
        about = struct({1: i32(rows), 2: i32(8), 3: i32(3), 4: i32(3)})
        page = struct({1: i32(0), 2: i32(len(values)), 3: i32(len(values)), 5: about})
        start = len(MAGIC) + len(body)
        pages = start + len(shared[1] + entry)
        body += shared[1] + entry + page[1] + values
        size = i64(len(MAGIC) + len(body) - start)
        known = {
            1: i32(6),
            2: several([i32(8)]),
            3: several(names),
            4: i32(0),
            5: i64(rows),
            6: size,
            7: size,
        }
        chunks.append(struct({2: i64(start), 3: struct({**known, 9: i64(pages), 11: i64(start)})}))
    return write_parquet(path, schema, chunks, body, 1 if in_list else rows)
