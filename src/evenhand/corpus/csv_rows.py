"""Rows of CSV and TSV with the places they begin at, as long as the file can be read."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_BUFFER = 1 << 20
_CELL = 64
"""What a cell takes beside its letters."""


class CsvRows:
    """The rows of a file, its header first.

    Args:
        file: Unpacked bytes; closed by who opened it.
        delimiter: What separates cells.
        longest: Letters a line may have; a longer one is a ``csv.Error``.
    """

    def __init__(self, file: BinaryIO, *, delimiter: str, longest: int) -> None:
        self._checked = _Utf8Check(file)
        buffered = io.BufferedReader(self._checked, _BUFFER)
        self._lines = io.TextIOWrapper(buffered, encoding="utf-8-sig", errors="replace", newline="")
        self._longest = longest
        self._next, self.place = 0, 0
        """The byte at which the line that was read last begins."""
        if csv.field_size_limit() < longest:
            csv.field_size_limit(longest)
        self._rows = csv.reader(self._short_lines(), delimiter=delimiter)

    def __iter__(self) -> Iterator[list[str]]:
        return self._rows

    @property
    def line(self) -> int:
        """The number of the line that was read last."""
        return self._rows.line_num

    def close(self) -> int | None:
        """Let go of the file; the byte where it first is not UTF-8."""
        self._lines.detach()
        return self._checked.first_bad

    def _short_lines(self) -> Iterator[str]:
        while line := self._lines.readline(self._longest):
            self.place = self._next
            if len(line) == self._longest:
                raise csv.Error(f"it is longer than {self._longest >> 20} MiB")
            self._next += len(line) if line.isascii() else len(line.encode("utf-8", "surrogatepass"))
            yield line


def cells(
    rows: CsvRows, place: int, *, letters: int, short: Callable[[], None], broken: tuple[type[Exception], ...]
) -> Iterator[list[str]]:
    """The cells of one column, about so many letters at a time; those before an error come before it."""
    found, size = list[str](), 0
    try:
        for row in rows:
            if place < len(row):
                found.append(row[place])
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
