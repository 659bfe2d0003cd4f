"""What the end of a unit adds: pairs of categories, distinct terms, samples."""

from __future__ import annotations

import numpy as np
from numba import njit

from evenhand.corpus.letters import FACTOR, KEPT_BITS, MIX, ONE, ZERO, count_trailing_zeros, load_word
from evenhand.corpus.term_matcher import DENSE_BITS

# numba infers the types of these functions when it compiles them.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, call-arg, call-overload, var-annotated"
# ruff: noqa: C901, PLR0913

AT_RECORD_END, AT_EMPTY_LINE, AT_LINE_END, AT_FILE_END = 0, 1, 2, 3
"""Where a document ends."""
LONG = 4096
"""Entries after which a document is identified by its beginning, so that it need not be kept whole."""
CELL = np.uint64(1 << 63)
"""Marks an entry that is one column of the blocks, not a set of categories."""

_MIX_A, _MIX_B = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S29, _S30, _S27, _S31, _S32 = np.uint64(29), np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32)


@njit(cache=True, nogil=True)
def mix_bits(value):
    """A uniform 64-bit hash of a number (splitmix64)."""
    value = (value ^ (value >> _S30)) * _MIX_A
    value = (value ^ (value >> _S27)) * _MIX_B
    return value ^ (value >> _S31)


@njit(cache=True, nogil=True)
def is_empty_line(data, newline, at_line_start):
    """Whether the line that ends here holds only blanks."""
    place = newline - 1
    while place >= 0 and (data[place] == 32 or data[place] == 9 or data[place] == 13):
        place -= 1
    return data[place] == 10 if place >= 0 else at_line_start == 1


@njit(cache=True, nogil=True)
def fingerprint(key, address, first, last):
    """The fingerprint of a document after one more unit: the unit's first and last bytes and length."""
    begin = max(first, 0)
    size = min(last - begin, 8)
    head = load_word(address + begin) & KEPT_BITS[size]
    tail = load_word(address + last - size) & KEPT_BITS[size]
    key = np.uint64(key)
    key = (key ^ (key >> _S29) ^ head ^ (tail * MIX) ^ (np.uint64(last - first) << _S32)) * FACTOR
    return np.int64(key)


@njit(cache=True, nogil=True)
def settle_document(state, ends, blocks, noted, sizes, axis):
    """Add what is noted to the block of the document, if it ends here or is too long to be kept whole."""
    if not ends and state.noted < LONG:
        return
    if state.document_block < 0:
        state.document_block = np.int64(
            mix_bits(np.uint64(state.document_key)) & np.uint64(blocks.shape[0] - 1)
        )
    row = blocks[state.document_block]
    _add(row, noted, state.noted, sizes, axis)
    state.noted = 0
    if ends:
        row[0] += state.document_units
        state.documents += 1
        state.document_key, state.document_units, state.document_block = 0, 0, -1


@njit(cache=True, nogil=True)
def _add(row, noted, n_noted, sizes, axis):
    """Add entries to the counts of a block; `BlockLayout` defines the columns."""
    emotions, groups, axes = sizes[0], sizes[1], sizes[2]
    axes_start = 1 + emotions + groups * (1 + emotions)
    for entry in noted[:n_noted]:
        if entry & CELL:
            row[np.int64(entry ^ CELL)] += 1
            continue
        group_bits, axis_bits = entry >> np.uint64(emotions), ZERO
        rest = group_bits
        while rest:
            axis_bits |= ONE << np.uint64(axis[emotions + count_trailing_zeros(rest)])
            rest &= rest - ONE
        # Place 0 stands for all units, with or without an emotion; place k for those with emotion k - 1.
        emotion_bits = ((entry & ((ONE << np.uint64(emotions)) - ONE)) << ONE) | ONE
        while emotion_bits:
            place = count_trailing_zeros(emotion_bits)
            emotion_bits &= emotion_bits - ONE
            if place:
                row[place] += 1
            rest = group_bits
            while rest:
                row[1 + emotions + place * groups + count_trailing_zeros(rest)] += 1
                rest &= rest - ONE
            rest = axis_bits
            while rest:
                row[axes_start + place * axes + count_trailing_zeros(rest)] += 1
                rest &= rest - ONE


@njit(cache=True, nogil=True)
def is_dense(sizes):
    """Whether all categories of a unit fit into one number."""
    return sizes[0] + sizes[1] <= DENSE_BITS


@njit(cache=True, nogil=True)
def add_hits(matcher, tally, distinct):
    """Note distinct terms of the unit, and its categories if they do not fit into one number."""
    state, emotions, groups = tally.state[0], matcher.sizes[0], matcher.sizes[1]
    unit, seen, axes = state.unit, tally.category_seen, matcher.sizes[2]
    first_category, categories = matcher.first_category, matcher.categories
    axes_start = 1 + emotions + groups * (1 + emotions)
    distinct_start = axes_start + axes * (1 + emotions)
    for i in range(state.hits):
        for j in range(first_category[tally.hits[i]], first_category[tally.hits[i] + 1]):
            seen[categories[j]] = unit
            if categories[j] >= emotions:
                seen[emotions + groups + matcher.axis[categories[j]]] = unit
    for emotion in range(emotions if distinct else 0):
        if seen[emotion] == unit:
            for i in range(state.hits):
                for j in range(first_category[tally.hits[i]], first_category[tally.hits[i] + 1]):
                    if categories[j] >= emotions:
                        _note_column(tally, distinct_start + emotion * groups + categories[j] - emotions)
    if is_dense(matcher.sizes):
        return
    for axis in range(axes):
        if seen[emotions + groups + axis] == unit:
            state.with_group += 1
            break
    # Place 0 stands for all units, with or without an emotion; place k for those with emotion k - 1.
    for place in range(emotions + 1):
        if place:
            if seen[place - 1] != unit:
                continue
            _note_column(tally, place)
        for group in range(groups):
            if seen[emotions + group] == unit:
                _note_column(tally, 1 + emotions + place * groups + group)
        for axis in range(axes):
            if seen[emotions + groups + axis] == unit:
                _note_column(tally, axes_start + place * axes + axis)


@njit(cache=True, nogil=True)
def _note_column(tally, column):
    """Note one more count in a column of the blocks for the current document."""
    tally.noted[tally.state[0].noted] = CELL | np.uint64(column)
    tally.state[0].noted += 1


@njit(cache=True, nogil=True)
def sample_unit(sizes, seen, unit, mask, first, last, offset, chunk, key, priorities, samples):
    """Offer a unit to the samples of its cells: each emotion with each group, or with none."""
    emotions, groups, dense = sizes[0], sizes[1], is_dense(sizes)
    priority = mix_bits(key + np.uint64(offset + last) * FACTOR)
    for emotion in range(emotions):
        if not ((mask >> np.uint64(emotion)) & ONE if dense else seen[emotion] == unit):
            continue
        any_group = False
        for group in range(groups + 1):
            category = emotions + group
            if group == groups:
                has_group = not any_group
            elif dense:
                has_group = (mask >> np.uint64(category)) & ONE != ZERO
            else:
                has_group = seen[category] == unit
            any_group |= has_group
            if not has_group:
                continue
            cell = emotion * (groups + 1) + group
            place = np.argmax(priorities[cell])
            # Its priority is among the lowest of the cell.
            if priority < priorities[cell, place]:
                priorities[cell, place] = priority
                sample = samples[cell, place]
                sample[0], sample[1], sample[2] = chunk, first, last
