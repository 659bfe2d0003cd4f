"""Numbers and names as a reader sees them. Tables and JSON keep the raw spelling."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from evenhand.core.records import ALL, REST

MINUS = "−"
_PROPER = frozenset(
    ("christianity", "islam", "judaism", "hinduism", "buddhism", "sikhism", "jainism", "taoism", "marxism")
)
"""Words that English writes with a capital; datasets often do not."""
_HIDING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls, but for tab and line feed
    "\u2028-\u202e\u2066-\u2069"  # line separators; embeddings, overrides and isolates of direction
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"  # marks and tags that are never seen
)


def show_control_characters(text: str) -> str:
    """The text with control and direction-changing characters shown as a replacement mark."""
    return _HIDING.sub("\ufffd", text)


def format_name(identifier: str) -> str:
    """An identifier as words: ``European_Americans`` is "European Americans"."""
    words = " ".join(show_control_characters(identifier).replace("_", " ").split())
    return (words.capitalize() if words in _PROPER else words) or "(no name)"


def format_baseline(identifier: str, axis: str | None = None) -> str:
    """A baseline as words; the reserved ones say what they stand for, without the axis in short."""
    if identifier == REST:
        return "the other groups" if axis is None else f"the other groups of {format_name(axis)}"
    if identifier == ALL:
        return "all groups" if axis is None else f"all groups of {format_name(axis)} together"
    return format_name(identifier)


def format_number(value: float | None, *, signed: bool = False) -> str:
    """A number with about three significant digits and a real minus sign; null as nothing."""
    if value is None:
        return ""
    size = abs(value)
    decimals = 3 if size < 1 else 2 if size < 10 else 1 if size < 1000 else 0
    return _sign(f"{value:{'+' * signed},.{decimals}f}")


def format_value(value: object) -> str:
    """A value of a table: amounts with commas, other numbers with about three digits, null as nothing."""
    if value is None or isinstance(value, float):
        return format_number(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def format_exact(value: float) -> str:
    """A chosen number as it was chosen, such as a cut or an end of a range."""
    return _sign(f"{value:g}")


def format_points(difference: float | None, *, signed: bool = False) -> str:
    """A difference of two shares in percentage points, without the unit; null as nothing."""
    if difference is None:
        return ""
    value = 100 * difference
    decimals = 2 if 0 < abs(value) < 0.1 else 1
    return _sign(f"{value:{'+' * signed}.{decimals}f}")


def format_percent(share: float) -> str:
    """A share in percent, with the unit."""
    return f"{format_points(share)} %"


def format_p(p: float | None) -> str:
    """A p-value with two significant digits; "< 0.001" below a thousandth."""
    if p is None:
        return "not tested"
    if p < 0.001:
        return "< 0.001"
    return f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def format_count(amount: int, noun: str) -> str:
    """An amount with its noun: "1 template", "10 templates", "2 entities"."""
    return f"{amount:,} {noun if amount == 1 else pluralise(noun)}"


def join_words(words: Sequence[str]) -> str:
    """Words as a list in a sentence: "a", "a and b", "a, b and c"."""
    return ", ".join(words) if len(words) < 2 else f"{', '.join(words[:-1])} and {words[-1]}"


def pluralise(noun: str) -> str:
    """The plural of a plain English noun."""
    if noun.endswith("y") and not noun.endswith(("ay", "ey", "oy", "uy")):
        return noun[:-1] + "ies"
    return noun + "s"


def replace_minus(text: str) -> str:
    """The text with a hyphen for the minus sign, which not every terminal has."""
    return text.replace(MINUS, "-")


def _sign(text: str) -> str:
    # "-0.0" is not a direction.
    if text.startswith(("-", "+")) and not text.strip("+-0., "):
        text = text[1:]
    return text.replace("-", MINUS)


_LINKING = re.compile(
    r"@|#(?=\d)|\b[a-z][a-z0-9+.-]{0,30}:(?=//)|\bmailto:|\bxmpp:|\bwww(?=\.)", re.IGNORECASE
)
"""What code hosts turn into mentions, references and links although nobody wrote one.

The bound keeps a text of words and dots from being read to its end for every word.
"""
_JOINER = "\u2060"
"""Word joiner: nothing to see, and no link can reach over it."""
_SPECIAL = frozenset("\\`*_{}[]()<>#+!|~$")


def escape_markdown(text: str) -> str:
    """The text with everything Markdown, HTML or a code host would read as markup made plain, on one line.

    Nobody is mentioned, nothing becomes a link, and control characters are shown as a mark.
    """
    plain = " ".join(show_control_characters(text).split())
    line = _LINKING.sub(lambda match: match[0] + _JOINER, plain)
    return "".join(f"\\{letter}" if letter in _SPECIAL else letter for letter in line.replace("&", "&amp;"))


def bullet_list(sentences: Iterable[str]) -> str:
    """A list, one escaped sentence a line."""
    return "\n".join(f"- {escape_markdown(sentence)}" for sentence in sentences)


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with its head; every cell is escaped."""
    first, *rest = ([escape_markdown(cell) for cell in row] for row in (head, *rows))
    return "\n".join(f"| {' | '.join(line)} |" for line in (first, ["---"] * len(head), *rest))
