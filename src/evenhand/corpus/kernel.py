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

from evenhand.corpus.blocks import load
from evenhand.corpus.cells import end_unit, wants_sample
from evenhand.corpus.documents import (
    AT_EMPTY_LINE,
    AT_FILE_END,
    AT_RECORD_END,
    KEPT,
    LONG,
    end_document,
    is_empty_line,
    move_into_blocks,
    name_long_document,
    printed,
)
from evenhand.corpus.indexing import BLOCKS, LOWER, STRETCH, index, sift
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
    DOCUMENT_BLOCK,
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

PADDING = 128
"""Zero bytes that must follow the data: blocks and words are read whole."""

_FAR = 1 << 62


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
    # Places in the whole data, which may be longer than 2^31 bytes: a record is never cut.
    edges = np.empty(STRETCH + 64, dtype=np.int64)
    bounds = np.empty(STRETCH + 2, dtype=np.int64)
    words_before = np.empty(STRETCH + 2, dtype=np.int64)
    chosen = np.empty(STRETCH + 2, dtype=np.int32)
    high_blocks = np.zeros(BLOCKS + 1, dtype=np.int64)
    scratch = np.zeros(matcher.sizes[3] + 16, dtype=np.uint8)
    carry = np.zeros(2, dtype=np.uint64)
    words, pending = 0, 0
    state[UNIT_FIRST], state[EXTRA] = 0, state[HAS_WORDS]
    state[UNIT_START] -= offset
    first = 0
    while first < end:
        last = min(first + STRETCH, end)
        n_edges = index(
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
        n_chosen = sift(data, first, n_words, pending, edges, high_blocks, matcher.filter, chosen)
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
    felt = (ONE << np.uint64(matcher.sizes[0])) - ONE
    has_samples = dense and tally.priority.shape[1] > 0
    mask, unit_start = np.uint64(state[MASK]), state[UNIT_START]
    unit_first, extra, units = state[UNIT_FIRST], state[EXTRA], 0
    n_hits, stamp = state[HITS], state[UNIT]
    at_bound, next_bound = 0, bounds[0]
    at_line_start, noted, n_noted = state[AT_LINE_START], tally.noted, state[NOTED]
    document_key, document_units = np.uint64(state[DOCUMENT_KEY]), state[DOCUMENT_UNITS]
    document_limit = state[DOCUMENT_FIRST] + LONG
    is_dense, is_any_line = np.int64(dense), document_end != AT_EMPTY_LINE
    is_record, is_file = document_end == AT_RECORD_END, document_end == AT_FILE_END
    last_byte = np.int64(255 if is_record else -1 if is_file else 10)
    for c in range(n_chosen + 1):
        start = edges[2 * chosen[c]] if c < n_chosen else _FAR - 1
        while start > next_bound:
            if words_before[at_bound] - unit_first + extra > 0:
                units += 1
                if dense:
                    histogram[mask] += 1
                if dense and mask & felt == ZERO:
                    # Distinct terms and samples are asked for beside an emotion only.
                    if n_hits:
                        n_hits, stamp = 0, stamp + 1
                elif n_hits or (
                    has_samples and wants_sample(mask, key, offset + next_bound, tally.worst, matcher.sizes)
                ):
                    state[HITS], state[NOTED], state[UNIT] = n_hits, n_noted, stamp
                    end_unit(matcher, tally, mask, distinct, unit_start, next_bound, offset, chunk, key)
                    n_hits, stamp, n_noted = state[HITS], state[UNIT], state[NOTED]
                if has_blocks:
                    document_key = printed(document_key, base, unit_start, next_bound)
                    document_units += 1
                    # Written whether it is kept or not: a branch would often be guessed wrong.
                    noted[n_noted] = mask
                    n_noted += np.int64(mask != ZERO) & is_dense
            # Nearly every line that is not empty fails the first question.
            may_end = (data[next_bound] == last_byte) & ((data[next_bound - 1] <= 32) | is_any_line)
            if (may_end and document_units) or n_noted >= document_limit:
                state[NOTED], state[DOCUMENT_KEY] = n_noted, np.int64(document_key)
                state[DOCUMENT_UNITS] = document_units
                if may_end and (is_any_line or is_empty_line(data, next_bound, at_line_start)):
                    end_document(state, tally.ended)
                name_long_document(state, tally.blocks.shape[0])
                is_long = state[NOTED] >= 2 * LONG or state[DOCUMENT_BLOCK] >= 0
                if is_long or state[ENDED] == tally.ended.shape[0]:
                    move_into_blocks(state, tally.blocks, noted, tally.ended, matcher.sizes, matcher.axis)
                n_noted, document_key = state[NOTED], np.uint64(state[DOCUMENT_KEY])
                document_units, document_limit = state[DOCUMENT_UNITS], state[DOCUMENT_FIRST] + LONG
            mask, unit_first, extra = ZERO, words_before[at_bound], 0
            unit_start = next_bound + 1
            at_bound += 1
            next_bound = bounds[at_bound]
        if c == n_chosen:
            break
        end = edges[2 * chosen[c] + 1]
        size = end - start
        first = load(base + start) & KEPT[min(size, 8)]
        last = load(base + end - 8) if size > 8 else ZERO
        if has_high(data, start, size, first | last):
            state[HITS], state[UNIT] = n_hits, stamp
            mask, found = walk_letters(data, start, end, stop, offset, matcher, tally, by_hits, scratch, mask)
            n_hits = state[HITS]
            extra += found - 1
            state[WORDS] += found - 1
            continue
        first |= LOWER & KEPT[min(size, 8)]
        if size > 8:
            last |= LOWER
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
                    state[HITS], state[UNIT] = n_hits, stamp
                    mask |= longer_terms(data, end, stop, matcher, tally, by_hits, np.int64(entry))
                    n_hits = state[HITS]
                break
            slot = (slot + ONE) & slot_mask
            entry = slots[slot]
    state[MASK], state[UNIT_START], state[HITS] = np.int64(mask), unit_start, n_hits
    state[NOTED], state[DOCUMENT_KEY] = n_noted, np.int64(document_key)
    state[DOCUMENT_UNITS], state[UNIT] = document_units, stamp
    state[UNIT_FIRST], state[EXTRA] = unit_first, extra
    state[UNITS] += units
