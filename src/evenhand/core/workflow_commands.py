"""Lines that a CI runner obeys: text from data must never become one of them.

The runner of GitHub Actions reads both streams of a step. A line that begins with ``::``, after any white
space, is a command, and so is ``##[`` anywhere in a line; ``##vso[`` and its like are those of other runners.
What compares text by the rules of a language passes over characters without a width, between the colons too.
"""

from __future__ import annotations

import re
from typing import Final

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


def escape_commands(text: str) -> str:
    r"""The text with a backslash inside whatever a runner would obey: ``\::add-mask::``, ``#\#[group]``."""
    return _ANYWHERE.sub(r"#\\", _AT_START.sub(_escape_colons, text))


def _escape_colons(start: re.Match[str]) -> str:
    before, colons = start.groups()
    return before if colons is None else f"{before}\\{colons}"
