"""Sums, exponentials and products that LLVM vectorises, for the CPU backend."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeAlias, cast

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

# Not all of fast-math: overflows must stay visible, since such rows keep the model's own logits.
FAST_MATH_FLAGS: Final = {"reassoc", "contract", "arcp", "nsz"}
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


def run_on_cores(work: Callable[..., None], rows: int, *arguments: object, cores: int) -> None:
    """Split rows over the cores; the function gets the begin and end of its part as first arguments."""
    parts = max(1, min(cores, rows))
    ends = [rows * part // parts for part in range(parts + 1)]
    (first, *others) = pairwise(ends)
    # Not numba's own threads: they do not survive a fork, and corpora are counted in forked processes.
    begun = [_pool(os.getpid(), cores).submit(work, *other, *arguments) for other in others]
    work(*first, *arguments)
    for part in begun:
        part.result()


@lru_cache(maxsize=1)
def _pool(_process: int, cores: int) -> ThreadPoolExecutor:
    """A thread pool per process; a fork does not inherit its parent's threads."""
    return ThreadPoolExecutor(cores, thread_name_prefix="calibration")


def _typed_power(_context: object, number: object) -> _Value:
    """2 to the power of an integer from -126 to 128; the power of 128 is infinite."""

    def generate(_context: object, builder: _Builder, _signature: object, arguments: _Value) -> _Value:
        exponent = builder.add(builder.fptosi(arguments[0], _INT), ir.Constant(_INT, 127))
        return builder.bitcast(builder.shl(exponent, ir.Constant(_INT, 23)), _FLOAT)

    return types.float32(types.float32), generate


_power_of_two = cast("Callable[[np.float32], np.float32]", intrinsic(_typed_power))


def _typed_rank(_context: object, number: object) -> _Value:
    """An integer with the order of a float32; NaN is above all others."""

    def generate(_context: object, builder: _Builder, _signature: object, arguments: _Value) -> _Value:
        bits = builder.bitcast(arguments[0], _INT)
        sign = builder.ashr(bits, ir.Constant(_INT, 31))
        return builder.xor(bits, builder.and_(sign, ir.Constant(_INT, 0x7FFFFFFF)))

    return types.int32(types.float32), generate


rank = cast("Callable[[np.float32], np.int32]", intrinsic(_typed_rank))


@njit(fastmath={"contract"}, inline="always")
def exp(x: np.float32) -> np.float32:
    """The exponential, accurate to 2e-7; 1e-38 below -87."""
    if x < _LOWEST:
        x = _LOWEST
    whole: np.float32 = np.floor(x * _LOG2_E + _HALF)
    if whole > _HIGHEST:
        whole = _HIGHEST
    r = x - whole * _LN_2
    tail = ((((_P0 * r + _P1) * r + _P2) * r + _P3) * r + _P4) * r + _P5
    power: np.float32 = (tail * r * r + r + _ONE) * _power_of_two(whole)
    return power


@njit(fastmath={"contract"}, inline="always")
def tanh(x: np.float32) -> np.float32:
    """The hyperbolic tangent, accurate to 2e-7."""
    return _ONE - _TWO / (exp(_TWO * x) + _ONE)


@njit(fastmath=FAST_MATH_FLAGS, cache=True, nogil=True)
def dot(one: Floats, two: Floats) -> np.float32:
    """The inner product."""
    total = np.float32(0)
    for place in range(one.size):
        total += one[place] * two[place]
    return total


@njit(fastmath=FAST_MATH_FLAGS, cache=True, nogil=True)
def four_dots(
    a: Floats, b: Floats, c: Floats, d: Floats, other: Floats
) -> tuple[np.float32, np.float32, np.float32, np.float32]:
    """The inner products of four vectors with a fifth, which is read once."""
    p = q = r = s = np.float32(0)
    for place in range(other.size):
        factor = other[place]
        p += a[place] * factor
        q += b[place] * factor
        r += c[place] * factor
        s += d[place] * factor
    return p, q, r, s


@njit(fastmath=FAST_MATH_FLAGS, cache=True, nogil=True)
def four_by_two(
    a: Floats, b: Floats, c: Floats, d: Floats, one: Floats, two: Floats
) -> tuple[tuple[np.float32, ...], tuple[np.float32, ...]]:
    """The inner products of four vectors with two others: eight sums from six reads."""
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


@njit(fastmath=FAST_MATH_FLAGS, cache=True, nogil=True)
def add(total: Floats, weight: np.float32, vector: Floats) -> None:
    """Add a weighted vector."""
    for place in range(total.size):
        total[place] += weight * vector[place]


@njit(fastmath=FAST_MATH_FLAGS, cache=True, nogil=True)
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


_SAMPLE: Final = 2048
"""Number of sampled logits for estimating the threshold of the most likely tokens."""
_LOW: Final = np.int64(0xFFFFFFFF)
_LEAST: Final = np.float32(-87)


class TopKConfig(NamedTuple):
    """The number of tokens to find, and the number used to estimate the rest."""

    size: int
    reach: int
    follow: float
    nothing: float


class TopKResult(NamedTuple):
    """The most likely tokens of each row, as in `policy.Support`."""

    tokens: Ints
    logits: Floats
    mass: Floats
    direction: Floats
    rest: Floats
    """The bias added to the direction's product with the hidden state."""


@njit(fastmath=FAST_MATH_FLAGS, cache=True, nogil=True)
def find_topk(
    begin: int, end: int, hidden: Floats, logits: Floats, table: Floats, near: TopKConfig, result: TopKResult
) -> None:
    """Write the most likely tokens of the rows from ``begin`` to ``end``."""
    keys, sample = np.empty(logits.shape[1], np.int64), np.empty(2 * _SAMPLE, np.float32)
    shares, tokens = np.empty(near.reach, np.float32), np.empty(near.reach, np.int64)
    for row in range(begin, end):
        top, total, weighted = _masses(logits[row])
        mass = top + np.float32(math.log(total))
        count = _candidate_keys(logits[row], near.reach, sample, keys)
        order = np.sort(keys[:count])
        inside = reached = spoken = 0.0
        for place in range(near.reach):
            token = _LOW - (order[count - 1 - place] & _LOW)
            value = logits[row, token]
            shares[place], tokens[place] = exp(value - mass), token
            reached += shares[place]
            spoken += float(shares[place]) * (value - top)
            if place < near.size:
                inside += shares[place]
                result.tokens[row, place], result.logits[row, place] = token, value
        _sum_vectors(near, shares, tokens, table, result.direction[row])
        # The sum over all tokens minus that over the near ones: the mean logit beyond, times its mass.
        far = max(1 - reached, 1e-9)
        beyond = float(top) * far + float(weighted) / float(total) - spoken
        _rest_direction(
            hidden[row], max(reached - inside, 1e-30), far, beyond, near.follow, result.direction[row]
        )
        rest = max(math.log1p(-inside), near.nothing) if inside < 1 else near.nothing
        result.mass[row] = mass
        result.rest[row] = mass + np.float32(rest) - dot(result.direction[row], hidden[row])


@njit(fastmath=FAST_MATH_FLAGS, cache=True, nogil=True)
def _masses(logits: Floats) -> tuple[np.float32, np.float32, np.float32]:
    """The largest logit; the sums of e and of e d, with d a logit minus the largest and e = exp(d)."""
    best = rank(logits[0])
    for place in range(logits.size):
        best = max(best, rank(logits[place]))
    # Compared as integers: a float comparison that keeps NaN cannot be vectorised.
    top = logits[0]
    for place in range(logits.size):
        if rank(logits[place]) == best:
            top = logits[place]
            break
    total = weighted = np.float32(0)
    for place in range(logits.size):
        below = logits[place] - top
        if below < _LEAST:
            below = _LEAST
        mass = exp(below)
        total += mass
        weighted += mass * below
    return top, total, weighted


@njit(cache=True, nogil=True)
def _candidate_keys(logits: Floats, wanted: int, sample: Floats, keys: Ints) -> int:
    """Write keys of at least the ``wanted`` most likely tokens, ordered by logit, then descending token."""
    step = max(1, logits.size // _SAMPLE)
    size = 0
    for place in range(0, logits.size, step):
        sample[size] = logits[place]
        size += 1
    expected = wanted / step
    guess = int(expected + 3 * math.sqrt(expected)) + 2
    count = 0
    while count < wanted:
        bound = (
            np.float32(-np.inf) if guess >= size else np.partition(sample[:size], size - guess)[size - guess]
        )
        count = 0
        for place in range(logits.size):
            # Not `>=`: NaN must pass too and stay visible.
            if not logits[place] < bound:
                keys[count] = (np.int64(rank(logits[place])) << 32) | (_LOW - place)
                count += 1
        guess *= 2
    return count


@njit(fastmath=FAST_MATH_FLAGS, cache=True, nogil=True)
def _sum_vectors(near: TopKConfig, shares: Floats, tokens: Ints, table: Floats, out: Floats) -> None:
    """Write the share-weighted sum of the vectors between size and reach."""
    out[:] = 0
    place = near.size
    while place + 4 <= near.reach:
        a, b, c, d = tokens[place], tokens[place + 1], tokens[place + 2], tokens[place + 3]
        weights = (shares[place], shares[place + 1], shares[place + 2], shares[place + 3])
        add_four(out, weights, table[a], table[b], table[c], table[d])
        place += 4
    for last in range(place, near.reach):
        add(out, shares[last], table[tokens[last]])


@njit(fastmath=FAST_MATH_FLAGS, cache=True, nogil=True)
def _rest_direction(
    hidden: Floats, weight: float, far: float, beyond: float, follow: float, out: Floats
) -> None:
    """Turn the sum over the near tokens into the mean over the whole rest (`policy.RestConfig`)."""
    length = max(float(dot(hidden, hidden)), 1e-30)
    along = float(dot(out, hidden)) / weight / length
    scale = np.float32((1 + far * follow / weight) / (weight + far))
    shift = np.float32((beyond / length - far * follow * along) / (weight + far))
    for place in range(out.size):
        out[place] = scale * out[place] + shift * hidden[place]
