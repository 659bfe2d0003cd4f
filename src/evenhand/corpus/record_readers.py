"""Rows of CSV, values of JSON and pages of a dump with their places, as far as the file can be read.

An unclosed quote would swallow the rest of the file. It is detected at the end of the file, where something
other than a separator follows the quote that seems to close it some lines later, or where the row becomes
too long; its line is then read without quoting, and the lines after it are read again.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from html import unescape
from itertools import chain
from typing import BinaryIO, Final, NamedTuple
from xml.etree.ElementTree import ParseError, fromstring

from evenhand.core.digests import Json

RECORD_SIZE = 64
"""The bytes that a cell or line takes in addition to its letters."""
_LINE_ENDS = ("\n", "\r")
_BOM = "\xef\xbb\xbf"
"""Bytes are read as Latin-1, one letter each, so that places in the text equal those in the file."""

Report = Callable[[int, str], None]
"""Called with a byte and the problem there."""
RecordText = tuple[int, str]
"""The place where a record begins, and its text."""


class _Decoder:
    """Turns Latin-1 letters, one per byte, into text; reports the first byte that is not UTF-8."""

    def __init__(self, report: Report) -> None:
        self._report, self._is_sound = report, True

    def decode(self, letters: str, place: int) -> str:
        """The text of letters that begin at a place; invalid UTF-8 becomes U+FFFD."""
        if letters.isascii():
            return letters
        data = letters.encode("latin-1")
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            if self._is_sound:
                self._is_sound = False
                self._report(place + error.start, "is not UTF-8 here; such bytes separate words")
            return data.decode("utf-8", "replace")


class Line(NamedTuple):
    """A line of a file, and the byte at which it begins."""

    number: int
    place: int
    text: str


class _LongError(Exception):
    """A row is longer than a row may be."""


class CsvRows:
    """The rows of a file, which the caller closes; ``longest`` bounds a line, and a row that spans lines."""

    def __init__(self, file: BinaryIO, *, delimiter: str, longest: int, report: Report) -> None:
        self._text = io.TextIOWrapper(file, encoding="latin-1", newline="")
        self._delimiter, self._longest, self._report = delimiter, longest, report
        self._lines = self._read_lines()
        self._again: list[Line] = []
        """Lines to read again, in reverse order."""
        self._row: list[Line] = []
        """The lines of the current row."""
        csv.field_size_limit(max(csv.field_size_limit(), 2 * longest))

    def __iter__(self) -> Generator[tuple[Line, list[str]]]:
        """The cells of each row, with the line that begins it."""
        is_sound = False
        try:
            while not is_sound:
                rows = csv.reader(self._row_texts(), delimiter=self._delimiter, strict=True)
                try:
                    for row in rows:
                        first = self._row[0]
                        self._row.clear()
                        yield first, row
                    is_sound = True
                except (csv.Error, _LongError):
                    if self._row:
                        first, *others = self._row
                        self._row.clear()
                        yield first, self._split_plain_line(first, others)
        finally:
            self._text.detach()

    def _split_plain_line(self, first: Line, others: Sequence[Line]) -> list[str]:
        """The row from a line that is not valid CSV."""
        if not others:
            # Letters after a closing quote, which many programs write, affect only their own cell.
            loose = csv.reader([first.text, ""], delimiter=self._delimiter)
            row = next(loose, [])
            if loose.line_num == 1:
                return row
        self._again += reversed(others)
        reason = "opens a quote that is not closed, or not as in CSV; the line is read without quoting"
        self._report(first.place, f"line {first.number} {reason}")
        return first.text.rstrip("\r\n").split(self._delimiter)

    def _row_texts(self) -> Iterator[str]:
        letters = 0
        while (line := self._again.pop() if self._again else next(self._lines, None)) is not None:
            letters = len(line.text) + RECORD_SIZE + (letters if self._row else 0)
            if self._row and letters > self._longest:
                self._again.append(line)
                raise _LongError
            self._row.append(line)
            yield line.text

    def _read_lines(self) -> Iterator[Line]:
        number, place, decoder = 0, 0, _Decoder(self._report)
        while text := self._text.readline(self._longest):
            number, start, place = number + 1, place, place + len(text)
            if len(text) < self._longest or text.endswith(_LINE_ENDS):
                text = decoder.decode(text, start)
                yield Line(number, start, text if start else text.removeprefix("\ufeff"))
                continue
            while (part := self._text.readline(self._longest)) and not part.endswith(_LINE_ENDS):
                place += len(part)
            place += len(part)
            self._report(start, f"line {number} is longer than {self._longest >> 20} MiB; not counted")


_NOT_BLANK = re.compile(rf"[^ \t\r\n{_BOM}]")
_OUTSIDE = re.compile(r'["{}\[\],]')
_IN_STRING = re.compile(r'["\\\n]')
"""A JSON string contains no line end, so an unclosed string ends there."""
_LINE_END = re.compile("\n")
_LONGEST_WORD = 16
"""Maximum letters of a literal that the end of the buffer may cut, such as ``-Infinity``."""


class JsonValue(NamedTuple):
    """A value of a file, or the reason there is none."""

    place: int
    """The byte at which it begins."""
    value: Json
    error: str = ""


def holds_json_lines(head: bytes) -> bool:
    """Whether JSON with this beginning has one value per line: no array, and no object that spans lines."""
    head = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    return not head.startswith(b"[") and head.split(b"\n", 1)[0].strip() != b"{"


def read_json_lines(pieces: Iterator[bytes], *, place: int, longest: int) -> Iterator[JsonValue]:
    """The values of non-empty lines; ``place`` is the byte at which the pieces begin."""
    parts, size = list[bytes](), 0
    # The file may end without a line end.
    for piece in chain(pieces, [b"\n"]):
        *ends, rest = piece.split(b"\n")
        for end in ends:
            size += len(end)
            if size > longest:
                yield JsonValue(place, None, f"a line is longer than {longest >> 20} MiB; not counted")
            elif (line := b"".join((*parts, end))).strip():
                try:
                    yield JsonValue(place, json.loads(line))
                except (ValueError, RecursionError) as error:
                    yield JsonValue(place, None, f"a line is not JSON ({error}); not counted")
            place, parts, size = place + size + 1, [], 0
        size += len(rest)
        parts = [*parts, rest] if size <= longest else []


class JsonElements:
    """The elements of arrays, or consecutive values; one longer than ``longest`` must not fill the memory."""

    def __init__(self, pieces: Iterator[bytes], *, longest: int, report: Report) -> None:
        self._pieces, self._longest, self._decoder = pieces, longest, _Decoder(report)
        self._text, self._begin, self._at = "", 0, 0

    def __iter__(self) -> Iterator[JsonValue]:
        opened: int | None = None
        while letter := self._search(_NOT_BLANK):
            place = self._begin + self._at
            if letter == "[" and opened is None:
                opened = place
            elif letter == "]" and opened is not None:
                opened = None
            elif letter in ",]" and opened is None:
                yield JsonValue(place, None, f"a {letter!r} is misplaced; it is skipped")
            elif letter != ",":
                yield self._value(place)
                continue
            self._at += 1
        if opened is not None:
            yield JsonValue(opened, None, "the array that begins here does not end; counted up to there")

    def _value(self, place: int) -> JsonValue:
        error = f"a value is longer than {self._longest >> 20} MiB; not counted"
        while len(self._text) - self._at <= self._longest:
            try:
                value, end = json.JSONDecoder().raw_decode(self._text, self._at)
            except (ValueError, RecursionError) as failure:
                if not (self._is_cut(failure) and self._more()):
                    # The decoder has no error of its own for endless nesting or an endless number.
                    deep = isinstance(failure, RecursionError)
                    other = "it is nested too deeply" if deep else "a number is too long"
                    error = f"a value is not JSON ({getattr(failure, 'msg', other)}); not counted"
                    break
                continue
            letters = self._text[self._at : end]
            # A number at the end of the buffer may continue.
            if end < len(self._text) or not self._more():
                self._at += len(letters)
                text = self._decoder.decode(letters, place)
                return JsonValue(place, value if text is letters else json.loads(text))
        self._skip()
        return JsonValue(place, None, error)

    def _is_cut(self, failure: Exception) -> bool:
        """Whether more text could complete the value."""
        return isinstance(failure, json.JSONDecodeError) and (
            failure.pos >= len(self._text) - _LONGEST_WORD or failure.msg.startswith("Unterminated string")
        )

    def _skip(self) -> None:
        """Skip to the comma or bracket that ends a damaged element."""
        depth, in_string, first = 0, False, self._text[self._at]
        while letter := self._search(_IN_STRING if in_string else _OUTSIDE):
            if not in_string and depth <= 0 and (letter == "," or (letter == "]" and depth == 0)):
                return
            self._at += 1
            if letter == "\\":
                self._at += self._at < len(self._text) or self._more()
            elif letter == "\n":
                # The string is not closed: skip to a line that begins like the damaged element.
                while self._search(_NOT_BLANK) not in (first, "") and self._search(_LINE_END):
                    self._at += 1
                return
            elif letter == '"':
                in_string = not in_string
            else:
                depth += (letter in "{[") - (letter in "}]")

    def _search(self, pattern: re.Pattern[str]) -> str:
        """Advance to the next match and return its letter; empty at the end."""
        while (match := pattern.search(self._text, self._at)) is None:
            self._at = len(self._text)
            if not self._more():
                return ""
        self._at = match.start()
        return match[0]

    def _more(self) -> bool:
        """Double the buffer, so that an element is decoded again only a few times."""
        parts, size = [self._text[self._at :]], 0
        while size <= len(parts[0]) and (piece := next(self._pieces, None)) is not None:
            parts.append(piece.decode("latin-1"))
            size += len(piece)
        self._text, self._begin, self._at = "".join(parts), self._begin + self._at, 0
        return size > 0


_PAGE, _PAGE_END = re.compile(rb"<page(?=[\s>])"), b"</page>"
"""Wikitext in a dump is escaped, so these bytes mark only pages."""
_ENDLESS: Final = "a page does not end; not counted"

_INNERMOST = re.compile(r"\{\{[^{}]*\}\}|\{\|(?:[^{|]|\|(?!\})|\{(?!\|))*\|\}")
_TAGS = ("ref", "math", "gallery", "timeline", "syntaxhighlight")
_OPENING = re.compile(rf"<(?:!--|({'|'.join(_TAGS)})\b)", re.IGNORECASE)
_EMPTY_TAG = re.compile(r"[^<>]*/>")
_CLOSING = {"": re.compile("-->"), **{tag: re.compile(rf"</{tag}\s*>", re.IGNORECASE) for tag in _TAGS}}
_FILE_LINK = re.compile(
    r"\[\[(?:File|Image|Category):[^\[\]]*+(?:\[\[[^\[\]]*+\]\][^\[\]]*+)*+\]\]", re.IGNORECASE
)
_LINK = re.compile(r"\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]")
_WEB_LINK = re.compile(r"\[https?://[^\s\[\]]++([^\[\]\n]*+)\]")
_MARKS = re.compile(r"'{2,}|^[=*#:;]+\s*|(?<![\s=])\s*+=++$|<[^>\n]{1,100}>", re.MULTILINE)
"""None of these patterns may backtrack: a page with a thousand unclosed elements must not stall a run."""


def read_dump_articles(pieces: Iterable[bytes], *, longest: int, report: Report) -> Iterator[RecordText]:
    """The plain text of each article (namespace 0, no redirects), with the byte where its page begins.

    A page longer than ``longest`` must not fill the memory; the pages after a problem are still read.
    """
    for place, page in _pages(pieces, longest, report):
        try:
            parts = {part.tag.rpartition("}")[2]: part.text or "" for part in fromstring(page).iter()}
        except ParseError as error:
            report(place, f"a page is not XML ({error}); not counted")
            continue
        is_article = parts.get("ns", "0").strip() == "0" and "redirect" not in parts
        if is_article and parts.get("text"):
            yield place, plain_text(parts["text"])


def plain_text(wikitext: str) -> str:
    """The text a reader of the page sees, without tables, notes and boxes."""
    text = _FILE_LINK.sub(" ", _without_notes(unescape(wikitext)))
    for _ in range(20):
        shorter = _INNERMOST.sub(" ", text)
        if shorter == text:
            break
        text = shorter
    text = _WEB_LINK.sub(r"\1", _LINK.sub(r"\1", text))
    return _MARKS.sub("", text)


def _without_notes(text: str) -> str:
    """The text without comments, references and the like; an unclosed one is left as it is."""
    parts, at, place = list[str](), 0, 0
    endless = set[str]()
    while opening := _OPENING.search(text, place):
        tag, place = (opening[1] or "").lower(), opening.end()
        end = (_EMPTY_TAG.match(text, place) if tag else None) or (
            None if tag in endless else _CLOSING[tag].search(text, place)
        )
        if end is None:
            endless.add(tag)
            continue
        parts += (text[at : opening.start()], " ")
        at = place = end.end()
    return "".join((*parts, text[at:]))


def _pages(pieces: Iterable[bytes], longest: int, report: Report) -> Iterator[tuple[int, bytes]]:
    """Each page with its tags; skips a page in which another begins, or that is too long."""
    buffer, begin, has_pages = bytearray(), 0, False
    for piece in pieces:
        search_start = max(0, len(buffer) - len(_PAGE_END))
        buffer += piece
        while (end := buffer.find(_PAGE_END, search_start)) >= 0:
            end += len(_PAGE_END)
            *endless, last = [page.start() for page in _PAGE.finditer(buffer, 0, end)] or [-1]
            for start in endless:
                report(begin + start, _ENDLESS)
            if last >= 0:
                has_pages = True
                yield begin + last, bytes(buffer[last:end])
            del buffer[:end]
            begin, search_start = begin + end, 0
        # Keep only the first open page and what follows; the end of the piece may cut a tag.
        page = _PAGE.search(buffer)
        excess = page.start() if page else max(0, len(buffer) - len(_PAGE_END))
        if len(buffer) - excess > longest:
            report(begin + excess, f"a page is longer than {longest >> 20} MiB; not counted")
            later = _PAGE.search(buffer, excess + 1)
            has_pages, excess = True, later.start() if later else len(buffer) - len(_PAGE_END)
        del buffer[:excess]
        begin += excess
    for page in _PAGE.finditer(buffer):
        has_pages = True
        report(begin + page.start(), _ENDLESS)
    if not has_pages:
        report(0, "holds no page of a MediaWiki dump; not counted")
