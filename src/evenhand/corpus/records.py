"""What readers hand over: bytes to count, and where the records in them begin."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from lzma import LZMAError
from typing import BinaryIO, NamedTuple

from evenhand.corpus.terms import Problem

BLOCK = 1 << 20
"""Bytes handed over at a time."""
RECORD_END = b"\xff"

Report = Callable[[Problem], None]
READ_ERRORS = (OSError, EOFError, LZMAError, zlib.error, RuntimeError)
"""What damaged or vanished files raise."""


class Block(NamedTuple):
    """Some bytes of a source: running text, or whole records, each ended by byte 0xFF."""

    data: bytes
    places: Sequence[int] = ()
    """Where each record begins: its byte in the unpacked file, in Parquet the number of its row from 0."""


class Text(NamedTuple):
    """The text of a record, and where the record begins."""

    place: int
    text: str


def joined(texts: Sequence[Text]) -> Iterator[Block]:
    """The texts as one block; none where there are none."""
    if texts:
        data = b"".join(_encoded(text) + RECORD_END for _, text in texts)
        yield Block(data, [place for place, _ in texts])


def pieces(file: BinaryIO, span: tuple[int, int] | None = None) -> Iterator[bytes]:
    """The bytes of a file, or of a range of it, some at a time."""
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


def utf8_size(text: str) -> int:
    """The bytes of a text that was decoded with ``surrogateescape``."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogateescape"))


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair, as damaged JSON has it; a question mark would end a sentence.
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace").encode()
