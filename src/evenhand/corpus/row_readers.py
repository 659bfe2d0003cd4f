"""Rows of CSV and TSV with the places they begin at, as long as the file can be read.

A quote that is never closed would swallow the rest of the file. It is noticed where the file ends, where
something else than a separator follows the quote that seems to close it some lines on, or where the row
becomes too long; then the line that holds it is taken as it stands, and those after it are read again.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from evenhand.core.digests import Json
from evenhand.corpus.text_blocks import RecordText, utf8_size

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
        self._utf8_check = _Utf8Check(file)
        buffered = io.BufferedReader(self._utf8_check, _BUFFER)
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
                    yield self._split_plain_line()
                continue
            return

    def close(self) -> int | None:
        """Let go of the file; the byte where it first is not UTF-8."""
        self._text.detach()
        return self._utf8_check.first_bad

    def _split_plain_line(self) -> list[str]:
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


def read_column(
    rows: CsvRows, place: int, *, letters: int, short: Callable[[], None], broken: tuple[type[Exception], ...]
) -> Iterator[list[RecordText]]:
    """The cells of one column, about so many letters at a time; those before an error come before it."""
    found, size = list[RecordText](), 0
    try:
        for row in rows:
            if place < len(row):
                found.append(RecordText(rows.place, row[place]))
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


_BLANK = re.compile(r"[ \t\r\n\ufeff]*")
_OUTSIDE = re.compile(r'["{}\[\],]')
_IN_STRING = re.compile(r'["\\\n]')
"""A string holds no line end: one that has lost its end is over there."""
_LINE_END = re.compile("\n")
_NOT_UTF8 = re.compile("[\udc80-\udcff]")
_LONGEST_WORD = 16
"""Letters of a value that may be cut by the end of what was read, such as ``-Infinity``."""


class JsonElement(NamedTuple):
    """An element, or why there is none."""

    place: int
    """The byte at which it begins."""
    value: Json
    error: str = ""


def holds_json_lines(head: bytes) -> bool:
    """Whether JSON that begins so stands one value a line: it opens no array, and no object over lines."""
    head = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    return not head.startswith(b"[") and head.split(b"\n", 1)[0].strip() != b"{"


class JsonElements:
    """The elements of arrays, or values that follow each other, from pieces of a file.

    Args:
        pieces: The bytes.
        longest: Letters that an element may have: one that does not end must not fill the memory.
    """

    def __init__(self, pieces: Iterator[bytes], *, longest: int) -> None:
        self._pieces, self._longest = pieces, longest
        self._text, self._at, self._byte, self._read = "", 0, 0, 0
        self._letters = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._decoder = json.JSONDecoder()
        self.first_bad: int | None = None
        """The byte where the text first is not UTF-8."""

    def __iter__(self) -> Iterator[JsonElement]:
        opened: int | None = None
        while letter := self._next_letter():
            if letter == "," and opened is not None:
                self._take(1)
            elif letter == "[" and opened is None:
                opened = self._byte
                self._take(1)
            elif letter == "]" and opened is not None:
                opened = None
                self._take(1)
            elif letter in ",]":
                yield JsonElement(self._byte, None, f"a {letter!r} stands where none can; it is skipped")
                self._take(1)
            else:
                yield self._value()
        if opened is not None:
            yield JsonElement(opened, None, "the array that begins here does not end; counted up to there")

    def _next_letter(self) -> str:
        """The first letter that is not blank; empty at the end."""
        while True:
            found = _BLANK.match(self._text, self._at)
            self._take((found.end() if found else self._at) - self._at)
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def _value(self) -> JsonElement:
        place = self._byte
        while True:
            if len(self._text) - self._at > self._longest:
                error = f"a value is longer than {self._longest >> 20} MiB; not counted"
                break
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except (ValueError, RecursionError) as failure:
                if not (self._is_cut(failure) and self._more()):
                    # Neither nesting without end nor a number without end is the decoder's own error.
                    deep = isinstance(failure, RecursionError)
                    other = "it is nested too deeply" if deep else "a number is too long"
                    reason = getattr(failure, "msg", other)
                    error = f"a value is not JSON ({reason}); not counted"
                    break
            else:
                # A number that reaches the end of what was read may go on.
                if end < len(self._text) or not self._more():
                    self._take(end - self._at)
                    return JsonElement(place, value)
        self._skip()
        return JsonElement(place, None, error)

    def _is_cut(self, failure: Exception) -> bool:
        """Whether more text could mend it."""
        if not isinstance(failure, json.JSONDecodeError):
            return False
        is_late = failure.pos >= len(self._text) - _LONGEST_WORD
        return is_late or failure.msg.startswith("Unterminated string")

    def _skip(self) -> None:
        """Go on to the comma or bracket that ends a damaged element."""
        depth, in_string, first = 0, False, self._text[self._at]
        while letter := self._search(_IN_STRING if in_string else _OUTSIDE):
            if not in_string and depth <= 0 and (letter == "," or (letter == "]" and depth == 0)):
                return
            self._take(1)
            if letter == "\\":
                self._take(1 if self._at < len(self._text) or self._more() else 0)
            elif letter == "\n":
                self._skip_lines(first)
                return
            elif letter == '"':
                in_string = not in_string
            else:
                depth += (letter in "{[") - (letter in "}]")

    def _skip_lines(self, first: str) -> None:
        """Go on to a line that begins as the damaged element did: a string has lost its end."""
        while self._next_letter() not in (first, "") and self._search(_LINE_END):
            self._take(1)

    def _search(self, pattern: re.Pattern[str]) -> str:
        """Go on to what is looked for, and give its letter; empty at the end."""
        while (found := pattern.search(self._text, self._at)) is None:
            self._take(len(self._text) - self._at)
            if not self._more():
                return ""
        self._take(found.start() - self._at)
        return found[0]

    def _take(self, letters: int) -> None:
        taken = self._text[self._at : self._at + letters]
        self._byte += utf8_size(taken)
        self._at += len(taken)

    def _more(self) -> bool:
        """Read as much again as is held, so that an element is begun anew a few times only."""
        parts, size = [self._text[self._at :]], 0
        while size <= len(parts[0]) and (piece := next(self._pieces, None)) is not None:
            parts.append(self._decode(piece))
            size += len(parts[-1])
        self._text, self._at = "".join(parts), 0
        return size > 0

    def _decode(self, piece: bytes) -> str:
        text = self._letters.decode(piece)
        if self.first_bad is None and not text.isascii() and (found := _NOT_UTF8.search(text)):
            self.first_bad = self._read + utf8_size(text[: found.start()])
        self._read += utf8_size(text)
        return text
