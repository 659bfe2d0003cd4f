"""The counts of a stream: small arrays that add up, whatever the order of the parts."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.corpus.term_matcher import I64, U64

_STATE = (
    "mask unit hits has_words at_line_start units words with_group bad_bytes first_bad unit_start unit_first "
    "extra documents document_key document_units document_block document_first noted ended"
)
STATE = np.dtype([(name, np.int64) for name in _STATE.split()])
"""What the kernel remembers from one stretch of bytes to the next."""


class KernelTally(NamedTuple):
    """What the kernel writes; it goes on from one stretch of bytes to the next."""

    state: npt.NDArray[np.void]
    """One record of `STATE`."""
    hits: I64
    """The distinct terms of the unit."""
    term_seen: I64
    category_seen: I64
    priority: U64
    """The lowest priorities of each cell: a sample that does not depend on the order of work."""
    sample: I64
    """For each of them: stretch number, first and last byte."""
    worst: U64
    blocks: I64
    """Counts by block of documents. `BlockLayout` names the columns."""
    noted: U64
    """What documents add to blocks, until it is moved there: sets of categories, or columns."""
    ended: I64
    """Documents of `noted` that have ended: where, their units, print and block (-1: by the print)."""


class UnitCounts(NamedTuple):
    """Units and words, and by block of documents where emotions and groups were seen."""

    units: int
    words: int
    documents: int
    """Units are grouped by them."""
    with_group: int
    """Units that name a group."""
    blocks: I64
    """`BlockLayout` names the columns; their sums are the counts of the stream."""


class BlockLayout(NamedTuple):
    """The columns of a block: units, emotions, groups, pairs, axes, emotions by axis, distinct terms."""

    emotions: int
    groups: int
    axes: int

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of each field of `BlockCounts`, in the order of the columns."""
        emotions, groups, axes = self
        pairs = (emotions, groups)
        return ((), (emotions,), (groups,), pairs, (axes,), (emotions, axes), pairs)

    @property
    def size(self) -> int:
        """How many columns there are."""
        return sum(map(math.prod, self.shapes))

    def split(self, blocks: I64) -> BlockCounts:
        """Blocks by what their columns count; also the sum of some blocks, which is a row."""
        ends = np.cumsum([math.prod(shape) for shape in self.shapes])
        parts = zip(self.shapes, np.split(blocks, ends[:-1], axis=-1), strict=True)
        return BlockCounts(*(part.reshape((*blocks.shape[:-1], *shape)) for shape, part in parts))


class BlockCounts(NamedTuple):
    """The counts of each block of documents, in the first dimension; a unit counts once in each of them."""

    units: I64
    emotions: I64
    """Units with each emotion."""
    groups: I64
    """Units with each group."""
    flags: I64
    """Units with the emotion and the group."""
    axes: I64
    """Units that name a group of the axis."""
    emotion_axes: I64
    """The same among units with each emotion."""
    distinct: I64
    """Distinct terms of the group in units with the emotion; zeros unless they were requested."""
