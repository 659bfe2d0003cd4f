"""Rows of CSV and TSV with the places they begin at, as long as the file can be read.

A quote that is never closed would swallow the rest of the file. It is noticed where the file ends, where
something else than a separator follows the quote that seems to close it some lines on, or where the row
becomes too long; then the line that holds it is taken as it stands, and those after it are read again.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from evenhand.corpus.records import Text, utf8_size

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_BUFFER = 1 << 20
_CELL = 64
"""What a cell or line takes beside its letters."""


_LINE_ENDS = ("\n", "\r")


class _Line(NamedTuple):
    number: int
    place: int
    text: str


class _LongError(Exception):
    """A row goes on for longer than a row may."""


class CsvRows:
    """The rows of a file, its header first.

    Args:
        file: Unpacked bytes; closed by who opened it.
        delimiter: What separates cells.
        longest: Letters a line may have, and a row that goes over lines.
        report: Takes the byte and what is wrong there.
    """

    def __init__(
        self, file: BinaryIO, *, delimiter: str, longest: int, report: Callable[[int, str], None]
    ) -> None:
        self._checked = _Utf8Check(file)
        buffered = io.BufferedReader(self._checked, _BUFFER)
        self._text = io.TextIOWrapper(buffered, encoding="utf-8", errors="surrogateescape", newline="")
        self._delimiter, self._longest, self._report = delimiter, longest, report
        self._lines = self._read_lines()
        self._again: list[_Line] = []
        """Lines to be read once more, the last one first."""
        self._row: list[_Line] = []
        """The lines of the row that is being read."""
        self.place, self.line = 0, 0
        """The byte at which the last row begins, and the number of that line."""
        csv.field_size_limit(max(csv.field_size_limit(), 2 * longest))

    def __iter__(self) -> Iterator[list[str]]:
        while True:
            rows = csv.reader(self._of_rows(), delimiter=self._delimiter, strict=True)
            try:
                for row in rows:
                    self.line, self.place = self._row[0].number, self._row[0].place
                    self._row.clear()
                    yield row
            except (csv.Error, _LongError):
                if self._row:
                    yield self._mended()
                continue
            return

    def close(self) -> int | None:
        """Let go of the file; the byte where it first is not UTF-8."""
        self._text.detach()
        return self._checked.first_bad

    def _mended(self) -> list[str]:
        """The row of a line that is not CSV."""
        first, *others = self._row
        self._row.clear()
        self.line, self.place = first.number, first.place
        if not others:
            # Letters after a closing quote, as many programs write them, harm nothing but themselves.
            loose = csv.reader([first.text, ""], delimiter=self._delimiter)
            row = next(loose, [])
            if loose.line_num == 1:
                return row
        self._again += reversed(others)
        reason = "opens a quote that is not closed, or not as CSV does; the line is taken as it stands"
        self._report(first.place, f"line {first.number} {reason}")
        return first.text.rstrip("\r\n").split(self._delimiter)

    def _of_rows(self) -> Iterator[str]:
        letters = 0
        while (line := self._again.pop() if self._again else next(self._lines, None)) is not None:
            letters = len(line.text) + _CELL + (letters if self._row else 0)
            if self._row and letters > self._longest:
                self._again.append(line)
                raise _LongError
            self._row.append(line)
            yield line.text

    def _read_lines(self) -> Iterator[_Line]:
        number, place = 0, 0
        while text := self._text.readline(self._longest):
            number += 1
            size = utf8_size(text)
            if len(text) == self._longest and not text.endswith(_LINE_ENDS):
                size += self._skip_line()
                self._report(place, f"line {number} is longer than {self._longest >> 20} MiB; not counted")
            else:
                yield _Line(number, place, _readable(text.removeprefix("\ufeff") if not place else text))
            place += size

    def _skip_line(self) -> int:
        size = 0
        while part := self._text.readline(self._longest):
            size += utf8_size(part)
            if part.endswith(_LINE_ENDS):
                break
        return size


def cells(
    rows: CsvRows, place: int, *, letters: int, short: Callable[[], None], broken: tuple[type[Exception], ...]
) -> Iterator[list[Text]]:
    """The cells of one column, about so many letters at a time; those before an error come before it."""
    found, size = list[Text](), 0
    try:
        for row in rows:
            if place < len(row):
                found.append(Text(rows.place, row[place]))
                size += len(row[place]) + _CELL
            elif row:
                short()
            if size >= letters:
                yield found
                found, size = [], 0
    except broken:
        yield found
        raise
    yield found


def _readable(text: str) -> str:
    """The text with what is not UTF-8 shown as such."""
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


class _Utf8Check(io.RawIOBase):
    """A stream that passes its bytes on and notes where they first are not UTF-8."""

    def __init__(self, file: BinaryIO) -> None:
        # What was unpacked before a packed file turned out to be cut short must not be lost.
        self._read, self._place = getattr(file, "read1", file.read), 0
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self.first_bad: int | None = None

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Fill the buffer."""
        view = memoryview(buffer)
        data = self._read(view.nbytes)
        view[: len(data)] = data
        if self.first_bad is None:
            self._check(data)
        self._place += len(data)
        return len(data)

    def _check(self, data: bytes) -> None:
        waiting = len(self._decoder.getstate()[0])
        try:
            self._decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:
            self.first_bad = self._place - waiting + error.start
