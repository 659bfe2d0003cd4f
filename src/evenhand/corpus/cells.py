# numba gives these functions their types when it compiles them; a call inside a loop over words costs more
# than the work it would name, so that they are long and take many arguments.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, call-arg, call-overload, var-annotated"
# ruff: noqa: C901, PLR0913
"""What the end of a unit adds: pairs of categories, distinct terms, samples."""

from __future__ import annotations

import numpy as np
from numba import njit

from evenhand.corpus.blocks import lowest_bit
from evenhand.corpus.documents import CELL, end_document, mixed, move_into_blocks, printed
from evenhand.corpus.letters import FACTOR, ONE, ZERO
from evenhand.corpus.tally import (
    AT_LINE_START,
    DOCUMENT_KEY,
    DOCUMENT_UNITS,
    HAS_WORDS,
    HITS,
    MASK,
    NOTED,
    UNIT,
    UNIT_START,
    UNITS,
)


@njit(cache=True, nogil=True)
def finish(data, matcher, tally, unit, distinct, end, offset, chunk, key):
    """End the last unit and document of a file, at ``end`` of the data that was scanned last."""
    state, first = tally.state, tally.state[UNIT_START] - offset
    if state[HAS_WORDS]:
        mask = np.uint64(state[MASK])
        state[UNITS] += 1
        if tally.histogram.size > 1:
            tally.histogram[mask] += 1
            tally.noted[state[NOTED]] = mask
            state[NOTED] += 1
        end_unit(matcher, tally, mask, distinct, first, end - 1, offset, chunk, key)
        # Elsewhere white space would follow, and the stop would not belong to the sentence it ends.
        has_stop = unit == 0 and (data[end - 1] == 46 or data[end - 1] == 63 or data[end - 1] == 33)
        last = end - 1 if has_stop else end
        document_key = np.uint64(state[DOCUMENT_KEY])
        state[DOCUMENT_KEY] = np.int64(printed(document_key, data.ctypes.data, first, last))
        state[DOCUMENT_UNITS] += 1
    if tally.blocks.shape[0]:
        if state[DOCUMENT_UNITS]:
            end_document(state, tally.ended)
        move_into_blocks(state, tally.blocks, tally.noted, tally.ended, matcher.sizes, matcher.axis)
    state[MASK], state[HAS_WORDS], state[AT_LINE_START], state[UNIT_START] = 0, 0, 1, offset + end


@njit(cache=True, nogil=True)
def end_unit(matcher, tally, mask, distinct, first, last, offset, chunk, key):
    """What a unit adds besides its cell of the histogram: pairs, distinct terms, samples."""
    state = tally.state
    dense = tally.histogram.size > 1
    has_hits = state[HITS] > 0
    if has_hits:
        _add_hits(matcher, tally, dense, distinct)
    if tally.priority.shape[1] > 0:
        if dense:
            _sample_mask(matcher, tally, mask, first, last, offset, chunk, key)
        elif has_hits:
            _sample_seen(matcher, tally, first, last, offset, chunk, key)
    state[HITS] = 0
    state[UNIT] += 1


@njit(cache=True, nogil=True)
def _add_hits(matcher, tally, dense, distinct):
    """Pairs of categories (where there is no histogram) and distinct terms of the unit."""
    state, emotions, groups = tally.state, matcher.sizes[0], matcher.sizes[1]
    unit, seen, axes = state[UNIT], tally.category_seen, matcher.sizes[2]
    has_blocks = tally.blocks.shape[0] > 0
    flags = 1 + emotions + groups
    of_axes = flags + emotions * groups
    of_distinct = of_axes + axes + emotions * axes
    for i in range(state[HITS]):
        term = tally.hits[i]
        for j in range(matcher.first_category[term], matcher.first_category[term + 1]):
            seen[matcher.categories[j]] = unit
    if distinct:
        for i in range(state[HITS]):
            term = tally.hits[i]
            for j in range(matcher.first_category[term], matcher.first_category[term + 1]):
                category = matcher.categories[j]
                if category >= emotions:
                    for emotion in range(emotions):
                        if seen[emotion] == unit:
                            tally.distinct[emotion, category - emotions] += 1
                            if has_blocks:
                                _note(tally, of_distinct + emotion * groups + category - emotions)
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
            _note(tally, 1 + emotion)
        if not any_group:
            continue
        tally.axes[emotion, axes] += 1
        for group in range(groups):
            if seen[emotions + group] == unit:
                tally.pairs[emotion, group] += 1
                if has_blocks:
                    _note(tally, 1 + emotions + group if is_all else flags + emotion * groups + group)
        for axis in range(axes):
            if axis_seen[axis] == unit:
                tally.axes[emotion, axis] += 1
                if has_blocks:
                    _note(tally, of_axes + axis if is_all else of_axes + axes + emotion * axes + axis)


@njit(cache=True, nogil=True)
def _note(tally, column):
    """Add one to a column of the blocks for the document that is being read."""
    tally.noted[tally.state[NOTED]] = CELL | np.uint64(column)
    tally.state[NOTED] += 1


@njit(cache=True, nogil=True)
def wants_sample(mask, key, place, worst, sizes):
    """Whether a unit with an emotion would be kept in a cell; `_sample_mask` keeps it."""
    emotions, groups = sizes[0], sizes[1]
    priority = mixed(key + np.uint64(place) * FACTOR)
    named, felt = mask >> np.uint64(emotions), mask & ((ONE << np.uint64(emotions)) - ONE)
    while felt:
        first = lowest_bit(felt) * (groups + 1)
        felt &= felt - ONE
        if named == ZERO and priority < worst[first + groups]:
            return True
        rest = named
        while rest:
            if priority < worst[first + lowest_bit(rest)]:
                return True
            rest &= rest - ONE
    return False


@njit(cache=True, nogil=True)
def _sample_mask(matcher, tally, mask, first, last, offset, chunk, key):
    emotions, groups = matcher.sizes[0], matcher.sizes[1]
    if mask & ((ONE << np.uint64(emotions)) - ONE) == ZERO:
        return
    priority = mixed(key + np.uint64(offset + last) * FACTOR)
    named = mask >> np.uint64(emotions)
    for emotion in range(emotions):
        if (mask >> np.uint64(emotion)) & ONE:
            if named == ZERO:
                _offer(tally, emotion * (groups + 1) + groups, priority, first, last, chunk)
            rest = named
            while rest:
                group = lowest_bit(rest)
                rest &= rest - ONE
                _offer(tally, emotion * (groups + 1) + group, priority, first, last, chunk)


@njit(cache=True, nogil=True)
def _sample_seen(matcher, tally, first, last, offset, chunk, key):
    emotions, groups = matcher.sizes[0], matcher.sizes[1]
    unit, seen = tally.state[UNIT], tally.category_seen
    priority = mixed(key + np.uint64(offset + last) * FACTOR)
    for emotion in range(emotions):
        if seen[emotion] == unit:
            named = False
            for group in range(groups):
                if seen[emotions + group] == unit:
                    named = True
                    _offer(tally, emotion * (groups + 1) + group, priority, first, last, chunk)
            if not named:
                _offer(tally, emotion * (groups + 1) + groups, priority, first, last, chunk)


@njit(cache=True, nogil=True)
def _offer(tally, cell, priority, first, last, chunk):
    """Keep a unit if its priority is among the lowest of its cell."""
    if priority >= tally.worst[cell]:
        return
    row = tally.priority[cell]
    place = np.argmax(row)
    row[place] = priority
    tally.sample[cell, place, 0], tally.sample[cell, place, 1], tally.sample[cell, place, 2] = (
        chunk,
        first,
        last,
    )
    tally.worst[cell] = row.max()
