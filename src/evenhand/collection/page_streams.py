"""Pages as a stream: plain text, what WikiExtractor writes, MediaWiki XML dumps."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple
from xml.etree import ElementTree

from evenhand.core.errors import MissingLibraryError
from evenhand.store.text_sources import READ_ERRORS, ReadProblem, TextSource, open_source

if TYPE_CHECKING:
    from mwparserfromhell.nodes import Node
    from mwparserfromhell.wikicode import Wikicode

Report = Callable[[ReadProblem], None]
_LONGEST_PAGE = 1 << 26
_TOO_LONG = "a page is longer than 64 MiB and was left out"
_DOC = re.compile(rb'<doc\b[^>]*\btitle="([^"]*)"[^>]*>')
_TAG = re.compile(rb"(</?page>)")
_ITEM = re.compile(r"^(?:[*#]|\|(?!-|\})).*?\[\[([^\]|#]+)", re.MULTILINE)
_NAMESPACE = re.compile(r"^(?:File|Image|Category|Help|Wikipedia|Template|Portal):", re.IGNORECASE)


class SourcePage(NamedTuple):
    """A page, its markup still in it where it has any."""

    title: str
    """Empty where the source gives none."""
    text: str
    byte: int
    """Where it begins in the unpacked file."""
    is_wikitext: bool = False


def read_pages(
    source: TextSource, report: Report, *, is_page: bool = False, moved: Callable[[int], None] | None = None
) -> Iterator[SourcePage]:
    """The pages of a file; a file that is cut or damaged gives what can be read, and says where it stops.

    Args:
        source: The file. ``.xml`` is a MediaWiki dump, ``.jsonl`` what WikiExtractor writes with ``--json``,
            any other text that begins with ``<doc`` what it writes without, else plain text.
        report: Takes what was wrong.
        is_page: Plain text is one page with the file's name as its title; else pages are separated by an
            empty line and have no titles.
        moved: Told after each page how many stored bytes of the file are behind us.
    """
    try:
        file, raw = open_source(source)
    except OSError as error:
        report(ReadProblem(source.path, None, f"cannot be opened: {error.strerror or error}"))
        return
    lines = _Lines(file)
    with raw, file:
        try:
            for page in _read(lines, source, report, is_page=is_page):
                yield page
                if moved is not None:
                    moved(raw.tell())
        except READ_ERRORS as error:
            came = str(error) or type(error).__name__
            report(
                ReadProblem(source.path, lines.byte, f"cannot be read on: {came}; all pages before it were")
            )


def plain_text(page: SourcePage) -> str:
    """The text a reader of the page sees: no templates, tables, notes, pictures or headings."""
    if not page.is_wikitext:
        return page.text
    code = _parse(page.text)
    unseen: list[Node] = [
        *code.filter_tags(matches=_is_note),
        *code.filter_headings(),
        *code.filter_wikilinks(matches=_is_picture),
    ]
    for node in unseen:
        # It may have stood inside another that is gone already.
        with suppress(ValueError):
            code.remove(node)
    return code.strip_code(normalize=True, collapse=True)


def page_categories(page: SourcePage) -> tuple[str, ...]:
    """The categories a page of a dump names."""
    if not page.is_wikitext:
        return ()
    found = re.findall(r"\[\[\s*Category\s*:\s*([^\]|]+)", page.text, re.IGNORECASE)
    return tuple(name.strip() for name in found)


def linked_titles(page: SourcePage) -> tuple[str, ...]:
    """The first link of each list item and table row: the entries of a list page."""
    found = (name.strip() for name in _ITEM.findall(page.text))
    return tuple(dict.fromkeys(name for name in found if name and not _NAMESPACE.match(name)))


class _Lines:
    """The lines of a file, and how many bytes they came to."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.byte = 0

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        while line := self._file.readline(_LONGEST_PAGE):
            start = self.byte
            self.byte += len(line)
            yield start, line


def _read(lines: _Lines, source: TextSource, report: Report, *, is_page: bool) -> Iterator[SourcePage]:
    if source.format == "mediawiki":
        yield from _dump(lines, source, report)
    elif source.format == "jsonl":
        yield from _json_lines(lines, source, report)
    else:
        yield from _text(lines, source, report, is_page=is_page)


def _dump(lines: _Lines, source: TextSource, report: Report) -> Iterator[SourcePage]:
    """Pages of a dump, one at a time; a cut or damaged one costs that page alone."""
    block: list[bytes] = []
    begin, size = 0, 0
    for start, line in lines:
        # Several pages may share a line where another tool has written the dump.
        for piece in _TAG.split(line):
            if piece == b"<page>":
                if block:
                    report(ReadProblem(source.path, begin, "a page has no end and was left out"))
                block, begin, size = [piece], start, 0
            elif block:
                block.append(piece)
                size += len(piece)
            if size > _LONGEST_PAGE:
                report(ReadProblem(source.path, begin, _TOO_LONG))
                block, size = [], 0
            if block and piece == b"</page>":
                page = _element(b"".join(block), begin, source, report)
                block = []
                if page is not None:
                    yield page
    if block:
        report(
            ReadProblem(source.path, begin, "the dump is cut inside a page; all pages before it were read")
        )


def _element(xml: bytes, byte: int, source: TextSource, report: Report) -> SourcePage | None:
    try:
        page = ElementTree.fromstring(xml)
    except ElementTree.ParseError as error:
        report(ReadProblem(source.path, byte, f"a page is not XML and was left out: {error}"))
        return None
    if page.findtext("ns", "0").strip() != "0" or page.find("redirect") is not None:
        return None
    text = page.findtext("revision/text") or ""
    return SourcePage((page.findtext("title") or "").strip(), text, byte, is_wikitext=True)


def _json_lines(lines: _Lines, source: TextSource, report: Report) -> Iterator[SourcePage]:
    for start, line in lines:
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            page = SourcePage(str(row["title"]), str(row["text"]), start)
        except (ValueError, KeyError, TypeError, RecursionError):
            report(ReadProblem(source.path, start, "a line is no JSON object with title and text; left out"))
            continue
        yield page


def _text(lines: _Lines, source: TextSource, report: Report, *, is_page: bool) -> Iterator[SourcePage]:
    rows = iter(lines)
    first = next(rows, None)
    if first is None:
        return
    if _DOC.match(first[1].lstrip()):
        yield from _documents(first, rows, source, report)
    elif is_page:
        text = b"".join([first[1], *(line for _, line in rows)])
        yield SourcePage(_stem(source), _decode(text, 0, source, report), 0)
    else:
        yield from _paragraphs(first, rows, source, report)


def _documents(
    first: tuple[int, bytes], rows: Iterator[tuple[int, bytes]], source: TextSource, report: Report
) -> Iterator[SourcePage]:
    """WikiExtractor's ``<doc title="...">`` to ``</doc>``; its first line repeats the title."""
    title, begin, block = b"", 0, list[bytes]()
    for start, line in chain([first], rows):
        if match := _DOC.match(line.lstrip()):
            if title:
                report(ReadProblem(source.path, begin, "a page has no end and was left out"))
            title, begin, block = match[1], start, []
        elif line.strip() == b"</doc>":
            name = html.unescape(_decode(title, begin, source, report))
            text = _decode(b"".join(block), begin, source, report)
            yield SourcePage(name, text.removeprefix(f"{name}\n").lstrip("\n"), begin)
            title, block = b"", []
        else:
            block.append(line)
    if title:
        report(
            ReadProblem(source.path, begin, "the file is cut inside a page; all pages before it were read")
        )


def _paragraphs(
    first: tuple[int, bytes], rows: Iterator[tuple[int, bytes]], source: TextSource, report: Report
) -> Iterator[SourcePage]:
    """Pages of plain text, separated by empty lines."""
    block, begin = [first[1]], first[0]
    for start, line in rows:
        if line.strip():
            if not block:
                begin = start
            block.append(line)
        elif block:
            yield SourcePage("", _decode(b"".join(block), begin, source, report), begin)
            block = []
    if block:
        yield SourcePage("", _decode(b"".join(block), begin, source, report), begin)


def _decode(text: bytes, byte: int, source: TextSource, report: Report) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        report(
            ReadProblem(source.path, byte, "a page is not UTF-8 throughout; what is not is shown as \ufffd")
        )
        return text.decode("utf-8", "replace")


def _stem(source: TextSource) -> str:
    return Path(source.path).name.partition(".txt")[0].replace("_", " ")


def _parse(text: str) -> Wikicode:
    try:
        import mwparserfromhell
    except ImportError as error:
        raise MissingLibraryError(
            "a MediaWiki dump needs mwparserfromhell", fix="pip install 'evenhand[corpus]'"
        ) from error
    return mwparserfromhell.parse(text)


def _is_note(node: object) -> bool:
    tag = str(getattr(node, "tag", "")).strip().lower()
    return tag in {"ref", "math", "gallery", "timeline", "syntaxhighlight", "table", "score"}


def _is_picture(node: object) -> bool:
    return bool(_NAMESPACE.match(str(getattr(node, "title", "")).strip()))
