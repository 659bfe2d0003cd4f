"""Sums, exponentials and products that LLVM turns into vector code, for `likeliest` and `fused`."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, TypeAlias, cast

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

# Not the whole of fast-math: an overflow must stay visible, since such a row is left as the model had it.
LOOSE: Final = {"reassoc", "contract", "arcp", "nsz"}
# llvmlite and numba have no type stubs: their values stay inside this file.
_Builder: TypeAlias = Any
_Value: TypeAlias = Any
_INT, _FLOAT = ir.IntType(32), ir.FloatType()
_ONE, _TWO, _HALF = np.float32(1), np.float32(2), np.float32(0.5)
_LOG2_E, _LN_2 = np.float32(1.4426950408889634), np.float32(0.6931471805599453)
_LOWEST, _HIGHEST = np.float32(-87), np.float32(128)
# exp(r) - 1 - r over r^2 for |r| <= log(2) / 2, to 1e-7 (Cephes).
_P0, _P1, _P2, _P3, _P4, _P5 = (
    np.float32(value)
    for value in (
        1.9875691500e-4,
        1.3981999507e-3,
        8.3334519073e-3,
        4.1665795894e-2,
        1.6666665459e-1,
        5.0000001201e-1,
    )
)


def each_core(work: Callable[..., None], rows: int, *arguments: object, cores: int) -> None:
    """Run a function over the rows from its first to its second argument, a part of them on each core."""
    parts = max(1, min(cores, rows))
    ends = [rows * part // parts for part in range(parts + 1)]
    (first, *others) = pairwise(ends)
    # Not numba's own threads: they must not be forked, and corpora are counted in forked processes.
    begun = [_pool(os.getpid(), cores).submit(work, *other, *arguments) for other in others]
    work(*first, *arguments)
    for part in begun:
        part.result()


@lru_cache(maxsize=1)
def _pool(_process: int, cores: int) -> ThreadPoolExecutor:
    """Threads of this process; a fork has none of its parent's."""
    return ThreadPoolExecutor(cores, thread_name_prefix="calibration")


def _typed_power(_context: object, number: object) -> _Value:
    """2 to a whole number between -126 and 128, where it is infinite."""

    def generate(_context: object, builder: _Builder, _signature: object, arguments: _Value) -> _Value:
        exponent = builder.add(builder.fptosi(arguments[0], _INT), ir.Constant(_INT, 127))
        return builder.bitcast(builder.shl(exponent, ir.Constant(_INT, 23)), _FLOAT)

    return types.float32(types.float32), generate


_power_of_two = cast("Callable[[np.float32], np.float32]", intrinsic(_typed_power))


def _typed_rank(_context: object, number: object) -> _Value:
    """An integer that grows with a float32; above all others for NaN."""

    def generate(_context: object, builder: _Builder, _signature: object, arguments: _Value) -> _Value:
        bits = builder.bitcast(arguments[0], _INT)
        sign = builder.ashr(bits, ir.Constant(_INT, 31))
        return builder.xor(bits, builder.and_(sign, ir.Constant(_INT, 0x7FFFFFFF)))

    return types.int32(types.float32), generate


rank = cast("Callable[[np.float32], np.int32]", intrinsic(_typed_rank))


@njit(fastmath={"contract"}, inline="always")
def exp(x: np.float32) -> np.float32:
    """The exponential to 2e-7; 1e-38 below -87."""
    if x < _LOWEST:
        x = _LOWEST
    whole: np.float32 = np.floor(x * _LOG2_E + _HALF)
    if whole > _HIGHEST:
        whole = _HIGHEST
    r = x - whole * _LN_2
    tail = ((((_P0 * r + _P1) * r + _P2) * r + _P3) * r + _P4) * r + _P5
    found: np.float32 = (tail * r * r + r + _ONE) * _power_of_two(whole)
    return found


@njit(fastmath={"contract"}, inline="always")
def tanh(x: np.float32) -> np.float32:
    """The hyperbolic tangent, at most 2e-7 away."""
    return _ONE - _TWO / (exp(_TWO * x) + _ONE)


@njit(fastmath=LOOSE, cache=True, nogil=True)
def dot(one: Floats, two: Floats) -> np.float32:
    """The inner product."""
    total = np.float32(0)
    for place in range(one.size):
        total += one[place] * two[place]
    return total


@njit(fastmath=LOOSE, cache=True, nogil=True)
def four_dots(
    a: Floats, b: Floats, c: Floats, d: Floats, other: Floats
) -> tuple[np.float32, np.float32, np.float32, np.float32]:
    """The inner products of four vectors with another, which is read once."""
    p = q = r = s = np.float32(0)
    for place in range(other.size):
        factor = other[place]
        p += a[place] * factor
        q += b[place] * factor
        r += c[place] * factor
        s += d[place] * factor
    return p, q, r, s


@njit(fastmath=LOOSE, cache=True, nogil=True)
def four_by_two(
    a: Floats, b: Floats, c: Floats, d: Floats, one: Floats, two: Floats
) -> tuple[tuple[np.float32, ...], tuple[np.float32, ...]]:
    """The inner products of four vectors with two others: eight sums from six vectors read."""
    p = q = r = s = t = u = v = w = np.float32(0)
    for place in range(one.size):
        x, y = one[place], two[place]
        p += a[place] * x
        q += b[place] * x
        r += c[place] * x
        s += d[place] * x
        t += a[place] * y
        u += b[place] * y
        v += c[place] * y
        w += d[place] * y
    return (p, q, r, s), (t, u, v, w)


@njit(fastmath=LOOSE, cache=True, nogil=True)
def add(total: Floats, weight: np.float32, vector: Floats) -> None:
    """Add a weighted vector."""
    for place in range(total.size):
        total[place] += weight * vector[place]


@njit(fastmath=LOOSE, cache=True, nogil=True)
def add_four(
    total: Floats,
    weights: tuple[np.float32, np.float32, np.float32, np.float32],
    a: Floats,
    b: Floats,
    c: Floats,
    d: Floats,
) -> None:
    """Add four weighted vectors; the sum is read and written once."""
    p, q, r, s = weights
    for place in range(total.size):
        total[place] += p * a[place] + q * b[place] + r * c[place] + s * d[place]
