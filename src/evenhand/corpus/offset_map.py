"""Where a byte stood in its file, after the paper's rule has deleted bytes before it."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from evenhand.corpus.tokenisation import PAPER_DELETED

_IS_DELETED = np.zeros(256, dtype=np.bool_)
_IS_DELETED[np.frombuffer(PAPER_DELETED, dtype=np.uint8)] = True


class _Stretch(NamedTuple):
    shortened: int
    original: int
    data: bytes


class OffsetMap:
    """The bytes of a file without those the paper deletes; the last of them are kept, to find places again.

    Args:
        start: The place of the first byte in the file.
    """

    def __init__(self, start: int) -> None:
        self._stretches: deque[_Stretch] = deque()
        self._shortened, self._original = start, start

    def delete_bytes(self, data: bytes) -> bytes:
        """The bytes that are left."""
        left = data.translate(None, PAPER_DELETED)
        self._stretches.append(_Stretch(self._shortened, self._original, data))
        self._shortened, self._original = self._shortened + len(left), self._original + len(data)
        return left

    def forget(self, before: int) -> None:
        """Let go of what no place that will be asked for lies in."""
        while len(self._stretches) > 1 and self._stretches[1].shortened <= before:
            self._stretches.popleft()

    def to_original(self, place: int) -> int:
        """Where the byte at a place of the shortened text stands in the file."""
        stretch = next(part for part in reversed(self._stretches) if part.shortened <= place)
        kept = np.flatnonzero(~_IS_DELETED[np.frombuffer(stretch.data, dtype=np.uint8)])
        within = place - stretch.shortened
        return stretch.original + (int(kept[within]) if within < kept.size else len(stretch.data))
