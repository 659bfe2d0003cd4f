"""Masks and terms by one regular expression with a branch for each, tried in turn at every place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from tests.oracles.terms import TermMatch

from evenhand.core.records import Mask, Mention, Text

_QUOTE = "['\u2019\u2018\u02bc]"


def mask_slowly(text: str, mentions: Sequence[Mention], *, token: Mask | None = None) -> Text:
    wanted = {mention for mention in mentions if mention.text.strip()}
    ordered = sorted(
        dict.fromkeys(mention for mention in mentions if mention in wanted), key=lambda m: _order(m.text)
    )
    pieces: list[str] = []
    spans: list[tuple[int, int]] = []
    done = length = 0
    for match in _matches(((mention.text, mention.whole_word) for mention in ordered), text):
        kept = text[done : match.start()]
        stand_in = token or ordered[(match.lastindex or 1) - 1].mask
        start = length + len(kept)
        length = start + len(stand_in)
        pieces += (kept, stand_in)
        spans.append((start, length))
        done = match.end()
    return Text("".join((*pieces, text[done:])), tuple(spans))


def terms_slowly(terms: Iterable[str], text: str) -> list[TermMatch]:
    ordered = sorted({term.strip() for term in terms} - {""}, key=_order)
    return [
        TermMatch(ordered[(match.lastindex or 1) - 1], match.start(), match.end())
        for match in _matches(((term, True) for term in ordered), text)
    ]


def _matches(branches: Iterable[tuple[str, bool]], text: str) -> Iterator[re.Match[str]]:
    pattern = "|".join(f"({_branch(term, whole_word)})" for term, whole_word in branches)
    return re.finditer(pattern, text, re.IGNORECASE) if pattern else iter(())


def _branch(term: str, whole_word: bool) -> str:
    body = r"\s+".join(re.escape(part).replace("'", _QUOTE) for part in term.split())
    return rf"(?<!\w){body}(?!\w)" if whole_word else body


def _order(term: str) -> tuple[int, str]:
    return -len(term), term
