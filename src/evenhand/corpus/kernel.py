# numba gives these functions their types when it compiles them; a call inside a loop over words costs more
# than the work it would name, so that they are long and take many arguments.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, call-arg, call-overload, var-annotated"
# ruff: noqa: C901, PLR0913, PLR0915
"""One pass over bytes: words are found 64 bytes at a time, and only those that may be terms are looked at.

A stretch of bytes is *indexed* (where words begin and end, where units end), its words are *sifted* by a hash
filter without a branch, and the few that pass are *settled* in order: looked up, and added to the set of
categories of their unit; at the unit's end one cell of a histogram grows. No Python object is made for a
word. The rule is in `rule.py`, a slow twin in the tests.

Compiled code is kept in ``__pycache__`` (or where ``NUMBA_CACHE_DIR`` says), so that only the first run of
an installation compiles; `compiled.py` throws it away when one of the files it was made from has changed.
"""

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
from evenhand.corpus.cells import end_unit
from evenhand.corpus.documents import (
    LONG,
    end_document,
    ends_document,
    is_empty_line,
    move_into_blocks,
    name_long_document,
    printed,
)
from evenhand.corpus.letters import (
    FACTOR,
    MIX,
    ONE,
    TO_SLOT,
    ZERO,
    has_high,
    longer_terms,
    may_follow,
    same_middle,
    walk_letters,
)
from evenhand.corpus.matcher import BITS, HEAD, LENGTH, PLACE, SECOND, SINGLE, TAIL
from evenhand.corpus.tally import (
    AT_LINE_START,
    DOCUMENT_FIRST,
    DOCUMENT_KEY,
    DOCUMENT_UNITS,
    ENDED,
    EXTRA,
    HAS_WORDS,
    HITS,
    MASK,
    NOTED,
    UNIT,
    UNIT_FIRST,
    UNIT_START,
    UNITS,
    WORDS,
)

SENTENCE, LINE, DOCUMENT, RECORD = 0, 1, 2, 3
"""Where a unit ends; RECORD: at the ends of records only."""

STRETCH = 1 << 14
"""Bytes that are indexed at a time: their index stays in the cache."""
PADDING = 128
"""Zero bytes that must follow the data: blocks and words are read whole."""

_FAR = 1 << 62
_BLOCKS = STRETCH // 64
_TWO, _THREE = np.uint64(2), np.uint64(3)
_SIX, _TO_FILTER, _S62, _S63 = np.uint64(6), np.uint64(48), np.uint64(62), np.uint64(63)
_LOWER = np.uint64(0x2020202020202020)
_KEPT = np.array([(1 << (8 * size)) - 1 for size in range(9)], dtype=np.uint64)
_KEPT_BITS = np.array([(1 << size) - 1 for size in range(65)], dtype=np.uint64)


@njit(cache=True, nogil=True)
def scan(data, end, stop, offset, chunk, matcher, tally, unit, records, document_end, distinct, key):
    """Count the words of ``data[:end]``; terms may reach up to ``stop``, and zeros follow.

    Args:
        data: Bytes, with `PADDING` zeros after ``stop``.
        end: A place between two words, or the end of the data.
        stop: The end of the data.
        offset: The place of ``data[0]`` in its file.
        chunk: A number for this call, by which samples are found again.
        matcher: The terms.
        tally: What is counted so far; changed in place.
        unit: SENTENCE, LINE, DOCUMENT or RECORD.
        records: Whether byte 0xFF ends a unit.
        document_end: Where a document ends, a number of `documents`.
        distinct: Whether distinct terms are counted besides flags.
        key: Seeds the samples of this file.
    """
    state = tally.state
    edges = np.empty(STRETCH + 64, dtype=np.int32)
    bounds = np.empty(STRETCH + 2, dtype=np.int64)
    words_before = np.empty(STRETCH + 2, dtype=np.int64)
    chosen = np.empty(STRETCH + 2, dtype=np.int32)
    high_blocks = np.zeros(_BLOCKS + 1, dtype=np.int64)
    scratch = np.zeros(matcher.sizes[3] + 16, dtype=np.uint8)
    carry = np.zeros(2, dtype=np.uint64)
    words, pending = 0, 0
    state[UNIT_FIRST], state[EXTRA] = 0, state[HAS_WORDS]
    state[UNIT_START] -= offset
    first = 0
    while first < end:
        last = min(first + STRETCH, end)
        n_edges = _index(
            data,
            first,
            last,
            end,
            unit,
            records,
            state[AT_LINE_START],
            pending,
            words,
            carry,
            edges,
            bounds,
            words_before,
            high_blocks,
        )
        if last == end and n_edges & 1:
            edges[n_edges] = end
            n_edges += 1
        n_words = n_edges >> 1
        n_chosen = _sift(data, first, n_words, pending, edges, high_blocks, matcher.filter, chosen)
        _settle(
            data,
            stop,
            offset,
            chunk,
            matcher,
            tally,
            n_chosen,
            edges,
            bounds,
            words_before,
            chosen,
            scratch,
            document_end,
            distinct,
            key,
        )
        words += n_words
        pending = n_edges & 1
        if pending:
            edges[0] = edges[n_edges - 1]
        first = last
    state[WORDS] += words
    state[HAS_WORDS] = 1 if words - state[UNIT_FIRST] + state[EXTRA] > 0 else 0
    state[UNIT_START] += offset
    state[AT_LINE_START] = 1 if data[end - 1] == 10 else 0


@njit(cache=True, nogil=True)
def _index(
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
def _sift(data, first, n_words, pending, edges, high_blocks, filter_, chosen):
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
            start, stop = np.int64(edges[2 * i]), np.int64(edges[2 * i + 1])
            head = (load(base + start) | _LOWER) & _KEPT[min(stop - start, 8)]
            place = (head * FACTOR) >> _TO_FILTER
            passes = np.int64((filter_[place >> _SIX] >> (place & _S63)) & ONE)
            passes |= high_blocks[(start - first) >> 6] | high_blocks[(stop - 1 - first) >> 6]
            # A longer run may hold bytes beyond ASCII between its first and last block.
            passes |= np.int64(stop - start > 64)
            chosen[n_chosen] = i
            n_chosen += passes
        return n_chosen
    for i in range(begin, n_words):
        start, stop = np.int64(edges[2 * i]), np.int64(edges[2 * i + 1])
        head = (load(base + start) | _LOWER) & _KEPT[min(stop - start, 8)]
        place = (head * FACTOR) >> _TO_FILTER
        chosen[n_chosen] = i
        n_chosen += np.int64((filter_[place >> _SIX] >> (place & _S63)) & ONE)
    return n_chosen


@njit(cache=True, nogil=True)
def _settle(
    data,
    stop,
    offset,
    chunk,
    matcher,
    tally,
    n_chosen,
    edges,
    bounds,
    words_before,
    chosen,
    scratch,
    document_end,
    distinct,
    key,
):
    """Look the chosen words up, in order, and end the units they stand in."""
    base = data.ctypes.data
    state, histogram = tally.state, tally.histogram
    dense, has_blocks = histogram.size > 1, tally.blocks.shape[0] > 0
    by_hits = distinct or not dense
    slots, slot_mask = matcher.slots, np.uint64(matcher.slots.size - 1)
    entries, spelling = matcher.entries, matcher.spelling
    term_seen, hits = tally.term_seen, tally.hits
    # Units whose set needs more than its cell of the histogram: those with an emotion, for the samples.
    watched = (ONE << np.uint64(matcher.sizes[0])) - ONE if dense and tally.priority.shape[1] else ZERO
    mask, unit_start = np.uint64(state[MASK]), state[UNIT_START]
    unit_first, extra, units = state[UNIT_FIRST], state[EXTRA], 0
    n_hits, stamp = state[HITS], state[UNIT]
    at_bound, next_bound = 0, bounds[0]
    ended, at_line_start = tally.ended, state[AT_LINE_START]
    for c in range(n_chosen + 1):
        start = np.int64(edges[2 * chosen[c]]) if c < n_chosen else _FAR - 1
        while start > next_bound:
            if words_before[at_bound] - unit_first + extra > 0:
                units += 1
                if dense:
                    histogram[mask] += 1
                if mask & watched or n_hits:
                    state[HITS] = n_hits
                    end_unit(matcher, tally, mask, distinct, unit_start, next_bound, offset, chunk, key)
                    n_hits, stamp = state[HITS], state[UNIT]
                if has_blocks:
                    document_key = np.uint64(state[DOCUMENT_KEY])
                    state[DOCUMENT_KEY] = np.int64(printed(document_key, base, unit_start, next_bound))
                    state[DOCUMENT_UNITS] += 1
                    if dense and mask:
                        tally.noted[state[NOTED]] = mask
                        state[NOTED] += 1
                    if state[NOTED] - state[DOCUMENT_FIRST] >= LONG:
                        name_long_document(state, tally.blocks.shape[0])
            if state[DOCUMENT_UNITS] and ends_document(data, next_bound, document_end, at_line_start):
                end_document(state, ended)
            if state[NOTED] >= 2 * LONG or state[ENDED] == ended.shape[0]:
                move_into_blocks(state, tally.blocks, tally.noted, ended, matcher.sizes, matcher.axis)
            mask, unit_first, extra = ZERO, words_before[at_bound], 0
            unit_start = next_bound + 1
            at_bound += 1
            next_bound = bounds[at_bound]
        if c == n_chosen:
            break
        end = np.int64(edges[2 * chosen[c] + 1])
        size = end - start
        first = load(base + start) & _KEPT[min(size, 8)]
        last = load(base + end - 8) if size > 8 else ZERO
        if has_high(data, start, size, first | last):
            state[HITS] = n_hits
            mask, found = walk_letters(data, start, end, stop, offset, matcher, tally, by_hits, scratch, mask)
            n_hits = state[HITS]
            extra += found - 1
            state[WORDS] += found - 1
            continue
        first |= _LOWER & _KEPT[min(size, 8)]
        if size > 8:
            last |= _LOWER
        slot = (((first ^ (last * MIX) ^ np.uint64(size)) * FACTOR) >> TO_SLOT) & slot_mask
        entry = slots[slot]
        while entry >= 0:
            same = (
                entries[entry, HEAD] == first
                and entries[entry, TAIL] == last
                and entries[entry, LENGTH] == np.uint64(size)
            )
            if same and (
                size <= 16 or same_middle(data, start, size, spelling, np.int64(entries[entry, PLACE]))
            ):
                mask |= entries[entry, BITS]
                if by_hits and entries[entry, SINGLE]:
                    term = np.int64(entries[entry, SINGLE]) - 1
                    if term_seen[term] != stamp:
                        term_seen[term] = stamp
                        hits[n_hits] = term
                        n_hits += 1
                second = entries[entry, SECOND]
                if second and may_follow(second, data[end], data[end + 1]):
                    state[HITS] = n_hits
                    mask |= longer_terms(data, end, stop, matcher, tally, by_hits, np.int64(entry))
                    n_hits = state[HITS]
                break
            slot = (slot + ONE) & slot_mask
            entry = slots[slot]
    state[MASK], state[UNIT_START], state[HITS] = np.int64(mask), unit_start, n_hits
    state[UNIT_FIRST], state[EXTRA] = unit_first, extra
    state[UNITS] += units
