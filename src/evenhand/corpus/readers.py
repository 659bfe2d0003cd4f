"""Sources as streams of bytes for the scanner: running text as it is, records each ended by byte 0xFF.

Everything streams. What cannot be read is reported with its file and byte, and the rest goes on.
"""

from __future__ import annotations

import contextlib
import csv
import json
import re
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from lzma import LZMAError
from typing import BinaryIO

import polars as pl

from evenhand.corpus.csv_rows import CsvRows, cells
from evenhand.corpus.sources import Format, Source, opened
from evenhand.corpus.terms import Problem
from evenhand.corpus.wikitext import articles

BLOCK = 1 << 20
"""Bytes handed over at a time."""
TEXT_COLUMNS = ("text", "content", "tweet", "tweets", "sentence", "sentences", "document", "body", "article")
"""Columns that are taken for the text where none is named, the first that is there, in any case."""
RECORD_END = b"\xff"
LONGEST_RECORD = 1 << 26
"""Bytes up to which the line of a table is read: one that does not end must not fill the memory."""
_FIRST_ROWS, _MOST_ROWS = 16, 1 << 16
_SLICE_BYTES = 1 << 23
_EMPTY_LINE = re.compile(rb"\n[ \t\r]*\n")

Report = Callable[[Problem], None]
READ_ERRORS = (OSError, EOFError, LZMAError, zlib.error, RuntimeError)
"""What damaged or vanished files raise; zstandard's error is a RuntimeError."""


class ColumnError(Exception):
    """A table without a column that could be the text."""


def is_records(source: Source) -> bool:
    """Whether a source is made of records, not of running text."""
    return source.format != "text"


def blocks(
    source: Source, report: Report, *, column: str | None = None, span: tuple[int, int] | None = None
) -> Iterator[bytes]:
    """The bytes of a source to be counted; a problem ends or shortens them and is reported.

    Args:
        source: The file.
        report: Takes what was wrong.
        column: The column or key of the texts, for tables.
        span: Read only this range of an unpacked file, from one start of a line to another.
    """
    try:
        unpacked, raw = opened(source)
    except OSError as error:
        report(Problem(source.path, None, f"cannot be opened: {error.strerror or error}; not counted"))
        return
    with raw, unpacked:
        try:
            yield from _READERS[source.format](unpacked, source, report, column, span)
        except READ_ERRORS as error:
            place = _place(raw)
            report(
                Problem(
                    source.path,
                    place,
                    f"cannot be read on: {error or type(error).__name__}; counted up to here",
                )
            )
        except ColumnError as error:
            report(Problem(source.path, 0, f"{error}; not counted"))


def _place(raw: BinaryIO) -> int | None:
    try:
        return raw.tell()
    except (OSError, ValueError):
        return None


def _text(
    file: BinaryIO, source: Source, report: Report, column: str | None, span: tuple[int, int] | None
) -> Iterator[bytes]:
    for number, block in enumerate(_pieces(file, span)):
        if number == 0 and (span is None or span[0] == 0):
            problem = _not_text(source, block)
            if problem:
                report(problem)
                return
            block = block.removeprefix(b"\xef\xbb\xbf")
        yield block


def _not_text(source: Source, block: bytes) -> Problem | None:
    if block[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return Problem(source.path, 0, "is UTF-16, not UTF-8; not counted")
    zero = block.find(b"\0")
    return Problem(source.path, zero, "is not text (a zero byte); not counted") if zero >= 0 else None


def line_start(file: BinaryIO, place: int) -> int:
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


def document_start(file: BinaryIO, place: int) -> int:
    """Where the first document begins at or after a place, after an empty line.

    Where no empty line comes within a mebibyte, the next line: a document that long may be cut in two.
    """
    if place == 0:
        return 0
    file.seek(place - 1)
    window = file.read(BLOCK)
    # The line that holds the byte before the place may itself be the empty one.
    found = _EMPTY_LINE.search(window)
    return place - 1 + found.end() if found else line_start(file, place)


def has_empty_lines(data: bytes) -> bool:
    """Whether an empty line stands between two texts: then such lines end documents."""
    return _EMPTY_LINE.search(data.strip()) is not None


def _pieces(file: BinaryIO, span: tuple[int, int] | None) -> Iterator[bytes]:
    if span is None:
        yield from _until_it_breaks(file)
        return
    file.seek(span[0])
    left = span[1] - span[0]
    while left > 0 and (block := file.read(min(BLOCK, left))):
        left -= len(block)
        yield block


def _until_it_breaks(file: BinaryIO) -> Iterator[bytes]:
    """Blocks of a file; what was unpacked before an error is given before the error is."""
    parts: list[bytes] = []
    size = 0
    # `read` would throw away what it had gathered when a packed file turns out to be cut short.
    read = getattr(file, "read1", file.read)
    try:
        while part := read(BLOCK):
            parts.append(part)
            size += len(part)
            if size >= BLOCK:
                yield b"".join(parts)
                parts, size = [], 0
    except READ_ERRORS:
        if parts:
            yield b"".join(parts)
        raise
    if parts:
        yield b"".join(parts)


def _jsonl(
    file: BinaryIO, source: Source, report: Report, column: str | None, span: tuple[int, int] | None
) -> Iterator[bytes]:
    for batch in _line_batches(file, span):
        texts = []
        for place, line in batch:
            text = _json_text(line, column)
            if isinstance(text, Problem):
                report(Problem(source.path, place, text.reason))
            elif text is not None:
                texts.append(text)
        yield from _joined(texts)


def _line_batches(file: BinaryIO, span: tuple[int, int] | None) -> Iterator[list[tuple[int, bytes | None]]]:
    """Lines with the places they begin at; null stands for one that is too long."""
    begin, begun, size = span[0] if span else 0, list[bytes](), 0
    for block in _pieces(file, span):
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


def _json_text(line: bytes | None, column: str | None) -> str | Problem | None:
    if line is None:
        return Problem("", None, f"a line is longer than {LONGEST_RECORD >> 20} MiB; not counted")
    if not line.strip():
        return None
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        return Problem("", None, f"a line is not JSON ({error}); not counted")
    if isinstance(row, str):
        return row
    name = _column(list(row), column) if isinstance(row, dict) else None
    text = row.get(name) if name is not None else None
    return text if isinstance(text, str) else Problem("", None, "a line has no text; not counted")


def _csv(
    file: BinaryIO, source: Source, report: Report, column: str | None, span: tuple[int, int] | None
) -> Iterator[bytes]:
    rows = CsvRows(file, delimiter="\t" if source.format == "tsv" else ",", longest=LONGEST_RECORD)

    def report_short_row() -> None:
        report(Problem(source.path, rows.place, f"line {rows.line} has no such cell; not counted"))

    try:
        header = next(iter(rows), [])
        place = header.index(_required(header, column))
        broken = (csv.Error, *READ_ERRORS)
        for texts in cells(rows, place, letters=BLOCK, short=report_short_row, broken=broken):
            yield from _joined(texts)
    except csv.Error as error:
        reason = f"line {rows.line + 1} is not CSV ({error}); counted up to here"
        report(Problem(source.path, rows.place, reason))
    finally:
        first_bad = rows.close()
        if first_bad is not None:
            report(Problem(source.path, first_bad, "is not UTF-8 here; such bytes separate words"))


def _parquet(
    file: BinaryIO, source: Source, report: Report, column: str | None, span: tuple[int, int] | None
) -> Iterator[bytes]:
    try:
        with _on_disk(file, source) as path:
            yield from _parquet_texts(path, column)
    except pl.exceptions.PolarsError as error:
        report(Problem(source.path, 0, f"is not Parquet ({str(error).splitlines()[0]}); not counted"))


@contextlib.contextmanager
def _on_disk(file: BinaryIO, source: Source) -> Iterator[str]:
    """A path to the stored bytes: Parquet is read from its end, so that what is elsewhere is copied first."""
    if not source.is_url and not source.packing:
        yield source.path
        return
    with tempfile.NamedTemporaryFile(suffix=".parquet") as copy:
        shutil.copyfileobj(file, copy, BLOCK)
        copy.flush()
        yield copy.name


def _parquet_texts(path: str, column: str | None) -> Iterator[bytes]:
    table = pl.scan_parquet(path, glob=False)
    name = _required(table.collect_schema().names(), column)
    height = int(table.select(pl.len()).collect().item())
    start, rows = 0, _FIRST_ROWS
    while start < height:
        part = table.select(pl.col(name).cast(pl.String)).slice(start, rows).collect().to_series()
        yield from _joined(part.drop_nulls().to_list())
        start += rows
        size = int(part.str.len_bytes().sum())
        # Rows may be tweets or books: as many at a time as fill some megabytes, if the next are like these.
        rows = max(1, min(_MOST_ROWS, 16 * rows, _SLICE_BYTES * rows // max(size, 1)))


def _mediawiki(
    file: BinaryIO, source: Source, report: Report, column: str | None, span: tuple[int, int] | None
) -> Iterator[bytes]:
    from xml.etree.ElementTree import ParseError

    try:
        for text in articles(file):
            yield from _joined([text])
    except ParseError as error:
        line, place = error.position
        report(Problem(source.path, None, f"line {line}, column {place} is not XML; counted up to here"))


def _joined(texts: list[str]) -> Iterator[bytes]:
    if texts:
        yield b"".join(_encoded(text) + RECORD_END for text in texts)


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair, as damaged JSON has it; a question mark would end a sentence.
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace").encode()


def _required(names: list[str], column: str | None) -> str:
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


_Reader = Callable[[BinaryIO, Source, Report, "str | None", "tuple[int, int] | None"], Iterator[bytes]]
_READERS: Mapping[Format, _Reader] = {
    "text": _text,
    "jsonl": _jsonl,
    "csv": _csv,
    "tsv": _csv,
    "parquet": _parquet,
    "mediawiki": _mediawiki,
}
