# numba gives these functions their types when it compiles them.
# mypy: disable-error-code="no-untyped-def, misc, no-untyped-call, call-arg"
"""Random draws of NumPy's default generator, compiled together with what is done with them.

NumPy fills an array with draws, then gathers by it, then sums: most of the time goes into memory. Here each
draw is used as it is made. The stream is that of `numpy.random.PCG64`, bit for bit.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from evenhand.stats._arrays import RandomSource

U64 = np.uint64
_LOW = U64(0xFFFFFFFF)
_HALF = U64(32)
_MULTIPLIER_HIGH, _MULTIPLIER_LOW = U64(0x2360ED051FC65DA4), U64(0x4385DF649FCCF645)
State = npt.NDArray[np.uint64]
"""State and increment of PCG64, each high then low; whether half a draw is left over, and that half."""


def make_generator(rng: RandomSource) -> np.random.Generator:
    """A generator on PCG64, NumPy's default; one on another bit generator seeds it."""
    generator = np.random.default_rng(rng)
    if isinstance(generator.bit_generator, np.random.PCG64):
        return generator
    return np.random.Generator(np.random.PCG64(int(generator.integers(1 << 63))))


def read_state(generator: np.random.Generator) -> State:
    """The state of a generator of `make_generator`."""
    known = generator.bit_generator.state
    of = known["state"]
    halves = [part for number in (of["state"], of["inc"]) for part in divmod(number, 1 << 64)]
    return np.array([*halves, known["has_uint32"], known["uinteger"]], dtype=np.uint64)


def restore_state(generator: np.random.Generator, state: State) -> None:
    """Leave a generator as NumPy would have left it."""
    high, low, more_high, more_low, has_half, half = (int(part) for part in state)
    generator.bit_generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": high << 64 | low, "inc": more_high << 64 | more_low},
        "has_uint32": has_half,
        "uinteger": half,
    }


@intrinsic
def _high_product(typing, a, b):
    """The upper half of the product of two 64-bit numbers."""

    def code(context, builder, signature, args):
        wide = ir.IntType(128)
        product = builder.mul(*(builder.zext(arg, wide) for arg in args))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), code


@njit(inline="always")
def _step(high, low, more_high, more_low):
    """The next state: state x multiplier + increment, in 128 bits."""
    new = low * _MULTIPLIER_LOW + more_low
    carry = U64(new < more_low)
    high = _high_product(low, _MULTIPLIER_LOW) + high * _MULTIPLIER_LOW + low * _MULTIPLIER_HIGH
    return high + more_high + carry, new


@njit(inline="always")
def _output(high, low):
    """The number a state stands for (XSL-RR)."""
    value, turn = high ^ low, high >> U64(58)
    return (value >> turn) | (value << ((U64(64) - turn) & U64(63)))


@njit(inline="always")
def _next(high, low, more_high, more_low, has_half, half):
    """The next 32 bits, lower half first; then state and the half that is left over."""
    if has_half:
        return half, high, low, U64(0), half
    high, low = _step(high, low, more_high, more_low)
    both = _output(high, low)
    return both & _LOW, high, low, U64(1), both >> _HALF


@njit(cache=True, nogil=True)
def resample_means(sums, sizes, state, means):
    """Fill ``means`` with sum over size of as many clusters as there are, drawn with replacement."""
    high, low, more_high, more_low, has_half, half = state
    count = U64(sums.size)
    # Lemire's way: the upper half of a product is uniform once the few smallest lower halves are redrawn.
    redrawn = (_LOW - (count - U64(1))) % count
    for row in range(means.size):
        total, size = 0.0, 0.0
        for _ in range(sums.size):
            product = U64(0)
            while True:
                number, high, low, has_half, half = _next(high, low, more_high, more_low, has_half, half)
                product = number * count
                if product & _LOW >= redrawn:
                    break
            place = product >> _HALF
            total += sums[place]
            size += sizes[place]
        means[row] = total / size
    state[0], state[1], state[4], state[5] = high, low, has_half, half


@njit(cache=True, nogil=True)
def permute_totals(inside, one_sided, two_sided, change, state, totals):
    """Add to each row of ``totals`` the changes of the clusters whose sides a random arrangement exchanges.

    ``inside`` are the labels of the one-sided clusters: they are put in random order, as NumPy's ``permuted``
    does, and a cluster whose label is another one then is exchanged. Of the two-sided ones each is, or not.
    """
    labels = inside.copy()
    chosen = np.empty(max(one_sided.size, two_sided.size), np.int64)
    for row in range(totals.shape[0]):
        labels[:] = inside
        _shuffle(labels, state)
        # Noted without a branch: which clusters these are no processor can foresee.
        count = np.int64(0)
        for cluster in range(labels.size):
            chosen[count] = one_sided[cluster]
            count += np.int64(labels[cluster] != inside[cluster])
        _add(change, chosen[:count], totals[row])
    high, low, more_high, more_low, has_half, half = state
    for row in range(totals.shape[0]):
        count = np.int64(0)
        for cluster in two_sided:
            number, high, low, has_half, half = _next(high, low, more_high, more_low, has_half, half)
            # NumPy's single-precision uniform is the upper 24 bits: below a half where the first bit is 0.
            chosen[count] = cluster
            count += np.int64(number >> U64(31) == U64(0))
        _add(change, chosen[:count], totals[row])
    state[0], state[1], state[4], state[5] = high, low, has_half, half


@njit(inline="always")
def _add(change, chosen, totals):
    """Add the changes of the chosen clusters, in their order."""
    for cluster in chosen:
        for column in range(totals.size):
            totals[column] += change[cluster, column]


@njit(cache=True, nogil=True)
def _shuffle(labels, state):
    """Put labels in random order, from the last place to the first.

    A draw that is too large is drawn again, as in NumPy; until then a label changes places with itself, since
    a processor that has to guess which draws are too large takes twice as long.
    """
    high, low, more_high, more_low, has_half, half = state
    last = labels.size - 1
    mask = U64(1)
    while mask < U64(max(1, last)):
        mask = mask << U64(1) | U64(1)
    while last > 0:
        while mask >> U64(1) >= U64(last):
            mask >>= U64(1)
        least = np.int64(mask >> U64(1))
        while last > least:
            number, high, low, has_half, half = _next(high, low, more_high, more_low, has_half, half)
            place = np.int64(number & mask)
            fits = place <= last
            other = place if fits else last
            labels[last], labels[other] = labels[other], labels[last]
            last -= np.int64(fits)
    state[0], state[1], state[4], state[5] = high, low, has_half, half
