"""One pass over bytes: finds words 64 bytes at a time, and looks up only those that may be terms.

A stretch of bytes is *indexed* (where words begin and end, where units end), its words are *filtered* by a
branch-free hash, and the few that pass are *counted* in order: looked up, and added to the category set of
their unit, which is recorded for the document at the unit's end. No Python object is created per word.
`tokenisation.py` states the rule; the tests hold a slow reference implementation.

Compiled code is cached in ``__pycache__`` (or in ``NUMBA_CACHE_DIR``), so only the first run of an
installation compiles; `scanner.py` removes it when one of its source files changes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from evenhand.corpus.letters import (
    FACTOR,
    KEPT_BITS,
    ONE,
    ZERO,
    blank_mask,
    continuation_mask,
    count_bits,
    count_trailing_zeros,
    find_entry,
    has_high,
    high_mask,
    load_word,
    longer_terms,
    may_follow,
    newline_mask,
    punctuation_lead_mask,
    record_end_mask,
    stop_mask,
    walk_letters,
    word_mask,
    zero_continuation_mask,
)
from evenhand.corpus.term_matcher import BITS, FILTER_BITS, I64, SECOND, SINGLE, U64, Bytes
from evenhand.corpus.unit_counts import (
    AT_EMPTY_LINE,
    AT_FILE_END,
    AT_RECORD_END,
    LONG,
    add_hits,
    fingerprint,
    is_dense,
    is_empty_line,
    sample_unit,
    settle_document,
)

# numba infers the types when it compiles; a call inside a loop over words costs more than the work it would
# do, so these functions are long and take many arguments.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, call-arg, call-overload, var-annotated"
# ruff: noqa: C901, PLR0913, PLR0915


SENTENCE, LINE, DOCUMENT, RECORD = 0, 1, 2, 3
"""Where a unit ends; RECORD: at the ends of records only."""
PADDING = 128
"""Zero bytes that must follow the data: blocks and words are read whole."""
STRETCH = 1 << 14
"""Bytes that are indexed at a time: their index stays in the cache."""
BLOCKS = STRETCH // 64
LOWER = np.uint64(0x2020202020202020)

_FAR = 1 << 62
_TWO, _THREE = np.uint64(2), np.uint64(3)
_SIX, _TO_FILTER, _S62, _S63 = np.uint64(6), np.uint64(64 - FILTER_BITS), np.uint64(62), np.uint64(63)
_KEPT_BITS = np.array([(1 << size) - 1 for size in range(65)], dtype=np.uint64)


class _StretchIndex(NamedTuple):
    """The words and units of a stretch, as places in the whole data: a record is never cut."""

    edges: I64
    """The starts and ends of words, alternating."""
    bounds: I64
    """The ends of units."""
    words_before: I64
    """Words before each of the bounds."""
    chosen: npt.NDArray[np.int32]
    """The words that may be terms."""
    high_blocks: I64
    """Which blocks hold non-ASCII bytes."""
    carry: U64
    """Whether the last block ends within a word, and within the bytes of a quote or dash."""
    scratch: Bytes
    """A folded word."""


@njit(cache=True, nogil=True)
def index_words(data, first, last, end, stop, unit, records, at_line_start, pending, words, index):
    """Find where the words and units of a stretch begin and end; return the number of word edges."""
    edges, bounds, words_before = index.edges, index.bounds, index.words_before
    high_blocks, carry = index.high_blocks, index.carry
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
            # U+2000 to U+203F, mostly quotes and dashes, is E2 80 xx and separates words: no need to decode.
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
        # Always write sixteen: a few too many cost less than a mispredicted branch.
        for i in range(16):
            edges[n_before + i] = block + count_trailing_zeros(rest)
            rest &= rest - ONE
        written = n_before + 16
        while rest:
            edges[written] = block + count_trailing_zeros(rest)
            written += 1
            rest &= rest - ONE
        while bound:
            at = count_trailing_zeros(bound)
            place = block + at
            bound &= bound - ONE
            if unit != 2 or data[place] == 255 or place == stop or is_empty_line(data, place, at_line_start):
                bounds[n_bounds] = place
                # A word has two edges; no word crosses the end of a unit.
                words_before[n_bounds] = words + ((n_before + count_bits(edge & _KEPT_BITS[at + 1])) >> 1)
                n_bounds += 1
    carry[0], carry[1] = was_word, punctuation
    bounds[n_bounds] = _FAR
    return n_edges


@njit(cache=True, nogil=True)
def filter_candidates(data, first, n_words, pending, index, filter_):
    """Choose the words that may be terms or hold non-ASCII bytes, without a branch to mispredict."""
    edges, high_blocks, chosen = index.edges, index.high_blocks, index.chosen
    base = data.ctypes.data
    n_chosen = np.int64(0)
    begin = 0
    has_high_block = high_blocks.any()
    if pending and n_words:
        chosen[0] = 0
        n_chosen, begin = np.int64(1), 1
    for i in range(begin, n_words):
        start, stop = edges[2 * i], edges[2 * i + 1]
        head = (load_word(base + start) | LOWER) & KEPT_BITS[min(stop - start, 8)]
        place = (head * FACTOR) >> _TO_FILTER
        passes = np.int64((filter_[place >> _SIX] >> (place & _S63)) & ONE)
        if has_high_block:
            passes |= high_blocks[(start - first) >> 6] | high_blocks[(stop - 1 - first) >> 6]
            # A longer run may hold non-ASCII bytes between its first and last block.
            passes |= np.int64(stop - start > 64)
        chosen[n_chosen] = i
        n_chosen += passes
    return n_chosen


@njit(cache=True, nogil=True)
def scan_bytes(data, end, stop, offset, chunk, matcher, tally, unit, records, document_end, distinct, key):
    """Count the words of ``data[:end]``; terms may reach up to ``stop``, and zeros follow.

    Args:
        data: Bytes, with `PADDING` zeros after ``stop``.
        end: A place between two words; in the last call the place after ``stop``.
        stop: The end of the data; in the last call a newline is written here, which ends the last unit.
        offset: The place of ``data[0]`` in its file.
        chunk: The number of this call, which locates its samples.
        matcher: The terms.
        tally: The counts so far; updated in place.
        unit: SENTENCE, LINE, DOCUMENT or RECORD.
        records: Whether byte 0xFF ends a unit.
        document_end: Where a document ends, such as `unit_counts.AT_EMPTY_LINE`.
        distinct: Whether to count distinct terms in addition to flags.
        key: Seeds the samples of this file.
    """
    state = tally.state[0]
    # Places may exceed 2^31.
    index = _StretchIndex(
        edges=np.empty(STRETCH + 64, dtype=np.int64),
        bounds=np.empty(STRETCH + 2, dtype=np.int64),
        words_before=np.empty(STRETCH + 2, dtype=np.int64),
        chosen=np.empty(STRETCH + 2, dtype=np.int32),
        high_blocks=np.zeros(BLOCKS + 1, dtype=np.int64),
        carry=np.zeros(2, dtype=np.uint64),
        scratch=np.zeros(matcher.sizes[3] + 16, dtype=np.uint8),
    )
    edges = index.edges
    words, pending = 0, 0
    state.unit_first, state.extra = 0, state.has_words
    state.unit_start -= offset
    first = 0
    while first < end:
        last = min(first + STRETCH, end)
        here = (first, last, end, stop)
        n_edges = index_words(data, *here, unit, records, state.at_line_start, pending, words, index)
        if last == end and n_edges & 1:
            edges[n_edges] = end
            n_edges += 1
        n_words = n_edges >> 1
        n_chosen = filter_candidates(data, first, n_words, pending, index, matcher.filter)
        where = (stop, offset, chunk)
        _count_chosen(data, *where, matcher, tally, n_chosen, index, document_end, distinct, key)
        words += n_words
        pending = n_edges & 1
        if pending:
            edges[0] = edges[n_edges - 1]
        first = last
    state.words += words
    state.has_words = 1 if words - state.unit_first + state.extra > 0 else 0
    state.unit_start += offset
    state.at_line_start = 1 if data[end - 1] == 10 else 0
    if end > stop and state.document_units:
        settle_document(state, True, tally.blocks, tally.noted, matcher.sizes, matcher.axis)


@njit(cache=True, nogil=True)
def _count_chosen(data, stop, offset, chunk, matcher, tally, n_chosen, index, document_end, distinct, key):
    """Look up the chosen words in order, and end the units that hold them."""
    # Unpack the arrays before the loop: each access through a tuple counts references.
    edges, bounds, words_before, chosen = index.edges, index.bounds, index.words_before, index.chosen
    slots, entries, spelling = matcher.slots, matcher.entries, matcher.spelling
    term_seen, hits, noted = tally.term_seen, tally.hits, tally.noted
    blocks, sizes, axis, scratch = tally.blocks, matcher.sizes, matcher.axis, index.scratch
    base, state, dense = data.ctypes.data, tally.state[0], is_dense(matcher.sizes)
    priorities, samples, seen = tally.priority, tally.sample, tally.category_seen
    by_hits, has_samples = distinct or not dense, priorities.shape[1] > 0
    emotion_bits = (ONE << np.uint64(sizes[0])) - ONE
    mask, n_hits, stamp, unit_start = np.uint64(state.mask), state.hits, state.unit, state.unit_start
    at_bound, next_bound, n_noted = 0, bounds[0], state.noted
    is_any_line, counts_sets = document_end != AT_EMPTY_LINE, np.int64(dense)
    last_byte = np.int64(255 if document_end == AT_RECORD_END else -1 if document_end == AT_FILE_END else 10)
    for c in range(n_chosen + 1):
        start = edges[2 * chosen[c]] if c < n_chosen else _FAR - 1
        while start > next_bound:
            if words_before[at_bound] - state.unit_first + state.extra > 0:
                state.units += 1
                # Distinct terms and samples need an emotion.
                if mask & emotion_bits if dense else n_hits:
                    if n_hits:
                        state.hits, state.unit, state.noted = n_hits, stamp, n_noted
                        add_hits(matcher, tally, distinct)
                        n_noted = state.noted
                    if has_samples:
                        here = (unit_start, min(next_bound, stop - 1), offset, chunk, key)
                        sample_unit(sizes, seen, stamp, mask, *here, priorities, samples)
                n_hits, stamp = 0, stamp + 1
                state.document_key = fingerprint(state.document_key, base, unit_start, next_bound)
                state.document_units += 1
                # Written even if it is not kept: a branch would often be mispredicted.
                noted[n_noted] = mask
                n_noted += np.int64(mask != ZERO) & counts_sets
                state.with_group += np.int64(mask > emotion_bits) & counts_sets
            # Nearly every non-empty line fails the first test.
            may_end = (data[next_bound] == last_byte) & ((data[next_bound - 1] <= 32) | is_any_line)
            if (may_end and state.document_units) or n_noted >= LONG:
                state.noted = n_noted
                may_end &= is_any_line or is_empty_line(data, next_bound, state.at_line_start)
                settle_document(state, may_end, blocks, noted, sizes, axis)
                n_noted = state.noted
            mask, state.unit_first, state.extra = ZERO, words_before[at_bound], 0
            unit_start = next_bound + 1
            at_bound += 1
            next_bound = bounds[at_bound]
        if c == n_chosen:
            break
        end = edges[2 * chosen[c] + 1]
        size = end - start
        first = load_word(base + start) & KEPT_BITS[min(size, 8)]
        last = load_word(base + end - 8) if size > 8 else ZERO
        if has_high(data, start, size, first | last):
            state.hits, state.unit = n_hits, stamp
            mask = walk_letters(data, start, end, stop, offset, matcher, tally, by_hits, scratch, mask)
            n_hits = state.hits
            continue
        first |= LOWER & KEPT_BITS[min(size, 8)]
        if size > 8:
            last |= LOWER
        entry = find_entry(data, start, size, first, last, slots, entries, spelling)
        if entry < 0:
            continue
        mask |= entries[entry, BITS]
        if by_hits and entries[entry, SINGLE]:
            term = np.int64(entries[entry, SINGLE]) - 1
            if term_seen[term] != stamp:
                term_seen[term] = stamp
                hits[n_hits] = term
                n_hits += 1
        second = entries[entry, SECOND]
        if second and may_follow(second, data[end], data[end + 1]):
            state.hits, state.unit = n_hits, stamp
            mask |= longer_terms(data, end, stop, matcher, tally, by_hits, entry)
            n_hits = state.hits
    state.mask, state.hits, state.unit, state.unit_start = np.int64(mask), n_hits, stamp, unit_start
    state.noted = n_noted
