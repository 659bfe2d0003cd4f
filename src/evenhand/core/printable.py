"""Text that a terminal shows and a CI runner logs, and neither obeys.

The runner of GitHub Actions reads both streams of a step. A line that begins with ``::``, after any white
space, is a command, and so is ``##[`` anywhere in a line; ``##vso[`` and its like are those of other runners.
What compares text by the rules of a language passes over characters without a width, between the colons too.
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
_IGNORABLE: Final = (
    r"\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""What Unicode says may be ignored where text is compared."""
_INVISIBLE: Final = rf"(?:\x1b\[[0-9;?]*[A-Za-z]|[\s\x00-\x1f\x7f-\x9f{_IGNORABLE}])*"
"""What may stand before a command: white space, control characters, colours, marks without a width."""
# The colons are optional: lines without them are passed over once, not once from each of their line ends.
_AT_START: Final = re.compile(
    rf"((?:\A|[\r\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029]){_INVISIBLE})(:[{_IGNORABLE}]*:)?"
)
_ANYWHERE: Final = re.compile(rf"#(?=[{_IGNORABLE}]*#[\w{_IGNORABLE}]*\[)")


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
    text = _AT_START.sub(lambda start: f"{start[1]}\\{start[2]}" if start[2] else start[1], text)
    return _ANYWHERE.sub(r"#\\", text)
