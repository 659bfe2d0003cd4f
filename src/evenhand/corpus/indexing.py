# numba gives these functions their types when it compiles them; a call inside a loop over words costs more
# than the work it would name, so that they are long and take many arguments.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, call-arg, call-overload, var-annotated"
# ruff: noqa: C901, PLR0913, PLR0915
"""Where the words and units of a stretch of bytes are, 64 bytes at a time, and which words may be terms."""

from __future__ import annotations

import numpy as np
from numba import njit

from evenhand.corpus.blocks import (
    blank_mask,
    continuation_mask,
    count_bits,
    high_mask,
    load,
    lowest_bit,
    newline_mask,
    punctuation_lead_mask,
    record_end_mask,
    stop_mask,
    word_mask,
    zero_continuation_mask,
)
from evenhand.corpus.documents import KEPT, is_empty_line
from evenhand.corpus.letters import FACTOR, ONE, ZERO
from evenhand.corpus.matcher import FILTER_BITS

STRETCH = 1 << 14
"""Bytes that are indexed at a time: their index stays in the cache."""
BLOCKS = STRETCH // 64
LOWER = np.uint64(0x2020202020202020)

_FAR = 1 << 62
_TWO, _THREE = np.uint64(2), np.uint64(3)
_SIX, _TO_FILTER, _S62, _S63 = np.uint64(6), np.uint64(64 - FILTER_BITS), np.uint64(62), np.uint64(63)
_KEPT_BITS = np.array([(1 << size) - 1 for size in range(65)], dtype=np.uint64)


@njit(cache=True, nogil=True)
def index(
    data,
    first,
    last,
    end,
    unit,
    records,
    at_line_start,
    pending,
    words,
    carry,
    edges,
    bounds,
    words_before,
    high_blocks,
):
    """Where the words and units of a stretch begin and end: the number of edges of words."""
    base = data.ctypes.data
    n_edges, n_bounds = pending, 0
    was_word, punctuation = carry[0], carry[1]
    for block in range(first, last, 64):
        is_word = word_mask(base + block)
        high = high_mask(base + block)
        bound = newline_mask(base + block)
        if unit == 0:
            blank = blank_mask(base + block) >> ONE
            after = data[block + 64]
            if after == 32 or 9 <= after <= 13:
                blank |= ONE << _S63
            bound |= stop_mask(base + block) & blank
        elif unit == 3:
            bound = ZERO
        if high:
            # U+2000 to U+203F, quotes and dashes above all, is E2 80 xx and separates: no need to decode it.
            second = zero_continuation_mask(base + block) >> ONE
            third = continuation_mask(base + block) >> _TWO
            after, later = data[block + 64], data[block + 65]
            if after & 0xC0 == 0x80:
                third |= ONE << _S62
                if after == 0x80:
                    second |= ONE << _S63
            if later & 0xC0 == 0x80:
                third |= ONE << _S63
            lead = punctuation_lead_mask(base + block) & second & third
            separating = lead | (lead << ONE) | (lead << _TWO) | punctuation
            punctuation = ((lead >> _S63) * _THREE) | ((lead >> _S62) & ONE)
            if records:
                record_end = record_end_mask(base + block)
                separating |= record_end
                bound |= record_end
            is_word &= ~separating
            high &= ~separating
        else:
            punctuation = ZERO
        high_blocks[(block - first) >> 6] = 1 if high else 0
        if block + 64 > end:
            inside = _KEPT_BITS[end - block]
            is_word &= inside
            bound &= inside
        edge = is_word ^ ((is_word << ONE) | was_word)
        was_word = is_word >> _S63
        n_before = n_edges
        rest = edge
        n_edges += count_bits(edge)
        # Sixteen without asking: writing a few too many costs less than a wrong guess when to stop.
        for i in range(16):
            edges[n_before + i] = block + lowest_bit(rest)
            rest &= rest - ONE
        written = n_before + 16
        while rest:
            edges[written] = block + lowest_bit(rest)
            written += 1
            rest &= rest - ONE
        while bound:
            at = lowest_bit(bound)
            place = block + at
            bound &= bound - ONE
            if unit != 2 or data[place] == 255 or is_empty_line(data, place, at_line_start):
                bounds[n_bounds] = place
                # A word has two edges; none goes on at the end of a unit.
                words_before[n_bounds] = words + ((n_before + count_bits(edge & _KEPT_BITS[at + 1])) >> 1)
                n_bounds += 1
    carry[0], carry[1] = was_word, punctuation
    bounds[n_bounds] = _FAR
    return n_edges


@njit(cache=True, nogil=True)
def sift(data, first, n_words, pending, edges, high_blocks, filter_, chosen):
    """Choose the words that may be terms, or hold bytes beyond ASCII: no branch, so none is mispredicted."""
    base = data.ctypes.data
    n_chosen = 0
    begin = 0
    has_high_block = False
    for block in range(high_blocks.size):
        has_high_block |= high_blocks[block] != 0
    if pending and n_words:
        chosen[0] = 0
        n_chosen, begin = 1, 1
    if has_high_block:
        for i in range(begin, n_words):
            start, stop = edges[2 * i], edges[2 * i + 1]
            head = (load(base + start) | LOWER) & KEPT[min(stop - start, 8)]
            place = (head * FACTOR) >> _TO_FILTER
            passes = np.int64((filter_[place >> _SIX] >> (place & _S63)) & ONE)
            passes |= high_blocks[(start - first) >> 6] | high_blocks[(stop - 1 - first) >> 6]
            # A longer run may hold bytes beyond ASCII between its first and last block.
            passes |= np.int64(stop - start > 64)
            chosen[n_chosen] = i
            n_chosen += passes
        return n_chosen
    for i in range(begin, n_words):
        start, stop = edges[2 * i], edges[2 * i + 1]
        head = (load(base + start) | LOWER) & KEPT[min(stop - start, 8)]
        place = (head * FACTOR) >> _TO_FILTER
        chosen[n_chosen] = i
        n_chosen += np.int64((filter_[place >> _SIX] >> (place & _S63)) & ONE)
    return n_chosen
