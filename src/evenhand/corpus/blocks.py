"""Sixty-four bytes at a time: which of them are of a kind, as the bits of one integer.

Written as vector code that LLVM turns into the instructions of the machine at hand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_WIDTH = 64
_BYTE, _WORD = ir.IntType(8), ir.IntType(64)
_BLOCK = ir.VectorType(_BYTE, _WIDTH)
# llvmlite and numba have no type stubs: their values stay inside this file.
_Builder: TypeAlias = Any
_Value: TypeAlias = Any


def _fill(byte: int) -> ir.Constant:
    return ir.Constant(_BLOCK, [byte] * _WIDTH)


def _equal(builder: _Builder, block: _Value, byte: int) -> _Value:
    return builder.icmp_unsigned("==", block, _fill(byte))


def _between(builder: _Builder, block: _Value, first: int, last: int) -> _Value:
    return builder.icmp_unsigned("<=", builder.sub(block, _fill(first)), _fill(last - first))


def _is_word(builder: _Builder, block: _Value) -> _Value:
    lower = builder.or_(block, _fill(0x20))
    ascii_word = builder.or_(_between(builder, lower, 0x61, 0x7A), _between(builder, block, 0x30, 0x39))
    return builder.or_(builder.or_(ascii_word, _equal(builder, block, 0x5F)), _is_high(builder, block))


def _is_high(builder: _Builder, block: _Value) -> _Value:
    return builder.icmp_signed("<", block, _fill(0))


def _is_newline(builder: _Builder, block: _Value) -> _Value:
    return _equal(builder, block, 0x0A)


def _is_stop(builder: _Builder, block: _Value) -> _Value:
    points = builder.or_(_equal(builder, block, 0x2E), _equal(builder, block, 0x3F))
    return builder.or_(points, _equal(builder, block, 0x21))


def _is_blank(builder: _Builder, block: _Value) -> _Value:
    return builder.or_(_equal(builder, block, 0x20), _between(builder, block, 0x09, 0x0D))


def _is_record_end(builder: _Builder, block: _Value) -> _Value:
    return _equal(builder, block, 0xFF)


def _is_punctuation_lead(builder: _Builder, block: _Value) -> _Value:
    return _equal(builder, block, 0xE2)


def _is_zero_continuation(builder: _Builder, block: _Value) -> _Value:
    return _equal(builder, block, 0x80)


def _is_continuation(builder: _Builder, block: _Value) -> _Value:
    return builder.icmp_signed("<", block, _fill(-64))


def _mask(kind: Callable[[_Builder, _Value], _Value]) -> _Value:
    def typed(context: object, address: object) -> _Value:
        def generate(_context: object, builder: _Builder, _signature: object, arguments: _Value) -> _Value:
            pointer = builder.inttoptr(arguments[0], ir.PointerType())
            block = builder.load(pointer, typ=_BLOCK)
            block.align = 1
            return builder.bitcast(kind(builder, block), _WORD)

        return types.uint64(types.int64), generate

    return intrinsic(typed)


word_mask = _mask(_is_word)
high_mask = _mask(_is_high)
newline_mask = _mask(_is_newline)
stop_mask = _mask(_is_stop)
blank_mask = _mask(_is_blank)
record_end_mask = _mask(_is_record_end)
punctuation_lead_mask = _mask(_is_punctuation_lead)
zero_continuation_mask = _mask(_is_zero_continuation)
continuation_mask = _mask(_is_continuation)


@intrinsic
def load(_context: object, address: object) -> _Value:
    """Eight bytes at an address, as one integer."""

    def generate(_context: object, builder: _Builder, _signature: object, arguments: _Value) -> _Value:
        pointer = builder.inttoptr(arguments[0], ir.PointerType())
        value = builder.load(pointer, typ=_WORD)
        value.align = 1
        return value

    return types.uint64(types.int64), generate


@intrinsic
def lowest_bit(_context: object, mask: object) -> _Value:
    """The place of the lowest bit that is set; 64 where none is."""

    def generate(_context: object, builder: _Builder, _signature: object, arguments: _Value) -> _Value:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@intrinsic
def count_bits(_context: object, mask: object) -> _Value:
    """How many bits are set."""

    def generate(_context: object, builder: _Builder, _signature: object, arguments: _Value) -> _Value:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate
