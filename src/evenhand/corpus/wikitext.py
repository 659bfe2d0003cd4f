"""Articles of a MediaWiki XML dump as plain text: templates, tables, references and markup taken out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import BinaryIO
from xml.etree.ElementTree import Element, iterparse

_INNERMOST = re.compile(r"\{\{[^{}]*\}\}|\{\|(?:[^{|]|\|(?!\})|\{(?!\|))*\|\}")
_REMOVED = re.compile(
    r"<!--.*?-->|<(ref|math|gallery|timeline|syntaxhighlight)\b[^>]*?/>|"
    r"<(ref|math|gallery|timeline|syntaxhighlight)\b.*?</\2>|\[\[(?:File|Image|Category):[^\[\]]*(?:\[\[[^\]]*\]\][^\[\]]*)*\]\]",
    re.DOTALL | re.IGNORECASE,
)
_LINK = re.compile(r"\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]")
_OUTSIDE = re.compile(r"\[https?://\S+\s*([^\]]*)\]")
_MARKS = re.compile(r"'{2,}|^[=*#:;]+\s*|\s*=+$|<[^>\n]{1,100}>", re.MULTILINE)


def articles(file: BinaryIO) -> Iterator[str]:
    """The plain text of each article (namespace 0, no redirects); memory holds one page at a time."""
    root: Element | None = None
    for event, element in iterparse(file, events=("start", "end")):
        if root is None:
            root = element
        if event == "end" and _name(element) == "page":
            text = _article(element)
            # Parsed pages would stay children of the root.
            root.clear()
            if text:
                yield plain(text)


def plain(wikitext: str) -> str:
    """The text a reader of the page sees, without tables, notes and boxes."""
    text = _REMOVED.sub(" ", unescape(wikitext))
    for _ in range(20):
        shorter = _INNERMOST.sub(" ", text)
        if shorter == text:
            break
        text = shorter
    text = _OUTSIDE.sub(r"\1", _LINK.sub(r"\1", text))
    return _MARKS.sub("", text)


def _article(page: Element) -> str:
    parts = {_name(element): element.text or "" for element in page.iter()}
    is_article = parts.get("ns", "0").strip() == "0" and "redirect" not in parts
    return parts.get("text", "") if is_article else ""


def _name(element: Element) -> str:
    return element.tag.rpartition("}")[2]
