"""The counts of a stream: small arrays that add up, whatever the order of the parts."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.corpus.term_matcher import I64, U64, TermVocabulary

_STATE = (
    "mask unit hits has_words at_line_start units words bad_bytes first_bad unit_start unit_first extra "
    "documents document_key document_units document_block document_first noted ended"
)
STATE = np.dtype([(name, np.int64) for name in _STATE.split()])
"""What the kernel remembers from one stretch of bytes to the next."""


class KernelTally(NamedTuple):
    """What the kernel writes; it goes on from one stretch of bytes to the next."""

    state: npt.NDArray[np.void]
    """One record of `STATE`."""
    histogram: I64
    """Units by the set of their categories; one cell where there are too many categories for that."""
    pairs: I64
    """Units by emotion and group; the last row is all units, the last column units with the emotion."""
    distinct: I64
    """Distinct target terms by emotion and group."""
    axes: I64
    """Units by emotion and axis named; the last row is all units, the last column units with any group."""
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
    """Counts by block of documents; no rows where none are kept. `BlockLayout` names the columns."""
    noted: U64
    """What documents add to blocks, until it is moved there: sets of categories, or columns."""
    ended: I64
    """Documents of `noted` that have ended: where, their units, print and block (-1: by the print)."""


@dataclass(frozen=True, slots=True, eq=False)
class UnitCounts:
    """Units, words and where emotions and groups were seen."""

    units: int
    words: int
    documents: int
    """Units are grouped by them; 0 where no blocks are kept."""
    emotions: I64
    """Units with each emotion."""
    groups: I64
    """Units with each group."""
    flags: I64
    """Units with the emotion and the group."""
    distinct: I64
    """Distinct terms of the group in units with the emotion; zeros unless they were requested."""
    axes: I64
    """Units that name a group of the axis; the last is any group."""
    emotion_axes: I64
    """The same among units with each emotion."""

    def __add__(self, other: UnitCounts) -> UnitCounts:
        return UnitCounts(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    def equals(self, other: UnitCounts) -> bool:
        """Whether every count is the same."""
        return all(
            np.array_equal(getattr(self, field.name), getattr(other, field.name)) for field in fields(self)
        )


class BlockLayout(NamedTuple):
    """The columns of a block: units, emotions, groups, pairs, axes, emotions by axis, distinct terms."""

    emotions: int
    groups: int
    axes: int

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each count, in the order of the columns."""
        emotions, groups, axes = self
        pairs = (emotions, groups)
        return {
            "units": (),
            "emotions": (emotions,),
            "groups": (groups,),
            "flags": pairs,
            "axes": (axes,),
            "emotion_axes": (emotions, axes),
            "distinct": pairs,
        }

    @property
    def size(self) -> int:
        """How many columns there are."""
        return sum(map(math.prod, self.shapes.values()))

    def split(self, blocks: I64) -> BlockCounts:
        """Blocks by what their columns count."""
        ends = np.cumsum([math.prod(shape) for shape in self.shapes.values()])
        parts = zip(self.shapes.items(), np.split(blocks, ends[:-1], axis=1), strict=True)
        return BlockCounts(**{name: part.reshape(len(blocks), *shape) for (name, shape), part in parts})


class BlockCounts(NamedTuple):
    """The counts of `UnitCounts` for each block of documents, in the first dimension."""

    units: I64
    emotions: I64
    groups: I64
    flags: I64
    axes: I64
    emotion_axes: I64
    distinct: I64


def zero_counts(emotions: int, groups: int, axes: int) -> UnitCounts:
    """Zeros of the right shape."""
    shapes = BlockLayout(emotions, groups, axes + 1).shapes
    return UnitCounts(0, 0, 0, **{name: np.zeros(shapes[name], dtype=np.int64) for name in _ARRAYS})


def read_tally(tally: KernelTally, vocabulary: TermVocabulary) -> UnitCounts:
    """The counts behind a kernel's tally."""
    pairs, axes = _from_histogram(tally, vocabulary) if vocabulary.is_dense else (tally.pairs, tally.axes)
    return UnitCounts(
        units=int(tally.state["units"][0]),
        words=int(tally.state["words"][0]),
        documents=int(tally.state["documents"][0]),
        emotions=pairs[:-1, -1].copy(),
        groups=pairs[-1, :-1].copy(),
        flags=pairs[:-1, :-1].copy(),
        distinct=tally.distinct.copy(),
        axes=axes[-1].copy(),
        emotion_axes=axes[:-1].copy(),
    )


def _from_histogram(tally: KernelTally, vocabulary: TermVocabulary) -> tuple[I64, I64]:
    """Pairs and axes from the histogram: a sum over the sets that hold both."""
    emotions, groups, n_axes = (int(size) for size in vocabulary.arrays.sizes[:3])
    sets = np.flatnonzero(tally.histogram)
    sizes = tally.histogram[sets]
    has = (sets[:, None] >> np.arange(emotions + groups)) & 1
    with_emotion = np.concatenate([has[:, :emotions], np.ones((sets.size, 1), dtype=np.int64)], axis=1)
    has_group = has[:, emotions:]
    axis = vocabulary.arrays.axis[emotions:]
    has_axis = np.stack([has_group[:, axis == number].any(axis=1) for number in range(n_axes)], axis=1)
    has_axis = np.concatenate([has_axis, has_group.any(axis=1, keepdims=True)], axis=1).astype(np.int64)
    has_group = np.concatenate([has_group, np.ones((sets.size, 1), dtype=np.int64)], axis=1)
    weighted = with_emotion * sizes[:, None]
    return weighted.T @ has_group, weighted.T @ has_axis


def counts_to_rows(counts: UnitCounts) -> list[tuple[str, int, int, int]]:
    """Every count that is not zero, as (name, row, column, value)."""
    rows = [(name, 0, 0, getattr(counts, name)) for name in _SINGLE]
    for name in _ARRAYS:
        array = np.atleast_2d(getattr(counts, name))
        rows += [(name, int(i), int(j), int(array[i, j])) for i, j in np.argwhere(array)]
    return rows


def counts_from_rows(rows: Iterable[tuple[str, int, int, int]], shape: tuple[int, int, int]) -> UnitCounts:
    """The counts behind rows of `counts_to_rows`; the shape is emotions, groups, axes."""
    counts, single = zero_counts(*shape), dict.fromkeys(_SINGLE, 0)
    for name, row, column, value in rows:
        if name in _ARRAYS:
            np.atleast_2d(getattr(counts, name))[row, column] = value
        elif name in _SINGLE:
            single[name] = value
    return replace(counts, units=single["units"], words=single["words"], documents=single["documents"])


_SINGLE = ("units", "words", "documents")
_ARRAYS = ("emotions", "groups", "flags", "distinct", "axes", "emotion_axes")
