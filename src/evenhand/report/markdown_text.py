"""Words and tables as Markdown that no text of ours or of a model can break out of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_LINKING = re.compile(
    r"@|#(?=\d)|\b[a-z][a-z0-9+.-]{0,30}:(?=//)|\bmailto:|\bxmpp:|\bwww(?=\.)", re.IGNORECASE
)
"""What code hosts turn into mentions, references and links although nobody wrote one.

The bound keeps a text of words and dots from being read to its end once a word.
"""
_JOINER = "\u2060"
"""Word joiner: nothing to see, and no link can reach over it."""
_SPECIAL = frozenset("\\`*_{}[]()<>#+!|~$")


def escaped(text: str) -> str:
    """The text with everything Markdown, HTML or a code host would read as markup made plain, on one line.

    Nobody is mentioned, and nothing becomes a link.
    """
    line = _LINKING.sub(lambda match: match[0] + _JOINER, " ".join(text.split()))
    return "".join(f"\\{letter}" if letter in _SPECIAL else letter for letter in line.replace("&", "&amp;"))


def bullets(sentences: Iterable[str]) -> str:
    """A list, one escaped sentence a line."""
    return "\n".join(f"- {escaped(sentence)}" for sentence in sentences)


def grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with its head; every cell is escaped."""
    first, *rest = ([escaped(cell) for cell in row] for row in (head, *rows))
    return "\n".join(f"| {' | '.join(line)} |" for line in (first, ["---"] * len(head), *rest))
