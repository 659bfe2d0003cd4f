"""Text that is safe to print: terminals and CI runners show it and execute nothing in it.

The runner of GitHub Actions reads both streams of a step. A line that begins with ``::``, after any white
space, is a command, and so is ``##[`` anywhere in a line; other runners use ``##vso[`` and the like.
Locale-aware text comparison ignores characters without a width, also between the colons.
"""

from __future__ import annotations

import logging
import re
from typing import Final
from unicodedata import category

_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Control characters, direction marks, surrogates, and line ends that we do not treat as such."""
_KEPT: Final = "\n\t\u00ad\u200c\u200d"
"""Line ends, soft hyphens, and characters that join letters or the parts of an emoji."""
_IGNORABLE: Final = (
    r"\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Characters that Unicode allows comparisons to ignore."""
_INVISIBLE: Final = rf"(?:\x1b\[[0-9;?]*[A-Za-z]|[\s\x00-\x1f\x7f-\x9f{_IGNORABLE}])*"
"""What may precede a command: white space, control characters, colours, marks without a width."""
# The colons are optional, so that a line without them is scanned once, not once per line end.
_AT_START: Final = re.compile(
    rf"((?:\A|[\r\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029]){_INVISIBLE})(:[{_IGNORABLE}]*:)?"
)
_ANYWHERE: Final = re.compile(rf"#(?=[{_IGNORABLE}]*#[\w{_IGNORABLE}]*\[)")


def printable(text: str) -> str:
    """The text with characters that move the cursor, change direction or hide text replaced by U+FFFD."""
    if text.isprintable():
        return text
    return "".join(
        "\ufffd" if category(letter) in _HIDDEN and letter not in _KEPT else letter for letter in text
    )


class PrintableFormatter(logging.Formatter):
    """Formats log messages as safe text, whatever characters the names in them contain."""

    def format(self, record: logging.LogRecord) -> str:
        """The message, safe for the terminal."""
        return printable(super().format(record))


def escape_commands(text: str) -> str:
    r"""The text with a backslash in everything a runner would execute: ``\::add-mask::``, ``#\#[group]``."""
    text = _AT_START.sub(lambda start: f"{start[1]}\\{start[2]}" if start[2] else start[1], text)
    return _ANYWHERE.sub(r"#\\", text)
