# numba infers the types of these functions when it compiles them.
# mypy: disable-error-code="no-untyped-def, misc, no-untyped-call, call-arg"
"""Random draws from NumPy's default generator, compiled together with the code that uses them.

NumPy fills an array with draws, then gathers by it, then sums: memory traffic dominates the time. Here each
draw is used as soon as it is made. The stream is that of `numpy.random.PCG64`, bit for bit.
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
"""State and increment of PCG64, each high then low; whether half a draw is buffered, and that half."""


def make_generator(rng: RandomSource) -> np.random.Generator:
    """A generator on PCG64, NumPy's default; a generator of another kind seeds it."""
    generator = np.random.default_rng(rng)
    if isinstance(generator.bit_generator, np.random.PCG64):
        return generator
    return np.random.Generator(np.random.PCG64(int(generator.integers(1 << 63))))


def read_state(generator: np.random.Generator) -> State:
    """The state of a generator from `make_generator`."""
    known = generator.bit_generator.state
    pcg = known["state"]
    halves = [part for number in (pcg["state"], pcg["inc"]) for part in divmod(number, 1 << 64)]
    return np.array([*halves, known["has_uint32"], known["uinteger"]], dtype=np.uint64)


def restore_state(generator: np.random.Generator, state: State) -> None:
    """Set the generator to the state in which NumPy would have left it."""
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
    """The output for a state (XSL-RR)."""
    value, turn = high ^ low, high >> U64(58)
    return (value >> turn) | (value << ((U64(64) - turn) & U64(63)))


@njit(inline="always")
def _next(high, low, more_high, more_low, has_half, half):
    """The next 32 bits, lower half first; then the state and the buffered half."""
    if has_half:
        return half, high, low, U64(0), half
    high, low = _step(high, low, more_high, more_low)
    both = _output(high, low)
    return both & _LOW, high, low, U64(1), both >> _HALF


@njit(cache=True, nogil=True)
def resample_means(sums, sizes, state, means):
    """Fill ``means`` with bootstrap means: sum / size over all clusters, drawn with replacement."""
    high, low, more_high, more_low, has_half, half = state
    count = U64(sums.size)
    # Lemire's method: the upper half of a product is uniform once the few smallest lower halves are redrawn.
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
    """Add to each row of ``totals`` the changes from the clusters that a random arrangement exchanges.

    ``inside`` holds the labels of the one-sided clusters. They are shuffled as in NumPy's ``permuted``; a
    cluster whose label changes is exchanged. Each two-sided cluster is exchanged with probability 1/2.
    """
    labels = inside.copy()
    chosen = np.empty(max(one_sided.size, two_sided.size), np.int64)
    for row in range(totals.shape[0]):
        labels[:] = inside
        _shuffle(labels, state)
        # Branch-free: the processor cannot predict which clusters change.
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
            # NumPy's single-precision uniform is the upper 24 bits: below one half if the first bit is 0.
            chosen[count] = cluster
            count += np.int64(number >> U64(31) == U64(0))
        _add(change, chosen[:count], totals[row])
    state[0], state[1], state[4], state[5] = high, low, has_half, half


@njit(inline="always")
def _add(change, chosen, totals):
    """Add the changes of the chosen clusters, in order."""
    for cluster in chosen:
        for column in range(totals.size):
            totals[column] += change[cluster, column]


@njit(cache=True, nogil=True)
def _shuffle(labels, state):
    """Shuffle labels in place, from the last position to the first.

    A draw that is too large is repeated, as in NumPy; until then a label is swapped with itself, because
    mispredicted branches on such draws would double the time.
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
