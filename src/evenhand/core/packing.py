"""How much a packed file may unpack to: a few kilobytes can be made to stand for any amount of memory."""

from __future__ import annotations

from typing import Final

RATIO: Final = 200
"""Text shrinks to a third or a tenth, repeated lines to a hundredth, what is made to harm to a thousandth."""
ALWAYS: Final = 1 << 28
"""Bytes that any file may unpack to: so much never harms."""


def most_unpacked(size: int) -> int:
    """The bytes that a packed file of so many bytes may unpack to.

    >>> most_unpacked(1_000) == ALWAYS, most_unpacked(10_000_000)
    (True, 2000000000)
    """
    return max(ALWAYS, RATIO * size)
