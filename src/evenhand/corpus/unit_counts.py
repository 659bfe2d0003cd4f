"""What the end of a unit adds: pairs of categories, distinct terms, samples."""

from __future__ import annotations

import numpy as np
from numba import njit

from evenhand.corpus.letters import FACTOR, MIX, ONE, ZERO, count_trailing_zeros, load_word

# numba gives these functions their types when it compiles them.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, call-arg, call-overload, var-annotated"
# ruff: noqa: C901, PLR0913

AT_EMPTY_LINE, AT_LINE_END, AT_FILE_END, AT_RECORD_END = 0, 1, 2, 3
"""Where a document ends."""
LONG = 4096
"""Entries after which a document is known by how it begins, so that it need not be kept whole."""
KEPT_BITS = np.array([(1 << (8 * size)) - 1 for size in range(9)], dtype=np.uint64)
"""The bytes of a word that is shorter than eight."""
CELL = np.uint64(1 << 63)
"""Marks an entry that is one column of the blocks, not a set of categories."""

_MIX_A, _MIX_B = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S29, _S30, _S27, _S31, _S32 = np.uint64(29), np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32)


@njit(cache=True, nogil=True)
def mix_bits(value):
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
def fingerprint(key, address, first, last):
    """The print of a document after one more unit: its first and last bytes and its length."""
    begin = max(first, 0)
    size = min(last - begin, 8)
    head = load_word(address + begin) & KEPT_BITS[size]
    tail = load_word(address + last - size) & KEPT_BITS[size]
    return (key ^ (key >> _S29) ^ head ^ (tail * MIX) ^ (np.uint64(last - first) << _S32)) * FACTOR


@njit(cache=True, nogil=True)
def end_document(state, ended):
    """Note that the document that is being read ends here."""
    row = ended[state.ended]
    row[0], row[1], row[2] = state.noted, state.document_units, state.document_key
    row[3] = state.document_block
    state.ended += 1
    state.document_first, state.document_block = state.noted, -1
    state.document_key, state.document_units = 0, 0


@njit(cache=True, nogil=True)
def assign_block(state, n_blocks):
    """Choose the block of a document that has become long: from then on it need not be kept whole."""
    if state.document_block < 0 and state.noted - state.document_first >= LONG:
        state.document_block = _hash_block(state.document_key, n_blocks)


@njit(cache=True, nogil=True)
def move_into_blocks(state, blocks, noted, ended, sizes, axis):
    """Add what was noted to the blocks of its documents; a short one that goes on stays noted."""
    at = 0
    for i in range(state.ended):
        block = ended[i, 3] if ended[i, 3] >= 0 else _hash_block(ended[i, 2], blocks.shape[0])
        row = blocks[block]
        row[0] += ended[i, 1]
        _add(row, noted, at, ended[i, 0], sizes, axis)
        at = ended[i, 0]
    state.documents += state.ended
    state.ended = 0
    if state.document_block >= 0:
        _add(blocks[state.document_block], noted, at, state.noted, sizes, axis)
        at = state.noted
    left = state.noted - at
    for i in range(left):
        noted[i] = noted[at + i]
    state.noted, state.document_first = left, 0


@njit(cache=True, nogil=True)
def _hash_block(key, n_blocks):
    return np.int64(mix_bits(np.uint64(key)) & np.uint64(n_blocks - 1))


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
            group = count_trailing_zeros(rest)
            rest &= rest - ONE
            axes_named |= ONE << np.uint64(axis[emotions + group])
            row[1 + emotions + group] += 1
        rest = axes_named
        while rest:
            row[of_axes + count_trailing_zeros(rest)] += 1
            rest &= rest - ONE
        while felt:
            emotion = count_trailing_zeros(felt)
            felt &= felt - ONE
            row[1 + emotion] += 1
            rest = named
            while rest:
                row[flags + emotion * groups + count_trailing_zeros(rest)] += 1
                rest &= rest - ONE
            rest = axes_named
            while rest:
                row[of_emotion_axes + emotion * axes + count_trailing_zeros(rest)] += 1
                rest &= rest - ONE


@njit(cache=True, nogil=True)
def end_file(data, matcher, tally, unit, distinct, end, offset, chunk, key):
    """End the last unit and document of a file, at ``end`` of the data that was scanned last."""
    state, first = tally.state[0], tally.state[0].unit_start - offset
    if state.has_words:
        mask = np.uint64(state.mask)
        state.units += 1
        if tally.histogram.size > 1:
            tally.histogram[mask] += 1
            tally.noted[state.noted] = mask
            state.noted += 1
        end_unit(matcher, tally, mask, distinct, first, end - 1, offset, chunk, key)
        # Elsewhere white space would follow, and the stop would not belong to the sentence it ends.
        has_stop = unit == 0 and (data[end - 1] == 46 or data[end - 1] == 63 or data[end - 1] == 33)
        last = end - 1 if has_stop else end
        document_key = np.uint64(state.document_key)
        state.document_key = np.int64(fingerprint(document_key, data.ctypes.data, first, last))
        state.document_units += 1
    if tally.blocks.shape[0]:
        if state.document_units:
            end_document(state, tally.ended)
        move_into_blocks(state, tally.blocks, tally.noted, tally.ended, matcher.sizes, matcher.axis)
    state.mask, state.has_words, state.at_line_start, state.unit_start = 0, 0, 1, offset + end


@njit(cache=True, nogil=True)
def end_unit(matcher, tally, mask, distinct, first, last, offset, chunk, key):
    """What a unit adds besides its cell of the histogram: pairs, distinct terms, samples."""
    state = tally.state[0]
    dense = tally.histogram.size > 1
    has_hits = state.hits > 0
    if has_hits:
        _add_hits(matcher, tally, dense, distinct)
    if tally.priority.shape[1] > 0:
        if dense:
            _sample_mask(matcher, tally, mask, first, last, offset, chunk, key)
        elif has_hits:
            _sample_seen(matcher, tally, first, last, offset, chunk, key)
    state.hits = 0
    state.unit += 1


@njit(cache=True, nogil=True)
def _add_hits(matcher, tally, dense, distinct):
    """Pairs of categories (where there is no histogram) and distinct terms of the unit."""
    state, emotions, groups = tally.state[0], matcher.sizes[0], matcher.sizes[1]
    unit, seen, axes = state.unit, tally.category_seen, matcher.sizes[2]
    has_blocks = tally.blocks.shape[0] > 0
    flags = 1 + emotions + groups
    of_axes = flags + emotions * groups
    of_distinct = of_axes + axes + emotions * axes
    for i in range(state.hits):
        term = tally.hits[i]
        for j in range(matcher.first_category[term], matcher.first_category[term + 1]):
            seen[matcher.categories[j]] = unit
    if distinct:
        for i in range(state.hits):
            term = tally.hits[i]
            for j in range(matcher.first_category[term], matcher.first_category[term + 1]):
                category = matcher.categories[j]
                if category >= emotions:
                    for emotion in range(emotions):
                        if seen[emotion] == unit:
                            tally.distinct[emotion, category - emotions] += 1
                            if has_blocks:
                                _add_to_block(tally, of_distinct + emotion * groups + category - emotions)
    if dense:
        return
    axis_seen = seen[emotions + groups :]
    any_group = False
    for group in range(groups):
        if seen[emotions + group] == unit:
            any_group = True
            axis_seen[matcher.axis[emotions + group]] = unit
    for emotion in range(emotions + 1):
        if emotion < emotions and seen[emotion] != unit:
            continue
        # The last row stands for all units, with or without an emotion.
        is_all = emotion == emotions
        tally.pairs[emotion, groups] += 1
        if has_blocks and not is_all:
            _add_to_block(tally, 1 + emotion)
        if not any_group:
            continue
        tally.axes[emotion, axes] += 1
        for group in range(groups):
            if seen[emotions + group] == unit:
                tally.pairs[emotion, group] += 1
                if has_blocks:
                    _add_to_block(tally, 1 + emotions + group if is_all else flags + emotion * groups + group)
        for axis in range(axes):
            if axis_seen[axis] == unit:
                tally.axes[emotion, axis] += 1
                if has_blocks:
                    _add_to_block(tally, of_axes + axis if is_all else of_axes + axes + emotion * axes + axis)


@njit(cache=True, nogil=True)
def _add_to_block(tally, column):
    """Add one to a column of the blocks for the document that is being read."""
    tally.noted[tally.state[0].noted] = CELL | np.uint64(column)
    tally.state[0].noted += 1


@njit(cache=True, nogil=True)
def wants_sample(mask, key, place, worst, sizes):
    """Whether a unit with an emotion would be kept in a cell; `_sample_mask` keeps it."""
    emotions, groups = sizes[0], sizes[1]
    priority = mix_bits(key + np.uint64(place) * FACTOR)
    named, felt = mask >> np.uint64(emotions), mask & ((ONE << np.uint64(emotions)) - ONE)
    while felt:
        first = count_trailing_zeros(felt) * (groups + 1)
        felt &= felt - ONE
        if named == ZERO and priority < worst[first + groups]:
            return True
        rest = named
        while rest:
            if priority < worst[first + count_trailing_zeros(rest)]:
                return True
            rest &= rest - ONE
    return False


@njit(cache=True, nogil=True)
def _sample_mask(matcher, tally, mask, first, last, offset, chunk, key):
    emotions, groups = matcher.sizes[0], matcher.sizes[1]
    if mask & ((ONE << np.uint64(emotions)) - ONE) == ZERO:
        return
    priority = mix_bits(key + np.uint64(offset + last) * FACTOR)
    named = mask >> np.uint64(emotions)
    for emotion in range(emotions):
        if (mask >> np.uint64(emotion)) & ONE:
            if named == ZERO:
                _offer_sample(tally, emotion * (groups + 1) + groups, priority, first, last, chunk)
            rest = named
            while rest:
                group = count_trailing_zeros(rest)
                rest &= rest - ONE
                _offer_sample(tally, emotion * (groups + 1) + group, priority, first, last, chunk)


@njit(cache=True, nogil=True)
def _sample_seen(matcher, tally, first, last, offset, chunk, key):
    emotions, groups = matcher.sizes[0], matcher.sizes[1]
    unit, seen = tally.state[0].unit, tally.category_seen
    priority = mix_bits(key + np.uint64(offset + last) * FACTOR)
    for emotion in range(emotions):
        if seen[emotion] == unit:
            named = False
            for group in range(groups):
                if seen[emotions + group] == unit:
                    named = True
                    _offer_sample(tally, emotion * (groups + 1) + group, priority, first, last, chunk)
            if not named:
                _offer_sample(tally, emotion * (groups + 1) + groups, priority, first, last, chunk)


@njit(cache=True, nogil=True)
def _offer_sample(tally, cell, priority, first, last, chunk):
    """Keep a unit if its priority is among the lowest of its cell."""
    if priority >= tally.worst[cell]:
        return
    row = tally.priority[cell]
    place = np.argmax(row)
    row[place] = priority
    sample = tally.sample[cell, place]
    sample[0], sample[1], sample[2] = chunk, first, last
    tally.worst[cell] = row.max()
