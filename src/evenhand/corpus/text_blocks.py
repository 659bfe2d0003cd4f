"""The output of readers: bytes to count, and where the records in them begin."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from html import unescape
from typing import BinaryIO, Final, NamedTuple, TypeVar
from xml.etree.ElementTree import ParseError, fromstring

from evenhand.store.text_sources import READ_ERRORS, ReadProblem

BLOCK = 1 << 20
"""Bytes that readers pass on at a time."""
RECORD_END = b"\xff"

Report = Callable[[ReadProblem], None]
Item = TypeVar("Item")


class ByteBlock(NamedTuple):
    """Some bytes of a source: running text, or whole records, each ended by byte 0xFF."""

    data: bytes
    places: Sequence[int] = ()
    """Where each record begins: its byte in the unpacked file, or in Parquet its row number from 0."""


class RecordText(NamedTuple):
    """The text of a record, and where the record begins."""

    place: int
    text: str


def join_texts(texts: Sequence[RecordText]) -> ByteBlock:
    """The texts as one block."""
    data = b"".join(_encode(text) + RECORD_END for _, text in texts)
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


_PAGE, _PAGE_END = re.compile(rb"<page(?=[\s>])"), b"</page>"
"""Wikitext in a dump is escaped, so these bytes mark only pages."""
_ENDLESS: Final = "a page does not end; not counted"

_INNERMOST = re.compile(r"\{\{[^{}]*\}\}|\{\|(?:[^{|]|\|(?!\})|\{(?!\|))*\|\}")
_TAGS = ("ref", "math", "gallery", "timeline", "syntaxhighlight")
_OPENING = re.compile(rf"<(?:!--|({'|'.join(_TAGS)})\b)", re.IGNORECASE)
_EMPTY_TAG = re.compile(r"[^<>]*/>")
_CLOSING = {"": re.compile("-->"), **{tag: re.compile(rf"</{tag}\s*>", re.IGNORECASE) for tag in _TAGS}}
_FILE = re.compile(
    r"\[\[(?:File|Image|Category):[^\[\]]*+(?:\[\[[^\[\]]*+\]\][^\[\]]*+)*+\]\]", re.IGNORECASE
)
_LINK = re.compile(r"\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]")
_OUTSIDE = re.compile(r"\[https?://[^\s\[\]]++([^\[\]\n]*+)\]")
_MARKS = re.compile(r"'{2,}|^[=*#:;]+\s*|(?<![\s=])\s*+=++$|<[^>\n]{1,100}>", re.MULTILINE)
"""None of these patterns may backtrack: a page with a thousand unclosed elements must not stall a run."""


def read_dump_articles(
    pieces: Iterable[bytes], *, longest: int, report: Callable[[int, str], None]
) -> Iterator[RecordText]:
    """The plain text of each article (namespace 0, no redirects), with the byte where its page begins.

    Args:
        pieces: The dump.
        longest: Maximum bytes of a page: one that does not end must not fill the memory.
        report: Called with the byte and the problem; the pages after it are still read.
    """
    for place, page in _pages(pieces, longest, report):
        try:
            parts = {part.tag.rpartition("}")[2]: part.text or "" for part in fromstring(page).iter()}
        except ParseError as error:
            report(place, f"a page is not XML ({error}); not counted")
            continue
        is_article = parts.get("ns", "0").strip() == "0" and "redirect" not in parts
        if is_article and parts.get("text"):
            yield RecordText(place, plain_text(parts["text"]))


def plain_text(wikitext: str) -> str:
    """The text a reader of the page sees, without tables, notes and boxes."""
    text = _FILE.sub(" ", _without_notes(unescape(wikitext)))
    for _ in range(20):
        shorter = _INNERMOST.sub(" ", text)
        if shorter == text:
            break
        text = shorter
    text = _OUTSIDE.sub(r"\1", _LINK.sub(r"\1", text))
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


def _pages(
    pieces: Iterable[bytes], longest: int, report: Callable[[int, str], None]
) -> Iterator[tuple[int, bytes]]:
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
