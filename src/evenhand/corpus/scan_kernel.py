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

from evenhand.corpus import letters
from evenhand.corpus.letters import FACTOR, KEPT_BITS, MIX, ONE, ZERO, count_trailing_zeros, load_word
from evenhand.corpus.term_matcher import BITS, DENSE_BITS, FILTER_BITS, I64, SECOND, SINGLE, U64, Bytes

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

AT_RECORD_END, AT_EMPTY_LINE, AT_LINE_END, AT_FILE_END = 0, 1, 2, 3
"""Where a document ends."""
LONG = 4096
"""Entries after which a document is identified by its beginning, so that it need not be kept whole."""
CELL = np.uint64(1 << 63)
"""Marks an entry that is one column of the blocks, not a set of categories."""

_MIX_A, _MIX_B = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_FAR = 1 << 62
_TWO, _THREE = np.uint64(2), np.uint64(3)
_S29, _S30, _S27, _S31, _S32 = np.uint64(29), np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32)
_SIX, _TO_FILTER, _S62, _S63 = np.uint64(6), np.uint64(64 - FILTER_BITS), np.uint64(62), np.uint64(63)
_KEPT_BITS = np.array([(1 << size) - 1 for size in range(65)], dtype=np.uint64)


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
        is_word = letters.word_mask(base + block)
        high = letters.high_mask(base + block)
        bound = letters.newline_mask(base + block)
        if unit == 0:
            blank = letters.blank_mask(base + block) >> ONE
            after = data[block + 64]
            if after == 32 or 9 <= after <= 13:
                blank |= ONE << _S63
            bound |= letters.stop_mask(base + block) & blank
        elif unit == 3:
            bound = ZERO
        if high:
            # U+2000 to U+203F, mostly quotes and dashes, is E2 80 xx and separates words: no need to decode.
            second = letters.zero_continuation_mask(base + block) >> ONE
            third = letters.continuation_mask(base + block) >> _TWO
            after, later = data[block + 64], data[block + 65]
            if after & 0xC0 == 0x80:
                third |= ONE << _S62
                if after == 0x80:
                    second |= ONE << _S63
            if later & 0xC0 == 0x80:
                third |= ONE << _S63
            lead = letters.punctuation_lead_mask(base + block) & second & third
            separating = lead | (lead << ONE) | (lead << _TWO) | punctuation
            punctuation = ((lead >> _S63) * _THREE) | ((lead >> _S62) & ONE)
            if records:
                record_end = letters.record_end_mask(base + block)
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
        n_edges += letters.count_bits(edge)
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
                words_before[n_bounds] = words + (
                    (n_before + letters.count_bits(edge & _KEPT_BITS[at + 1])) >> 1
                )
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
        document_end: Where a document ends, such as AT_EMPTY_LINE.
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
        if letters.has_high(data, start, size, first | last):
            state.hits, state.unit = n_hits, stamp
            mask = letters.walk_letters(
                data, start, end, stop, offset, matcher, tally, by_hits, scratch, mask
            )
            n_hits = state.hits
            continue
        first |= LOWER & KEPT_BITS[min(size, 8)]
        if size > 8:
            last |= LOWER
        entry = letters.find_entry(data, start, size, first, last, slots, entries, spelling)
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
        if second and letters.may_follow(second, data[end], data[end + 1]):
            state.hits, state.unit = n_hits, stamp
            mask |= letters.longer_terms(data, end, stop, matcher, tally, by_hits, entry)
            n_hits = state.hits
    state.mask, state.hits, state.unit, state.unit_start = np.int64(mask), n_hits, stamp, unit_start
    state.noted = n_noted
