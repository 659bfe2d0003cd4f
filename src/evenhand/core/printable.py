"""Text that a terminal shows and does not obey."""

from __future__ import annotations

import logging
from typing import Final
from unicodedata import category

_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Controls, marks of direction, halves of characters, and line ends that are none to us."""
_KEPT: Final = "\n\t\u00ad\u200c\u200d"
"""Line ends, soft hyphens, and what joins letters or the parts of an emoji."""


def printable(text: str) -> str:
    """The text with every character that moves the cursor, turns the direction or hides shown as U+FFFD."""
    if text.isprintable():
        return text
    return "".join(
        "\ufffd" if category(letter) in _HIDDEN and letter not in _KEPT else letter for letter in text
    )


class PrintableFormatter(logging.Formatter):
    """Log messages as text, whatever characters the names in them hold."""

    def format(self, record: logging.LogRecord) -> str:
        """The message, as the terminal may be given it."""
        return printable(super().format(record))
