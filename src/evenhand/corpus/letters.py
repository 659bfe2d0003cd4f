"""Letters in the kernel: UTF-8, folded forms, and matching the words after the first one of a term."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from evenhand.corpus.term_matcher import (
    BITS,
    FILTER_FACTOR,
    HEAD,
    LENGTH,
    LONGER,
    PLACE,
    SINGLE,
    SLOT_FACTOR,
    TAIL,
)
from evenhand.corpus.tokenisation import GAP_BYTES

# numba infers the types when it compiles; a call inside a loop over words costs more than the work it would
# do, so these functions are long and take many arguments.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, call-arg, call-overload, var-annotated"
# ruff: noqa: C901, PLR0913, SIM110

ONE, ZERO = np.uint64(1), np.uint64(0)
FACTOR, MIX = np.uint64(FILTER_FACTOR), np.uint64(SLOT_FACTOR)
TO_SLOT = np.uint64(32)
KEPT_BITS = np.array([(1 << (8 * size)) - 1 for size in range(9)], dtype=np.uint64)
"""Masks that keep the bytes of a word shorter than eight."""
HIGH = np.uint64(0x8080808080808080)
_LOW = np.uint64(0xFFFFFFFF)


@njit(cache=True, nogil=True)
def decode_code_point(data, place, stop):
    """The code point at a place and its size in bytes; -1 and 1 if the bytes are not UTF-8."""
    if place >= stop:
        return np.int64(-1), np.int64(1)
    lead = np.int64(data[place])
    if lead < 0x80:
        return lead, np.int64(1)
    if lead < 0xC2 or lead > 0xF4:
        return np.int64(-1), np.int64(1)
    size = 2 if lead < 0xE0 else (3 if lead < 0xF0 else 4)
    if place + size > stop:
        return np.int64(-1), np.int64(1)
    code = lead & (0x1F if size == 2 else (0x0F if size == 3 else 0x07))
    for i in range(1, size):
        byte = np.int64(data[place + i])
        if byte & 0xC0 != 0x80:
            return np.int64(-1), np.int64(1)
        code = (code << 6) | (byte & 0x3F)
    overlong = (size == 3 and code < 0x800) or (size == 4 and code < 0x10000)
    if overlong or code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        return np.int64(-1), np.int64(1)
    return code, np.int64(size)


@njit(cache=True, nogil=True)
def encoded_size(code):
    """The number of bytes UTF-8 needs for a code point."""
    return 1 if code < 0x80 else (2 if code < 0x800 else (3 if code < 0x10000 else 4))


@njit(cache=True, nogil=True)
def encode_letter_byte(code, place):
    """One byte of the UTF-8 form of a letter, folded as words are when compared."""
    if code < 0x80:
        return code | 32
    size = encoded_size(code)
    if place > 0:
        return 0x80 | ((code >> (6 * (size - 1 - place))) & 0x3F)
    lead = 0xC0 if size == 2 else (0xE0 if size == 3 else 0xF0)
    return lead | (code >> (6 * (size - 1)))


@njit(cache=True, nogil=True)
def same_middle(data, start, size, spelling, place):
    """Whether a word matches a spelling between its first and last eight bytes."""
    for i in range(8, size - 8):
        byte = data[start + i]
        if byte < 128:
            byte |= 32
        if byte != spelling[place + i]:
            return False
    return True


@njit(cache=True, nogil=True, inline="always")
def find_entry(data, start, size, first, last, slots, entries, spelling):
    """The entry of a word, by its folded first and last eight bytes; -1 if no term begins with it."""
    slot_mask = np.uint64(slots.size - 1)
    slot = (((first ^ (last * MIX) ^ np.uint64(size)) * FACTOR) >> TO_SLOT) & slot_mask
    entry = slots[slot]
    while entry >= 0:
        same = (
            entries[entry, HEAD] == first
            and entries[entry, TAIL] == last
            and entries[entry, LENGTH] == np.uint64(size)
        )
        if same and (size <= 16 or same_middle(data, start, size, spelling, np.int64(entries[entry, PLACE]))):
            break
        slot = (slot + ONE) & slot_mask
        entry = slots[slot]
    return np.int64(entry)


@njit(cache=True, nogil=True)
def matches_remaining(data, place, stop, matcher, spelled, spelled_end):
    """Whether the remaining words of a term follow in the text."""
    while spelled < spelled_end:
        gap = place
        while gap < stop:
            code, size = decode_code_point(data, gap, stop)
            allowed = False
            for letter in matcher.gaps:
                allowed |= letter == code
            if not allowed:
                break
            gap += size
        if gap == place or gap - place > GAP_BYTES:
            return False
        place = gap
        while matcher.spelling[spelled] != 0:
            code, size = decode_code_point(data, place, stop)
            if code < 0 or matcher.is_word[code] == 0:
                return False
            code, place = matcher.folded[code], place + size
            for shift in range(encoded_size(code)):
                if matcher.spelling[spelled] != encode_letter_byte(code, shift):
                    return False
                spelled += 1
        code, size = decode_code_point(data, place, stop)
        if code >= 0 and matcher.is_word[code] != 0:
            return False
        spelled += 1
    return True


@njit(cache=True, nogil=True)
def find_after_last(data, stop, byte):
    """The place after the last occurrence of a byte; 0 if there is none."""
    place = stop
    while place > 0 and data[place - 1] != byte:
        place -= 1
    return place


@njit(cache=True, nogil=True)
def place_between_words(data, place, matcher):
    """The last place at or before ``place`` where no word is cut in two; -1 if there is none."""
    at = place
    while at > 0:
        if data[at] & 0xC0 != 0x80:
            code = decode_code_point(data, at, data.size)[0]
            if code < 0 or matcher.is_word[code] == 0:
                return at
        at -= 1
    return -1


@njit(cache=True, nogil=True)
def end_of_word(data, stop, matcher):
    """Where a word that began before ``data`` ends in it, at most ``stop``."""
    place = 0
    while place < stop:
        code, size = decode_code_point(data, place, stop)
        if code < 0 or matcher.is_word[code] == 0:
            return place
        place += size
    return stop


@njit(cache=True, nogil=True)
def has_high(data, start, size, ends):
    """Whether a word holds non-ASCII bytes; ``ends`` are the bits of its first and last eight bytes."""
    if ends & HIGH:
        return True
    for i in range(8, size - 8):
        if data[start + i] >= 128:
            return True
    return False


@njit(cache=True, nogil=True)
def may_follow(second, gap, letter):
    """Whether a second word may begin after a gap of one byte: quickly rules out most first words."""
    if gap >= 128 or letter >= 128:
        return True
    if gap != 32 and gap != 45 and gap != 39 and gap != 9:
        return False
    if letter == 32 or letter == 45 or letter == 39 or letter == 9:
        return True
    return (second >> np.uint64((letter | 32) & 63)) & ONE != ZERO


@njit(cache=True, nogil=True)
def longer_terms(data, place, stop, matcher, tally, by_hits, entry):
    """The categories of the longer terms that match here, given the entry of their first word."""
    mask = ZERO
    span = matcher.entries[entry, LONGER]
    for i in range(np.int64(span & _LOW), np.int64(span >> TO_SLOT)):
        term, begin, end = matcher.longer[i]
        if matches_remaining(data, place, stop, matcher, begin, end):
            mask |= matcher.term_bits[term]
            if by_hits:
                _note(tally, term)
    return mask


@njit(cache=True, nogil=True)
def _note(tally, term):
    state = tally.state[0]
    if tally.term_seen[term] != state.unit:
        tally.term_seen[term] = state.unit
        tally.hits[state.hits] = term
        state.hits += 1


@njit(cache=True, nogil=True)
def walk_letters(data, start, end, stop, offset, matcher, tally, by_hits, scratch, mask):
    """The mask after a run with non-ASCII bytes: the slow path, letter by letter."""
    words, size, place = 0, 0, start
    room = matcher.sizes[3]
    state = tally.state[0]
    while place <= end:
        code, step = decode_code_point(data, place, end) if place < end else (-2, 1)
        if code == -1:
            if state.bad_bytes == 0:
                state.first_bad = offset + place
            state.bad_bytes += 1
        if code >= 0 and matcher.is_word[code] != 0:
            code = matcher.folded[code]
            for shift in range(encoded_size(code)):
                if size < room:
                    scratch[size] = encode_letter_byte(code, shift)
                size += 1
        elif size > 0:
            words += 1
            entry = np.int64(-1)
            if size <= room:
                first = load_word(scratch.ctypes.data) & KEPT_BITS[min(size, 8)]
                last = load_word(scratch.ctypes.data + size - 8) if size > 8 else ZERO
                slots, entries = matcher.slots, matcher.entries
                entry = find_entry(scratch, 0, size, first, last, slots, entries, matcher.spelling)
            if entry >= 0:
                mask |= matcher.entries[entry, BITS]
                if by_hits and matcher.entries[entry, SINGLE]:
                    _note(tally, np.int64(matcher.entries[entry, SINGLE]) - 1)
                mask |= longer_terms(data, place, stop, matcher, tally, by_hits, entry)
            size = 0
        place += step
    # The caller counted the run as one word.
    state.extra += words - 1
    state.words += words - 1
    return mask


_WIDTH = 64
_BYTE, _WORD = ir.IntType(8), ir.IntType(64)
_BLOCK = ir.VectorType(_BYTE, _WIDTH)
# llvmlite and numba have no type stubs: their values stay inside this file.
_Builder: TypeAlias = Any
_Value: TypeAlias = Any


def _fill(byte: int) -> ir.Constant:
    return ir.Constant(_BLOCK, [byte] * _WIDTH)


def _instruction(result: _Value, argument: _Value, emit: Callable[[_Builder, _Value], _Value]) -> _Value:
    """An intrinsic function of one value, with the code that ``emit`` generates."""

    def define(context: object, value: object) -> _Value:
        def generate(_context: object, builder: _Builder, _signature: object, arguments: _Value) -> _Value:
            return emit(builder, arguments[0])

        return result(argument), generate

    return intrinsic(define)


def _load(builder: _Builder, address: _Value, kind: _Value = _WORD) -> _Value:
    value = builder.load(builder.inttoptr(address, ir.PointerType()), typ=kind)
    value.align = 1
    return value


def _mask(*ranges: tuple[int, int]) -> _Value:
    """An intrinsic function of an address: a bit for each of the 64 bytes there, set if a range holds it."""

    def emit(builder: _Builder, address: _Value) -> _Value:
        block = _load(builder, address, _BLOCK)
        tests = [
            builder.icmp_unsigned("<=", builder.sub(block, _fill(first)), _fill(last - first))
            for first, last in ranges
        ]
        return builder.bitcast(reduce(builder.or_, tests), _WORD)

    return _instruction(types.uint64, types.int64, emit)


word_mask = _mask((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A), (0x80, 0xFF))
high_mask = _mask((0x80, 0xFF))
newline_mask = _mask((0x0A, 0x0A))
stop_mask = _mask((0x21, 0x21), (0x2E, 0x2E), (0x3F, 0x3F))
blank_mask = _mask((0x09, 0x0D), (0x20, 0x20))
record_end_mask = _mask((0xFF, 0xFF))
punctuation_lead_mask = _mask((0xE2, 0xE2))
zero_continuation_mask = _mask((0x80, 0x80))
continuation_mask = _mask((0x80, 0xBF))


load_word = _instruction(types.uint64, types.int64, _load)
"""Eight bytes at an address, as one integer."""
count_bits = _instruction(types.int64, types.uint64, lambda builder, mask: builder.ctpop(mask))
"""The number of bits that are set."""
count_trailing_zeros = _instruction(
    types.int64, types.uint64, lambda builder, mask: builder.cttz(mask, ir.Constant(ir.IntType(1), 0))
)
"""The position of the lowest bit that is set; 64 if none is."""
