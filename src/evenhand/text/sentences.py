"""Where a sentence ends: for whole texts, and for texts that are still being written.

A sentence ends after a run of ``.``, ``?``, ``!`` or an ellipsis, with the closing quotes and brackets that
follow it, where white space or the end of the text comes next; or before a blank line. It does not end

* after a title or other abbreviation that leads to a name or a number (``Mr.``, ``e.g.``, ``No. 5``),
* after an initial, a dotted abbreviation or a shortened word (``J.``, ``U.S.``, ``Inc.``), unless a word that
  usually opens a sentence follows ("in the U.S. The law ..."),
* after the number of a list item that opens the text ("1. First"),
* after an ellipsis, or after a quotation closed by ``?"`` or ``!"``, when the text goes on in lower case.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# A run starts where no stop precedes it, so that a long run of dots is looked at once.
_STOP = re.compile(
    r"(?<![.?!…])(?P<stops>[.?!…]++)(?P<closers>[\"'”’)\]»]*+)(?=\s|\Z)|(?P<blank>\n[^\S\n]*\n)"
)
_OPENERS = "\"'“‘([«"
_NEXT_WORD = re.compile(r"\s*[\"'“‘(\[«]*(?P<word>\w*)(?P<after>\W?)", re.DOTALL)
_DOTTED = re.compile(r"(?:[A-Za-z]{1,2}\.)+[A-Za-z]{1,2}\Z")


def _list(words: str) -> frozenset[str]:
    return frozenset(words.split())


_NEVER_LAST = _list(
    "mr mrs ms mx dr prof rev hon gen col lt sgt capt cmdr gov sen rep pres mt messrs mme e.g i.e cf viz vs"
)
_BEFORE_NUMBER = _list("no nos vol pp p fig ch sec art jan feb mar apr jun jul aug sep sept oct nov dec")
_MAYBE_LAST = _list("st jr sr inc ltd co corp bros etc al est ave blvd rd dept univ approx ca")
_STARTERS = _list(
    "a after all also although an and another as at because before both but by despite during each even "
    "every for from he her here his how however i if in instead it its later many meanwhile more most my no "
    "not now of on once one only or other our people she since so some soon such than that the their then "
    "there these they this those though through to today two under until we what when where which while who "
    "why with yet you your"
)


def first_sentence_end(text: str, *, complete: bool = True) -> int | None:
    """The index just after the first sentence (closing quotes included), or None where none has ended.

    Args:
        text: The text, leading spaces allowed.
        complete: False while more may follow: then a stop counts only once what comes after it decides. An
            index given for an incomplete text is the index of every longer text that begins with it.

    >>> first_sentence_end(" It cost 3.5 dollars. Then"), first_sentence_end("It rains.", complete=False)
    (21, None)
    """
    end, is_sure = next(_find_ends(text, complete=complete), (None, False))
    return end if is_sure else None


def cut_first_sentence(text: str) -> str:
    """The text up to the end of its first sentence, or all of it where no sentence ends."""
    return text[: first_sentence_end(text)]


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, stripped, in order; a last one without a stop included."""
    ends = [end for end, _ in _find_ends(text, complete=True)]
    pieces = (text[start:end].strip() for start, end in zip([0, *ends], [*ends, len(text)], strict=True))
    return [piece for piece in pieces if piece]


def _find_ends(text: str, *, complete: bool) -> Iterator[tuple[int, bool]]:
    """The places where a sentence ends (True), and those where more text decides (False)."""
    begin = 0
    for match in _STOP.finditer(text):
        while begin < len(text) and text[begin].isspace():
            begin += 1
        end = match.start() if match["blank"] else match.end()
        # The number of a list item ends no sentence.
        head = text[begin : min(match.start(), begin + 4)]
        if end <= begin or (len(head) <= 3 and head.isdigit()):
            continue
        is_end = True if match["blank"] else _judge(text, match, complete=complete)
        if is_end is not False:
            yield end, is_end is True
            begin = end


def _kind(text: str, match: re.Match[str]) -> str:
    """What decides: nothing more (plain, never), or the next word (number, maybe, lower)."""
    stops = match["stops"]
    if stops != ".":
        quoted = bool(match["closers"]) and stops[-1] in "?!"
        return "lower" if quoted or set(stops) <= {".", "…"} else "plain"
    start = end = match.start()
    while start > 0 and not text[start - 1].isspace() and end - start < 16:
        start -= 1
    word = text[start:end].lstrip(_OPENERS)
    lower = word.lower()
    if lower in _NEVER_LAST:
        return "never"
    if lower in _BEFORE_NUMBER:
        return "number"
    initial = len(word) == 1 and word.isupper()
    return "maybe" if initial or lower in _MAYBE_LAST or _DOTTED.match(word) else "plain"


def _judge(text: str, match: re.Match[str], *, complete: bool) -> bool | None:
    """Whether a sentence ends here, where needed by the next word; None where more text decides."""
    if not complete and match.end() == len(text):
        return None
    kind = _kind(text, match)
    if kind in ("plain", "never"):
        return kind == "plain"
    following = _NEXT_WORD.match(text, match.end())
    word, after = (following["word"], following["after"]) if following else ("", "")
    if not after and (not word or kind == "maybe"):
        if not complete:
            return None
        if not word:
            return True
    return {
        "number": not word[:1].isdigit(),
        "lower": not word[:1].islower(),
        "maybe": word[:1].isupper() and word.lower() in _STARTERS,
    }[kind]
