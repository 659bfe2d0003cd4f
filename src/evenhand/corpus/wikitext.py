"""Articles of a MediaWiki XML dump as plain text: templates, tables, references and markup taken out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import BinaryIO
from xml.etree.ElementTree import Element, iterparse

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
"""None of these may go back over what it has read: a page with a thousand things that never close must not
hold up a run."""


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
    text = _FILE.sub(" ", _without_notes(unescape(wikitext)))
    for _ in range(20):
        shorter = _INNERMOST.sub(" ", text)
        if shorter == text:
            break
        text = shorter
    text = _OUTSIDE.sub(r"\1", _LINK.sub(r"\1", text))
    return _MARKS.sub("", text)


def _without_notes(text: str) -> str:
    """The text without comments, references and the like; one that never closes is left as it is."""
    kept, at, place = list[str](), 0, 0
    endless = set[str]()
    while found := _OPENING.search(text, place):
        tag, place = (found[1] or "").lower(), found.end()
        end = (_EMPTY_TAG.match(text, place) if tag else None) or (
            None if tag in endless else _CLOSING[tag].search(text, place)
        )
        if end is None:
            endless.add(tag)
            continue
        kept += (text[at : found.start()], " ")
        at = place = end.end()
    return "".join((*kept, text[at:]))


def _article(page: Element) -> str:
    parts = {_name(element): element.text or "" for element in page.iter()}
    is_article = parts.get("ns", "0").strip() == "0" and "redirect" not in parts
    return parts.get("text", "") if is_article else ""


def _name(element: Element) -> str:
    return element.tag.rpartition("}")[2]
