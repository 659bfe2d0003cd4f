"""Streams of pages: plain text, WikiExtractor output, MediaWiki XML dumps."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from xml.etree import ElementTree

from evenhand.core.registry import require_library
from evenhand.store.text_sources import READ_ERRORS, ReadProblem, TextSource, open_source

if TYPE_CHECKING:
    from mwparserfromhell.nodes import Node

Report = Callable[[ReadProblem], None]
_Fault = Callable[[int | None, str], None]
_Lines = Iterator[tuple[int, bytes]]
"""The lines of a file, each with its first byte."""
_LONGEST_PAGE = 1 << 26
_DOC = re.compile(rb'<doc\b[^>]*\btitle="([^"]*)"[^>]*>')
_TAG = re.compile(rb"(</?page>)")
_ITEM = re.compile(r"^(?:[*#]|\|(?!-|\})).*?\[\[([^\]|#]+)", re.MULTILINE)
_NOTES = frozenset({"ref", "math", "gallery", "timeline", "syntaxhighlight", "table", "score"})
_NAMESPACE = re.compile(r"^(?:File|Image|Category|Help|Wikipedia|Template|Portal):", re.IGNORECASE)


class SourcePage(NamedTuple):
    """A page, including any markup."""

    title: str
    """Empty if the source has none."""
    text: str
    byte: int
    """Byte offset in the uncompressed file."""
    is_wikitext: bool = False


def read_pages(
    source: TextSource, report: Report, *, is_page: bool = False, advance: Callable[[int], None] | None = None
) -> Iterator[SourcePage]:
    """Read the pages of a file; truncated or damaged files yield the readable pages and a report.

    Args:
        source: The file. ``.xml`` is a MediaWiki dump, ``.jsonl`` the output of WikiExtractor with
            ``--json``, any text that begins with ``<doc`` its output without, anything else plain text.
        report: Called with each problem.
        is_page: Whether plain text is one page with the file's name as its title; otherwise pages are
            separated by an empty line and have no titles.
        advance: Called after each page with the bytes read from the stored file since the last call.
    """

    def fault(byte: int | None, reason: str) -> None:
        report(ReadProblem(source.path, byte, reason))

    try:
        file, raw = open_source(source)
    except OSError as error:
        fault(None, f"cannot be opened: {error.strerror or error}")
        return
    byte = position = 0

    def read_lines() -> _Lines:
        nonlocal byte
        while line := file.readline(_LONGEST_PAGE):
            byte += len(line)
            yield byte - len(line), line

    with raw, file:
        try:
            for page in _read(read_lines(), source, fault, is_page=is_page):
                yield page
                if advance is not None:
                    advance(raw.tell() - position)
                    position = raw.tell()
        except READ_ERRORS as error:
            message = str(error) or type(error).__name__
            fault(byte, f"cannot be read further: {message}; all earlier pages were read")


def plain_text(page: SourcePage) -> str:
    """The visible text of a page, without templates, tables, notes, pictures and headings."""
    if not page.is_wikitext:
        return page.text
    mwparserfromhell = require_library("mwparserfromhell", "a MediaWiki dump")
    code = mwparserfromhell.parse(page.text)
    unseen: list[Node] = [
        *code.filter_tags(matches=lambda node: str(getattr(node, "tag", "")).strip().lower() in _NOTES),
        *code.filter_headings(),
        *code.filter_wikilinks(
            matches=lambda node: bool(_NAMESPACE.match(str(getattr(node, "title", "")).strip()))
        ),
    ]
    for node in unseen:
        # It may have been inside another node that was already removed.
        with suppress(ValueError):
            code.remove(node)
    return str(code.strip_code(normalize=True, collapse=True))


def page_categories(page: SourcePage) -> tuple[str, ...]:
    """The categories of a page in a dump."""
    if not page.is_wikitext:
        return ()
    names = re.findall(r"\[\[\s*Category\s*:\s*([^\]|]+)", page.text, re.IGNORECASE)
    return tuple(name.strip() for name in names)


def linked_titles(page: SourcePage) -> tuple[str, ...]:
    """The first link of each list item and table row: the entries of a list page."""
    names = (name.strip() for name in _ITEM.findall(page.text))
    return tuple(dict.fromkeys(name for name in names if name and not _NAMESPACE.match(name)))


def _read(lines: _Lines, source: TextSource, fault: _Fault, *, is_page: bool) -> Iterator[SourcePage]:
    if source.format == "mediawiki":
        yield from _dump(lines, fault)
    elif source.format == "jsonl":
        yield from _json_lines(lines, fault)
    else:
        first = next(lines, (0, b""))
        if _DOC.match(first[1].lstrip()):
            yield from _documents(chain([first], lines), fault)
        elif is_page and first[1]:
            name = Path(source.path).name.partition(".txt")[0].replace("_", " ")
            text = b"".join([first[1], *(line for _, line in lines)])
            yield SourcePage(name, _decode(text, 0, fault), 0)
        else:
            yield from _paragraphs(chain([first], lines), fault)


def _dump(lines: _Lines, fault: _Fault) -> Iterator[SourcePage]:
    """Pages of a dump, one at a time; a truncated or damaged page does not affect the others."""
    block: list[bytes] = []
    begin, size = 0, 0
    for start, line in lines:
        # Several pages may share a line in dumps written by other tools.
        for piece in _TAG.split(line):
            if piece == b"<page>":
                if block:
                    fault(begin, "a page has no end tag and was skipped")
                block, begin, size = [piece], start, 0
            elif block:
                block.append(piece)
                size += len(piece)
            if size > _LONGEST_PAGE:
                fault(begin, "a page is longer than 64 MiB and was skipped")
                block, size = [], 0
            if block and piece == b"</page>":
                page = _element(b"".join(block), begin, fault)
                block = []
                if page is not None:
                    yield page
    if block:
        fault(begin, "the dump ends inside a page; all earlier pages were read")


def _element(xml: bytes, byte: int, fault: _Fault) -> SourcePage | None:
    try:
        page = ElementTree.fromstring(xml)
    except ElementTree.ParseError as error:
        fault(byte, f"a page is not valid XML and was skipped: {error}")
        return None
    if page.findtext("ns", "0").strip() != "0" or page.find("redirect") is not None:
        return None
    text = page.findtext("revision/text") or ""
    return SourcePage((page.findtext("title") or "").strip(), text, byte, is_wikitext=True)


def _json_lines(lines: _Lines, fault: _Fault) -> Iterator[SourcePage]:
    for start, line in lines:
        if line.strip():
            try:
                row = json.loads(line)
                page = SourcePage(str(row["title"]), str(row["text"]), start)
            except (ValueError, KeyError, TypeError, RecursionError):
                fault(start, "a line is not a JSON object with title and text and was skipped")
            else:
                yield page


def _documents(lines: Iterable[tuple[int, bytes]], fault: _Fault) -> Iterator[SourcePage]:
    """WikiExtractor's pages from ``<doc title="...">`` to ``</doc>``; the first line repeats the title."""
    title, begin, block = b"", 0, list[bytes]()
    for start, line in lines:
        if match := _DOC.match(line.lstrip()):
            if title:
                fault(begin, "a page has no end tag and was skipped")
            title, begin, block = match[1], start, []
        elif line.strip() == b"</doc>":
            name = html.unescape(_decode(title, begin, fault))
            text = _decode(b"".join(block), begin, fault)
            yield SourcePage(name, text.removeprefix(f"{name}\n").lstrip("\n"), begin)
            title, block = b"", []
        else:
            block.append(line)
    if title:
        fault(begin, "the file ends inside a page; all earlier pages were read")


def _paragraphs(lines: Iterable[tuple[int, bytes]], fault: _Fault) -> Iterator[SourcePage]:
    """Pages of plain text, separated by empty lines."""
    for is_empty, group in groupby(lines, key=lambda line: not line[1].strip()):
        if not is_empty:
            starts, texts = zip(*group, strict=True)
            yield SourcePage("", _decode(b"".join(texts), starts[0], fault), starts[0])


def _decode(text: bytes, byte: int, fault: _Fault) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        fault(byte, "a page is not valid UTF-8; invalid bytes become \ufffd")
        return text.decode("utf-8", "replace")
