"""Sources as streams of bytes for the scanner: running text as it is, records each ended by byte 0xFF.

Everything streams. What cannot be read is reported with its file and byte, and the rest goes on.
"""

from __future__ import annotations

import contextlib
import json
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import IO, BinaryIO

import numpy as np
import polars as pl

from evenhand.core.digests import Json
from evenhand.core.files import max_decompressed_size
from evenhand.corpus.row_readers import CsvRows, JsonElements, holds_json_lines, read_column
from evenhand.corpus.text_blocks import (
    BLOCK,
    ByteBlock,
    RecordText,
    Report,
    join_texts,
    read_dump_articles,
    read_pieces,
)
from evenhand.store.parquet import scan_parquet
from evenhand.store.parquet_check import Page, check_parquet
from evenhand.store.table_files import PARQUET_ERRORS, first_error_line, text_sizes, to_text_table
from evenhand.store.text_sources import READ_ERRORS, Format, ReadProblem, TextSource, open_source

TEXT_COLUMNS = ("text", "content", "tweet", "tweets", "sentence", "sentences", "document", "body", "article")
"""Columns that are taken for the text where none is named, the first that is there, in any case."""
LONGEST_RECORD = 1 << 26
"""Bytes up to which a line or element of JSON, or a text of Parquet, is read: it must fit into memory."""
LONGEST_ROW = 1 << 24
"""The same for rows of CSV and pages of a dump, which take many times their size to read."""
_MOST_ROWS, _SLICE_BYTES = 1 << 16, 1 << 23
"""Rows of Parquet, and bytes of their texts, that are handed over at a time."""
_EMPTY_LINE = re.compile(rb"\n[ \t\r]*\n")
_BOM = b"\xef\xbb\xbf"


class ColumnError(Exception):
    """A table without a column that could be the text."""


def has_records(source: TextSource) -> bool:
    """Whether a source is made of records, not of running text."""
    return source.format != "text"


def read_blocks(
    source: TextSource, report: Report, *, column: str | None = None, span: tuple[int, int] | None = None
) -> Iterator[ByteBlock]:
    """The bytes of a source to be counted; a problem ends or shortens them and is reported.

    Args:
        source: The file.
        report: Takes what was wrong.
        column: The column or key of the texts, for tables.
        span: Read only this range of an unpacked file, from one start of a line to another.
    """
    try:
        unpacked, raw = open_source(source)
    except OSError as error:
        report(ReadProblem(source.path, None, f"cannot be opened: {error.strerror or error}; not counted"))
        return
    with raw, unpacked:
        try:
            yield from _READERS[source.format](unpacked, source, report, column, span)
        except READ_ERRORS as error:
            place = _place(raw)
            report(
                ReadProblem(
                    source.path,
                    place,
                    f"cannot be read on: {error or type(error).__name__}; counted up to here",
                )
            )
        except ColumnError as error:
            report(ReadProblem(source.path, 0, f"{error}; not counted"))


def _place(raw: BinaryIO) -> int | None:
    try:
        return raw.tell()
    except (OSError, ValueError):
        return None


def _text(
    file: BinaryIO, source: TextSource, report: Report, column: str | None, span: tuple[int, int] | None
) -> Iterator[ByteBlock]:
    for number, block in enumerate(read_pieces(file, span)):
        if number == 0 and (span is None or span[0] == 0):
            problem = _not_text(source, block)
            if problem:
                report(problem)
                return
            if block.startswith(_BOM):
                # Blanks, so that every byte keeps its place.
                block = b" " * len(_BOM) + block[len(_BOM) :]
        yield ByteBlock(block)


def _not_text(source: TextSource, block: bytes) -> ReadProblem | None:
    if block[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return ReadProblem(source.path, 0, "is UTF-16, not UTF-8; not counted")
    zero = block.find(b"\0")
    return ReadProblem(source.path, zero, "is not text (a zero byte); not counted") if zero >= 0 else None


def find_line_start(file: BinaryIO, place: int) -> int:
    """Where the first line begins at or after a place; the end of the file where none does."""
    if place == 0:
        return 0
    file.seek(place - 1)
    at = place - 1
    while block := file.read(BLOCK):
        newline = block.find(b"\n")
        if newline >= 0:
            return at + newline + 1
        at += len(block)
    return at


def find_document_start(file: BinaryIO, place: int) -> int:
    """Where the first document begins at or after a place, after an empty line.

    Where no empty line comes within a mebibyte, the next line: a document that long may be cut in two.
    """
    if place == 0:
        return 0
    file.seek(place - 1)
    window = file.read(BLOCK)
    # The line that holds the byte before the place may itself be the empty one.
    found = _EMPTY_LINE.search(window)
    return place - 1 + found.end() if found else find_line_start(file, place)


def has_empty_lines(data: bytes) -> bool:
    """Whether an empty line stands between two texts: then such lines end documents."""
    return _EMPTY_LINE.search(data.strip()) is not None


def holds_lines(source: TextSource) -> bool:
    """Whether JSON of a source stands one value a line, so that it can be cut at line ends."""
    try:
        file, raw = open_source(source)
        with raw, file:
            return holds_json_lines(file.read(BLOCK))
    except READ_ERRORS:
        # The reader meets the same error and reports it.
        return True


def _json(
    file: BinaryIO, source: TextSource, report: Report, column: str | None, span: tuple[int, int] | None
) -> Iterator[ByteBlock]:
    found = read_pieces(file, span)
    first = next(found, b"")
    whole = chain([first], found)
    if span is None and not holds_json_lines(first):
        yield from _json_array(whole, source, report, column)
    else:
        yield from _json_lines(whole, source, report, column, span[0] if span else 0)


def _json_array(
    found: Iterator[bytes], source: TextSource, report: Report, column: str | None
) -> Iterator[ByteBlock]:
    values, texts, size = JsonElements(found, longest=LONGEST_RECORD), list[RecordText](), 0
    try:
        for place, value, error in values:
            text = ReadProblem("", None, error) if error else _row_text(value, column, "a value")
            if isinstance(text, ReadProblem):
                report(ReadProblem(source.path, place, text.reason))
                continue
            texts.append(RecordText(place, text))
            size += len(text)
            if size >= BLOCK:
                yield from join_texts(texts)
                texts, size = [], 0
    except READ_ERRORS:
        yield from join_texts(texts)
        raise
    finally:
        if values.first_bad is not None:
            report(ReadProblem(source.path, values.first_bad, "is not UTF-8 here; such bytes separate words"))
    yield from join_texts(texts)


def _json_lines(
    found: Iterator[bytes], source: TextSource, report: Report, column: str | None, begin: int
) -> Iterator[ByteBlock]:
    for batch in _line_batches(found, begin):
        texts = []
        for place, line in batch:
            text = _json_text(line, column)
            if isinstance(text, ReadProblem):
                report(ReadProblem(source.path, place, text.reason))
            elif text is not None:
                texts.append(RecordText(place, text))
        yield from join_texts(texts)


def _line_batches(found: Iterator[bytes], begin: int) -> Iterator[list[tuple[int, bytes | None]]]:
    """Lines with the places they begin at; null stands for one that is too long."""
    begun, size = list[bytes](), 0
    for block in found:
        *ended, rest = block.split(b"\n")
        batch: list[tuple[int, bytes | None]] = []
        for part in ended:
            size += len(part)
            batch.append((begin, b"".join((*begun, part)) if size <= LONGEST_RECORD else None))
            begin, begun, size = begin + size + 1, [], 0
        size += len(rest)
        begun = [*begun, rest] if size <= LONGEST_RECORD else []
        if batch:
            yield batch
    if size:
        yield [(begin, b"".join(begun) if size <= LONGEST_RECORD else None)]


def _json_text(line: bytes | None, column: str | None) -> str | ReadProblem | None:
    if line is None:
        return ReadProblem("", None, f"a line is longer than {LONGEST_RECORD >> 20} MiB; not counted")
    if not line.strip():
        return None
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        return ReadProblem("", None, f"a line is not JSON ({error}); not counted")
    return _row_text(row, column, "a line")


def _row_text(row: Json, column: str | None, what: str) -> str | ReadProblem:
    if isinstance(row, str):
        return row
    name = _column(list(row), column) if isinstance(row, dict) else None
    text = row.get(name) if isinstance(row, dict) and name is not None else None
    return text if isinstance(text, str) else ReadProblem("", None, f"{what} has no text; not counted")


def _csv(
    file: BinaryIO, source: TextSource, report: Report, column: str | None, span: tuple[int, int] | None
) -> Iterator[ByteBlock]:
    def told(place: int, reason: str) -> None:
        report(ReadProblem(source.path, place, reason))

    def short() -> None:
        told(rows.place, f"line {rows.line} has no such cell; not counted")

    delimiter = "\t" if source.format == "tsv" else ","
    rows = CsvRows(file, delimiter=delimiter, longest=LONGEST_ROW, report=told)
    try:
        header = next(iter(rows), [])
        place = header.index(_require_column(header, column))
        for texts in read_column(rows, place, letters=BLOCK, short=short, broken=READ_ERRORS):
            yield from join_texts(texts)
    finally:
        first_bad = rows.close()
        if first_bad is not None:
            told(first_bad, "is not UTF-8 here; such bytes separate words")


def _parquet(
    file: BinaryIO, source: TextSource, report: Report, column: str | None, span: tuple[int, int] | None
) -> Iterator[ByteBlock]:
    try:
        with _on_disk(file, source) as path:
            yield from _parquet_texts(path, source, report, column)
    except PARQUET_ERRORS as error:
        report(ReadProblem(source.path, 0, f"is not Parquet ({first_error_line(error)}); not counted"))


@contextlib.contextmanager
def _on_disk(file: BinaryIO, source: TextSource) -> Iterator[str]:
    """A path to the stored bytes: Parquet is read from its end, so that what is elsewhere is copied first."""
    if not source.is_url and not source.packing:
        yield source.path
        return
    with tempfile.NamedTemporaryFile(suffix=".parquet") as copy:
        _copy(file, copy, max_decompressed_size(source.size) if source.packing else None)
        copy.flush()
        yield copy.name


def _copy(file: BinaryIO, copy: IO[bytes], most: int | None) -> None:
    """Copy a file; a packed one that would fill the disk is damage like any other."""
    while block := file.read(BLOCK):
        copy.write(block)
        if most is not None and copy.tell() > most:
            raise OSError(f"it unpacks to more than {most >> 20:,} MiB")


def _parquet_texts(path: str, source: TextSource, report: Report, column: str | None) -> Iterator[ByteBlock]:
    columns = check_parquet(path).columns
    name = _require_column(list(columns), column)
    if columns[name].is_nested:
        raise ColumnError(f"the column {name!r} holds lists or structs, not texts; name another with --text")
    table, start = scan_parquet(path).select(name), 0
    for rows in _parquet_rows(columns[name].pages):
        part = table.slice(start, rows).collect()
        sizes = text_sizes(part.to_series())
        for first, last in _cut_by_bytes(sizes):
            if sizes[first] > LONGEST_RECORD:
                reason = f"row {start + first} is longer than {LONGEST_RECORD >> 20} MiB; not counted"
                report(ReadProblem(source.path, None, reason))
                continue
            texts = enumerate(to_text_table(part[first:last]).to_series().to_list(), start + first)
            yield from join_texts([RecordText(row, text) for row, text in texts if text is not None])
        start += rows


def _parquet_rows(pages: Iterable[Page]) -> Iterator[int]:
    """How many rows to read at a time: those of pages that unpack to some megabytes, or fewer."""
    rows = size = 0
    for page in pages:
        rows, size = rows + page.values, size + page.size
        while rows >= _MOST_ROWS:
            yield _MOST_ROWS
            rows, size = rows - _MOST_ROWS, 0
        if rows and size >= _SLICE_BYTES:
            yield rows
            rows = size = 0
    if rows:
        yield rows


def _cut_by_bytes(sizes: pl.Series) -> Iterator[tuple[int, int]]:
    """Ranges of rows with some megabytes of text at most: a page may name one text many times."""
    ends = sizes.cum_sum().to_numpy()
    first = before = 0
    while first < len(ends):
        last = max(first + 1, int(np.searchsorted(ends, before + _SLICE_BYTES, side="right")))
        yield first, last
        first, before = last, int(ends[last - 1])


def _mediawiki(
    file: BinaryIO, source: TextSource, report: Report, column: str | None, span: tuple[int, int] | None
) -> Iterator[ByteBlock]:
    def told(place: int, reason: str) -> None:
        report(ReadProblem(source.path, place, reason))

    for text in read_dump_articles(read_pieces(file), longest=LONGEST_ROW, report=told):
        yield from join_texts([text])


def _require_column(names: list[str], column: str | None) -> str:
    found = _column(names, column)
    if found is None:
        wanted = repr(column) if column else f"such as {', '.join(TEXT_COLUMNS[:4])}"
        raise ColumnError(
            f"has no column {wanted} (it has {', '.join(names) or 'none'}); name one with --text"
        )
    return found


def _column(names: list[str], column: str | None) -> str | None:
    if column is not None:
        return column if column in names else None
    by_lower = {name.lower(): name for name in reversed(names)}
    return next((by_lower[name] for name in TEXT_COLUMNS if name in by_lower), None)


_Reader = Callable[
    [BinaryIO, TextSource, Report, "str | None", "tuple[int, int] | None"], Iterator[ByteBlock]
]
_READERS: Mapping[Format, _Reader] = {
    "text": _text,
    "jsonl": _json,
    "csv": _csv,
    "tsv": _csv,
    "parquet": _parquet,
    "mediawiki": _mediawiki,
}
