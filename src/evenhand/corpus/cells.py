# numba gives these functions their types when it compiles them; a call inside a loop over words costs more
# than the work it would name, so that they are long and take many arguments.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, call-arg, call-overload, var-annotated"
# ruff: noqa: C901, PLR0913
"""What the end of a unit adds: pairs of categories, distinct terms, samples."""

from __future__ import annotations

import numpy as np
from numba import njit

from evenhand.corpus.blocks import lowest_bit
from evenhand.corpus.letters import FACTOR, ONE, ZERO
from evenhand.corpus.tally import HITS, UNIT

_MIX_A, _MIX_B = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)


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
    unit, seen = state[UNIT], tally.category_seen
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
    if dense:
        return
    axes = matcher.sizes[2]
    axis_seen = seen[emotions + groups :]
    any_group = False
    for group in range(groups):
        if seen[emotions + group] == unit:
            any_group = True
            axis_seen[matcher.axis[emotions + group]] = unit
    for emotion in range(emotions + 1):
        if emotion < emotions and seen[emotion] != unit:
            continue
        tally.pairs[emotion, groups] += 1
        if any_group:
            tally.axes[emotion, axes] += 1
            for group in range(groups):
                if seen[emotions + group] == unit:
                    tally.pairs[emotion, group] += 1
            for axis in range(axes):
                if axis_seen[axis] == unit:
                    tally.axes[emotion, axis] += 1


@njit(cache=True, nogil=True)
def _sample_mask(matcher, tally, mask, first, last, offset, chunk, key):
    emotions, groups = matcher.sizes[0], matcher.sizes[1]
    if mask & ((ONE << np.uint64(emotions)) - ONE) == ZERO:
        return
    priority = _mixed(key, offset + last)
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
    priority = _mixed(key, offset + last)
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


@njit(cache=True, nogil=True)
def _mixed(key, place):
    """A uniform 64-bit number for a place of a file (splitmix64)."""
    value = key + np.uint64(place) * FACTOR
    value = (value ^ (value >> _S30)) * _MIX_A
    value = (value ^ (value >> _S27)) * _MIX_B
    return value ^ (value >> _S31)
