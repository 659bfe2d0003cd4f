"""Lines that a CI runner obeys: text from data must never become one of them.

The runner of GitHub Actions reads both streams of a step. A line that begins with ``::``, after any white
space, is a command, and so is ``##[`` anywhere in a line; ``##vso[`` and its like are those of other runners.
"""

from __future__ import annotations

import re
from typing import Final

_INVISIBLE: Final = r"(?:\x1b\[[0-9;?]*[A-Za-z]|[\s\x00-\x1f\x7f-\x9f\u200b-\u200f\u2060\ufeff])*"
"""What may stand before a command: white space, control characters, colours, marks without a width."""
_AT_START: Final = re.compile(rf"((?:\A|[\r\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029]){_INVISIBLE})::")
_ANYWHERE: Final = re.compile(r"##(?=\w*\[)")


def escape_commands(text: str) -> str:
    r"""The text with a backslash inside whatever a runner would obey: ``\::add-mask::``, ``#\#[group]``."""
    return _ANYWHERE.sub(r"#\\#", _AT_START.sub(r"\1\\::", text))
