"""Sources as streams of bytes for the scanner: running text unchanged, records each ended by byte 0xFF.

Everything streams. Unreadable input is reported with its file and byte, and reading continues after it.
"""

from __future__ import annotations

import contextlib
import re
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import BinaryIO, NamedTuple, TypeVar

import numpy as np
import polars as pl

from evenhand.core.files import max_decompressed_size
from evenhand.corpus.record_readers import (
    RECORD_SIZE,
    CsvRows,
    JsonElements,
    JsonValue,
    RecordText,
    holds_json_lines,
    read_dump_articles,
    read_json_lines,
)
from evenhand.store.parquet import check_parquet, scan_parquet
from evenhand.store.table_files import PARQUET_ERRORS, first_error_line, text_sizes, to_text_table
from evenhand.store.text_sources import READ_ERRORS, Format, ReadProblem, TextSource, open_source

BLOCK = 1 << 20
"""Bytes that readers pass on at a time."""
_RECORD_END = b"\xff"
TEXT_COLUMNS = ("text", "content", "tweet", "tweets", "sentence", "sentences", "document", "body", "article")
"""Columns that may hold the text if none is named: the first one present is used, ignoring case."""
LONGEST_RECORD = 1 << 26
"""Maximum bytes of a line or element of JSON, or of a text of Parquet: each must fit into memory."""
LONGEST_ROW = 1 << 24
"""The same for rows of CSV and pages of a dump, which take many times their size to read."""
_MOST_ROWS, _SLICE_BYTES = 1 << 16, 1 << 23
"""Rows of Parquet, and bytes of their texts, that are read at a time."""
_EMPTY_LINE = re.compile(rb"\n[ \t\r]*\n")
_BOM = b"\xef\xbb\xbf"

Report = Callable[[ReadProblem], None]
Item = TypeVar("Item")
Result = TypeVar("Result")


class ByteBlock(NamedTuple):
    """Some bytes of a source: running text, or whole records, each ended by byte 0xFF."""

    data: bytes
    places: Sequence[int] = ()
    """Where each record begins: its byte in the unpacked file, or in Parquet its row number from 0."""


class ColumnError(Exception):
    """A table has no column that could be the text."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """A source that is being read."""

    source: TextSource
    report: Report
    column: str | None
    span: tuple[int, int] | None

    def note(self, place: int | None, reason: str) -> None:
        """Report a problem at a byte."""
        self.report(ReadProblem(self.source.path, place, reason))

    def find_column(self, names: list[str]) -> str | None:
        """The column of the texts: the one named, else the first usual one; null if there is none."""
        if self.column is not None:
            return self.column if self.column in names else None
        by_lower = {name.lower(): name for name in reversed(names)}
        return next((by_lower[name] for name in TEXT_COLUMNS if name in by_lower), None)

    def require_column(self, names: list[str]) -> str:
        """The same; raises an error if there is none."""
        column = self.find_column(names)
        if column is not None:
            return column
        if not names:
            raise ColumnError("is empty")
        expected = repr(self.column) if self.column else f"such as {', '.join(TEXT_COLUMNS[:4])}"
        raise ColumnError(f"has no column {expected} (it has {', '.join(names)}); name one with --text")


def read_blocks(
    source: TextSource, report: Report, *, column: str | None = None, span: tuple[int, int] | None = None
) -> Iterator[ByteBlock]:
    """The bytes of a source to count; a problem ends or shortens them and is reported.

    ``span`` is the range of an unpacked file to read, from the start of a line to the start of another.
    """
    reading = _Reading(source, report, column, span)
    try:
        unpacked, raw = open_source(source)
    except OSError as error:
        reading.note(None, f"cannot be opened: {error.strerror or error}; not counted")
        return
    with raw, unpacked:
        try:
            if source.format != "text":
                records = _RECORDS[source.format](unpacked, reading)
                yield from map(join_texts, fill_blocks(records, lambda record: len(record[1]) + RECORD_SIZE))
            else:
                yield from _read_text(unpacked, reading)
        except READ_ERRORS as error:
            place = None
            with contextlib.suppress(OSError, ValueError):
                place = raw.tell()
            reading.note(place, f"reading failed: {error or type(error).__name__}; counted up to here")
        except ColumnError as error:
            reading.note(0, f"{error}; not counted")


def join_texts(texts: Sequence[RecordText]) -> ByteBlock:
    """The texts as one block."""
    data = b"".join(_encode(text) + _RECORD_END for _, text in texts)
    return ByteBlock(data, [place for place, _ in texts])


def read_pieces(file: BinaryIO, span: tuple[int, int] | None = None) -> Iterator[bytes]:
    """The bytes of a file, or of a range of it, in pieces."""
    if span is None:
        # `read` would discard what it has gathered when a packed file turns out to be truncated.
        read = partial(getattr(file, "read1", file.read), BLOCK)
        yield from map(b"".join, fill_blocks(iter(read, b""), len))
        return
    file.seek(span[0])
    left = span[1] - span[0]
    while left > 0 and (block := file.read(min(BLOCK, left))):
        left -= len(block)
        yield block


def fill_blocks(items: Iterable[Item], size_of: Callable[[Item], int]) -> Iterator[list[Item]]:
    """Blocks of items of about a mebibyte; items before an error are yielded before it is raised."""
    block, size = list[Item](), 0
    try:
        for item in items:
            block.append(item)
            size += size_of(item)
            if size >= BLOCK:
                yield block
                block, size = [], 0
    except READ_ERRORS:
        if block:
            yield block
        raise
    if block:
        yield block


def _encode(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair, from damaged JSON; a question mark would end a sentence.
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace").encode()


def _read_text(file: BinaryIO, reading: _Reading) -> Iterator[ByteBlock]:
    for number, block in enumerate(read_pieces(file, reading.span)):
        if number == 0 and (reading.span is None or reading.span[0] == 0):
            if block[:2] in (b"\xff\xfe", b"\xfe\xff"):
                reading.note(0, "is UTF-16, not UTF-8; not counted")
                return
            if (zero := block.find(b"\0")) >= 0:
                reading.note(zero, "is not text (a zero byte); not counted")
                return
            if block.startswith(_BOM):
                # Replace it with blanks, so that every byte keeps its place.
                block = b" " * len(_BOM) + block[len(_BOM) :]
        yield ByteBlock(block)


def find_line_start(file: BinaryIO, place: int) -> int:
    """Where the first line at or after a place begins; the end of the file if none does."""
    if place == 0:
        return 0
    file.seek(place - 1)
    # In pieces: a line may have any length.
    while (part := file.readline(BLOCK)) and not part.endswith(b"\n"):
        pass
    return file.tell()


def find_document_start(file: BinaryIO, place: int) -> int:
    """Where the first document at or after a place begins: after an empty line.

    Without an empty line within a mebibyte, the next line: a document that long may be cut in two.
    """
    if place == 0:
        return 0
    file.seek(place - 1)
    window = file.read(BLOCK)
    # The line that holds the byte before the place may itself be the empty one.
    empty = _EMPTY_LINE.search(window)
    return place - 1 + empty.end() if empty else find_line_start(file, place)


def has_empty_lines(data: bytes) -> bool:
    """Whether empty lines separate texts; if so, they end documents."""
    return _EMPTY_LINE.search(data.strip()) is not None


def peek(source: TextSource, look: Callable[[BinaryIO], Result], *, default: Result) -> Result:
    """What is learned from a source before it is read; the default if it cannot be opened or read."""
    try:
        file, raw = open_source(source)
        with raw, file:
            return look(file)
    except READ_ERRORS:
        # The reader meets the same error and reports it.
        return default


def _read_json(file: BinaryIO, reading: _Reading) -> Iterator[RecordText]:
    pieces = read_pieces(file, reading.span)
    first = next(pieces, b"")
    pieces, start = chain([first], pieces), reading.span[0] if reading.span else 0
    is_lines = reading.span is not None or holds_json_lines(first)
    values: Iterable[JsonValue] = (
        read_json_lines(pieces, place=start, longest=LONGEST_RECORD)
        if is_lines
        else JsonElements(pieces, longest=LONGEST_RECORD, report=reading.note)
    )
    for place, value, error in values:
        if isinstance(value, dict) and (name := reading.find_column(list(value))) is not None:
            value = value[name]
        if isinstance(value, str):
            yield place, value
        else:
            reading.note(place, error or f"a {'line' if is_lines else 'value'} has no text; not counted")


def _read_csv(file: BinaryIO, reading: _Reading) -> Iterator[RecordText]:
    delimiter = "\t" if reading.source.format == "tsv" else ","
    reader = CsvRows(file, delimiter=delimiter, longest=LONGEST_ROW, report=reading.note)
    with contextlib.closing(iter(reader)) as rows:
        header = next((cells for _, cells in rows), [])
        number = header.index(reading.require_column(header))
        for line, cells in rows:
            if number < len(cells):
                yield line.place, cells[number]
            elif cells:
                reading.note(line.place, f"line {line.number} has no such cell; not counted")


def _read_parquet(file: BinaryIO, reading: _Reading) -> Iterator[RecordText]:
    try:
        with _on_disk(file, reading.source) as path:
            yield from _read_parquet_texts(path, reading)
    except PARQUET_ERRORS as error:
        reading.note(0, f"is not Parquet ({first_error_line(error)}); not counted")


@contextlib.contextmanager
def _on_disk(file: BinaryIO, source: TextSource) -> Iterator[str]:
    """A path to the stored bytes: Parquet is read from its end, so remote and packed files are copied."""
    if not source.is_url and not source.packing:
        yield source.path
        return
    with tempfile.NamedTemporaryFile(suffix=".parquet") as copy:
        most = max_decompressed_size(source.size) if source.packing else sys.maxsize
        while block := file.read(BLOCK):
            copy.write(block)
            # Treat a packed file that would fill the disk like any other damage.
            if copy.tell() > most:
                raise OSError(f"it unpacks to more than {most >> 20:,} MiB")
        copy.flush()
        yield copy.name


def _read_parquet_texts(path: str, reading: _Reading) -> Iterator[RecordText]:
    columns = check_parquet(path).columns
    name = reading.require_column(list(columns))
    if columns[name].is_nested:
        raise ColumnError(f"the column {name!r} holds lists or structs, not texts; name another with --text")
    table, start = scan_parquet(path).select(name), 0
    for rows in _parquet_rows(columns[name].pages):
        part = table.slice(start, rows).collect()
        sizes = text_sizes(part.to_series())
        for first, last in _cut_by_bytes(sizes):
            if sizes[first] > LONGEST_RECORD:
                size = LONGEST_RECORD >> 20
                reading.note(None, f"row {start + first} is longer than {size} MiB; not counted")
                continue
            texts = enumerate(to_text_table(part[first:last]).to_series().to_list(), start + first)
            yield from (record for record in texts if record[1] is not None)
        start += rows


def _parquet_rows(pages: Sequence[tuple[int, int]]) -> Iterator[int]:
    """The numbers of rows to read at a time: pages that unpack to a few megabytes, or fewer rows."""
    for first, last in _cut_by_bytes([size for _, size in pages]):
        rows = sum(values for values, _ in pages[first:last])
        yield from (min(_MOST_ROWS, rows - start) for start in range(0, rows, _MOST_ROWS))


def _cut_by_bytes(sizes: Sequence[int] | pl.Series) -> Iterator[tuple[int, int]]:
    """Ranges of pages or rows with a few megabytes of text: a page may repeat one text many times."""
    ends = np.cumsum(sizes)
    first = before = 0
    while first < len(ends):
        last = max(first + 1, int(np.searchsorted(ends, before + _SLICE_BYTES, side="right")))
        yield first, last
        first, before = last, int(ends[last - 1])


_RECORDS: Mapping[Format, Callable[[BinaryIO, _Reading], Iterator[RecordText]]] = {
    "jsonl": _read_json,
    "csv": _read_csv,
    "tsv": _read_csv,
    "parquet": _read_parquet,
    "mediawiki": lambda file, reading: read_dump_articles(
        read_pieces(file), longest=LONGEST_ROW, report=reading.note
    ),
}


def prefetch_blocks(
    stream: Iterator[ByteBlock], *, depth: int, clock: dict[str, float]
) -> Iterator[ByteBlock]:
    """The stream, read in another thread, so that bytes are unpacked while earlier ones are counted.

    At depth 0 it is read in this thread. The seconds of ``reading`` and ``waiting`` are added to the clock.
    """

    def read_block() -> ByteBlock | None:
        before = time.perf_counter()
        block = next(stream, None)
        clock["reading"] += time.perf_counter() - before
        return block

    if not depth:
        yield from iter(read_block, None)
        return
    pool = ThreadPoolExecutor(1, thread_name_prefix="read")
    try:
        jobs = deque(pool.submit(read_block) for _ in range(depth))
        while True:
            before = time.perf_counter()
            block = jobs.popleft().result()
            clock["waiting"] += time.perf_counter() - before
            if block is None:
                return
            jobs.append(pool.submit(read_block))
            yield block
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
