"""JSON that does not stand one value a line: the elements of an array, one at a time.

The decoder of the standard library reads a value wherever it begins, so that no further library is needed.
What is damaged costs the element it stands in: the next one is looked for after the comma that ends it.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from evenhand.core.digests import Json
from evenhand.corpus.records import utf8_size

_BLANK = re.compile(r"[ \t\r\n\ufeff]*")
_OUTSIDE = re.compile(r'["{}\[\],]')
_IN_STRING = re.compile(r'["\\\n]')
"""A string holds no line end: one that has lost its end is over there."""
_LINE_END = re.compile("\n")
_NOT_UTF8 = re.compile("[\udc80-\udcff]")
_LONGEST_WORD = 16
"""Letters of a value that may be cut by the end of what was read, such as ``-Infinity``."""


class Value(NamedTuple):
    """An element, or why there is none."""

    place: int
    """The byte at which it begins."""
    value: Json
    error: str = ""


def is_lines(head: bytes) -> bool:
    """Whether JSON that begins so stands one value a line: it opens no array, and no object over lines."""
    head = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    return not head.startswith(b"[") and head.split(b"\n", 1)[0].strip() != b"{"


class JsonValues:
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

    def __iter__(self) -> Iterator[Value]:
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
                yield Value(self._byte, None, f"a {letter!r} stands where none can; it is skipped")
                self._take(1)
            else:
                yield self._value()
        if opened is not None:
            yield Value(opened, None, "the array that begins here does not end; counted up to there")

    def _next_letter(self) -> str:
        """The first letter that is not blank; empty at the end."""
        while True:
            found = _BLANK.match(self._text, self._at)
            self._take((found.end() if found else self._at) - self._at)
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def _value(self) -> Value:
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
                    return Value(place, value)
        self._skip()
        return Value(place, None, error)

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
            parts.append(self._decoded(piece))
            size += len(parts[-1])
        self._text, self._at = "".join(parts), 0
        return size > 0

    def _decoded(self, piece: bytes) -> str:
        text = self._letters.decode(piece)
        if self.first_bad is None and not text.isascii() and (found := _NOT_UTF8.search(text)):
            self.first_bad = self._read + utf8_size(text[: found.start()])
        self._read += utf8_size(text)
        return text
