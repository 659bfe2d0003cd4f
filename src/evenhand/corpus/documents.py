# numba gives these functions their types when it compiles them.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, call-arg, call-overload, var-annotated"
"""Documents inside the kernel: their counts go into blocks, from which the intervals come.

Sentences of one document are not independent, so that an interval must be made from documents. A table with
a row for each would not stay flat: each document is thrown into one of a fixed number of blocks by a print of
its text, and a block holds the same counts as the whole. Documents that are the same land in the same block,
wherever they stand, so that a corpus in which every document stands twice gets the intervals it had.

What a document adds is first noted as it is found (sets of categories, or columns) and moved into blocks by
the thousand: a call for each unit would cost more than counting it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from evenhand.corpus.blocks import load, lowest_bit
from evenhand.corpus.letters import FACTOR, MIX, ONE, ZERO
from evenhand.corpus.tally import (
    DOCUMENT_BLOCK,
    DOCUMENT_FIRST,
    DOCUMENT_KEY,
    DOCUMENT_UNITS,
    DOCUMENTS,
    ENDED,
    NOTED,
)

AT_EMPTY_LINE, AT_LINE_END, AT_FILE_END, AT_RECORD_END = 0, 1, 2, 3
"""Where a document ends."""
LONG = 4096
"""Entries after which a document is known by how it begins, so that it need not be kept whole."""
KEPT = np.array([(1 << (8 * size)) - 1 for size in range(9)], dtype=np.uint64)
"""The bytes of a word that is shorter than eight."""
CELL = np.uint64(1 << 63)
"""Marks an entry that is one column of the blocks, not a set of categories."""

_MIX_A, _MIX_B = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S29, _S30, _S27, _S31, _S32 = np.uint64(29), np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32)


@njit(cache=True, nogil=True)
def mixed(value):
    """A uniform 64-bit number for any other (splitmix64)."""
    value = (value ^ (value >> _S30)) * _MIX_A
    value = (value ^ (value >> _S27)) * _MIX_B
    return value ^ (value >> _S31)


@njit(cache=True, nogil=True)
def is_empty_line(data, newline, at_line_start):
    """Whether nothing but blanks stands in the line that ends here."""
    place = newline - 1
    while place >= 0 and (data[place] == 32 or data[place] == 9 or data[place] == 13):
        place -= 1
    return data[place] == 10 if place >= 0 else at_line_start == 1


@njit(cache=True, nogil=True)
def printed(key, address, first, last):
    """The print of a document after one more unit: its first and last bytes and its length."""
    begin = max(first, 0)
    size = min(last - begin, 8)
    head = load(address + begin) & KEPT[size]
    tail = load(address + last - size) & KEPT[size]
    return (key ^ (key >> _S29) ^ head ^ (tail * MIX) ^ (np.uint64(last - first) << _S32)) * FACTOR


@njit(cache=True, nogil=True)
def end_document(state, ended):
    """Note that the document that is being read ends here."""
    row = ended[state[ENDED]]
    row[0], row[1], row[2] = state[NOTED], state[DOCUMENT_UNITS], state[DOCUMENT_KEY]
    row[3] = state[DOCUMENT_BLOCK]
    state[ENDED] += 1
    state[DOCUMENT_FIRST], state[DOCUMENT_BLOCK] = state[NOTED], -1
    state[DOCUMENT_KEY], state[DOCUMENT_UNITS] = 0, 0


@njit(cache=True, nogil=True)
def name_long_document(state, n_blocks):
    """Choose the block of a document that has become long: from then on it need not be kept whole."""
    if state[DOCUMENT_BLOCK] < 0 and state[NOTED] - state[DOCUMENT_FIRST] >= LONG:
        state[DOCUMENT_BLOCK] = _block(state[DOCUMENT_KEY], n_blocks)


@njit(cache=True, nogil=True)
def move_into_blocks(state, blocks, noted, ended, sizes, axis):
    """Add what was noted to the blocks of its documents; a short one that goes on stays noted."""
    at = 0
    for i in range(state[ENDED]):
        block = ended[i, 3] if ended[i, 3] >= 0 else _block(ended[i, 2], blocks.shape[0])
        row = blocks[block]
        row[0] += ended[i, 1]
        _add(row, noted, at, ended[i, 0], sizes, axis)
        at = ended[i, 0]
    state[DOCUMENTS] += state[ENDED]
    state[ENDED] = 0
    if state[DOCUMENT_BLOCK] >= 0:
        _add(blocks[state[DOCUMENT_BLOCK]], noted, at, state[NOTED], sizes, axis)
        at = state[NOTED]
    left = state[NOTED] - at
    for i in range(left):
        noted[i] = noted[at + i]
    state[NOTED], state[DOCUMENT_FIRST] = left, 0


@njit(cache=True, nogil=True)
def _block(key, n_blocks):
    return np.int64(mixed(np.uint64(key)) & np.uint64(n_blocks - 1))


@njit(cache=True, nogil=True)
def _add(row, noted, first, last, sizes, axis):
    """Add entries to the counts of a block; `Layout` says where they stand."""
    emotions, groups, axes = sizes[0], sizes[1], sizes[2]
    of_emotions = (ONE << np.uint64(emotions)) - ONE
    flags = 1 + emotions + groups
    of_axes = flags + emotions * groups
    of_emotion_axes = of_axes + axes
    for i in range(first, last):
        entry = noted[i]
        if entry & CELL:
            row[np.int64(entry ^ CELL)] += 1
            continue
        named, felt, axes_named = entry >> np.uint64(emotions), entry & of_emotions, ZERO
        rest = named
        while rest:
            group = lowest_bit(rest)
            rest &= rest - ONE
            axes_named |= ONE << np.uint64(axis[emotions + group])
            row[1 + emotions + group] += 1
        rest = axes_named
        while rest:
            row[of_axes + lowest_bit(rest)] += 1
            rest &= rest - ONE
        while felt:
            emotion = lowest_bit(felt)
            felt &= felt - ONE
            row[1 + emotion] += 1
            rest = named
            while rest:
                row[flags + emotion * groups + lowest_bit(rest)] += 1
                rest &= rest - ONE
            rest = axes_named
            while rest:
                row[of_emotion_axes + emotion * axes + lowest_bit(rest)] += 1
                rest &= rest - ONE
