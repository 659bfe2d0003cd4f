"""Text that a terminal shows and a CI runner logs, and neither obeys.

The runner of GitHub Actions reads both streams of a step. A line that begins with ``::``, after any white
space, is a command, and so is ``##[`` anywhere in a line; ``##vso[`` and its like are those of other runners.
"""

from __future__ import annotations

import logging
import re
from typing import Final
from unicodedata import category

_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Controls, marks of direction, halves of characters, and line ends that are none to us."""
_KEPT: Final = "\n\t\u00ad\u200c\u200d"
"""Line ends, soft hyphens, and what joins letters or the parts of an emoji."""
_INVISIBLE: Final = r"(?:\x1b\[[0-9;?]*[A-Za-z]|[\s\x00-\x1f\x7f-\x9f\u200b-\u200f\u2060\ufeff])*"
"""What may stand before a command: white space, control characters, colours, marks without a width."""
_AT_START: Final = re.compile(rf"((?:\A|[\r\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029]){_INVISIBLE})::")
_ANYWHERE: Final = re.compile(r"##(?=\w*\[)")


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


def escape_commands(text: str) -> str:
    r"""The text with a backslash inside whatever a runner would obey: ``\::add-mask::``, ``#\#[group]``."""
    return _ANYWHERE.sub(r"#\\#", _AT_START.sub(r"\1\\::", text))
