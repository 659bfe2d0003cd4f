"""The counts of a stream: small arrays that can be added up in any order."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.corpus.term_matcher import I64, U64

_STATE = (
    "mask unit hits has_words at_line_start units words with_group bad_bytes first_bad unit_start unit_first "
    "extra documents document_key document_units document_block noted"
)
STATE = np.dtype([(name, np.int64) for name in _STATE.split()])
"""The state that the kernel carries from one stretch of bytes to the next."""


class KernelTally(NamedTuple):
    """The arrays that the kernel writes, carried from one stretch of bytes to the next."""

    state: npt.NDArray[np.void]
    """One record of `STATE`."""
    hits: I64
    """The distinct terms of the unit."""
    term_seen: I64
    category_seen: I64
    priority: U64
    """The lowest priorities of each cell: a sample independent of the order of work."""
    sample: I64
    """For each sample: chunk number, first and last byte."""
    worst: U64
    blocks: I64
    """Counts by block of documents. `BlockLayout` names the columns."""
    noted: U64
    """Entries of the document, not yet added to its block: sets of categories, or columns."""


class UnitCounts(NamedTuple):
    """Units and words in total; occurrences of emotions and groups by block of documents."""

    units: int
    words: int
    documents: int
    """The documents that the units belong to."""
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
        """The number of columns."""
        return sum(map(math.prod, self.shapes))

    def split(self, blocks: I64) -> BlockCounts:
        """Split blocks, or a row that sums some of them, by what the columns count."""
        ends = np.cumsum([math.prod(shape) for shape in self.shapes])
        parts = zip(self.shapes, np.split(blocks, ends[:-1], axis=-1), strict=True)
        return BlockCounts(*(part.reshape((*blocks.shape[:-1], *shape)) for shape, part in parts))


class BlockCounts(NamedTuple):
    """The counts of each block of documents, in the first dimension; a unit counts once in each field."""

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
    """Distinct terms of the group in units with the emotion; zeros unless requested."""
