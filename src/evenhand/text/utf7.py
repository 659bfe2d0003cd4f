"""UTF-7 left in text that was saved in the wrong encoding: ``+ACM-`` for #, ``+AEA-`` for @."""

from __future__ import annotations

import re
from typing import Final

_RESIDUE: Final = re.compile(r"\+[A-Za-z0-9/]+-")


def repaired(text: str) -> str:
    """The text with the residue of UTF-7 turned back into what it stands for.

    >>> repaired("so +ACM-happy+ACE-")
    'so #happy!'
    """
    return _RESIDUE.sub(_decoded, text)


def _decoded(match: re.Match[str]) -> str:
    try:
        return match[0].encode("ascii").decode("utf-7")
    except UnicodeError:
        # A plus sign, letters and a dash that are no code: left as they are.
        return match[0]
