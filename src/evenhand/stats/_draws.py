# numba gives these functions their types when it compiles them.
# mypy: disable-error-code="no-untyped-def, misc, no-untyped-call, call-arg"
"""Random draws of NumPy's default generator, compiled together with what is done with them.

NumPy fills an array with draws, then gathers by it, then sums: most of the time goes into memory. Here each
draw is used as it is made. The stream is that of `numpy.random.PCG64`, bit for bit, so results are those of
the plain way (`bootstrap._gathered_means`, `permutation._Sides.drawn`), which any other generator takes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

U64 = np.uint64
_LOW = U64(0xFFFFFFFF)
_HALF = U64(32)
_MULTIPLIER_HIGH, _MULTIPLIER_LOW = U64(0x2360ED051FC65DA4), U64(0x4385DF649FCCF645)
State = npt.NDArray[np.uint64]
"""State and increment of PCG64, each high then low; whether half a draw is left over, and that half."""


def taken(generator: np.random.Generator) -> State | None:
    """The state of a generator; None for one that is not PCG64."""
    known = generator.bit_generator.state
    if known["bit_generator"] != "PCG64":
        return None
    of = known["state"]
    halves = [part for number in (of["state"], of["inc"]) for part in divmod(number, 1 << 64)]
    return np.array([*halves, known["has_uint32"], known["uinteger"]], dtype=np.uint64)


def put_back(generator: np.random.Generator, state: State) -> None:
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


@njit(cache=True, nogil=True)
def resampled_means(sums, sizes, state, found):
    """Fill ``found`` with sum over size of as many clusters as there are, drawn with replacement."""
    high, low, more_high, more_low, has_half, half = state
    count = U64(sums.size)
    # Lemire's way: the upper half of a product is uniform once the few smallest lower halves are redrawn.
    redrawn = (_LOW - (count - U64(1))) % count
    for row in range(found.size):
        total, size = 0.0, 0.0
        for _ in range(sums.size):
            while True:
                if has_half:
                    number, has_half = half, U64(0)
                else:
                    high, low = _step(high, low, more_high, more_low)
                    both = _output(high, low)
                    number, half, has_half = both & _LOW, both >> _HALF, U64(1)
                product = number * count
                if product & _LOW >= redrawn:
                    break
            place = product >> _HALF
            total += sums[place]
            size += sizes[place]
        found[row] = total / size
    state[0], state[1], state[4], state[5] = high, low, has_half, half


@njit(cache=True, nogil=True)
def shuffled(labels, state, block):
    """Fill each row of ``block`` with the labels in random order."""
    high, low, more_high, more_low, has_half, half = state
    for row in range(block.shape[0]):
        line = block[row]
        line[:] = labels
        mask = U64(1)
        while mask < U64(labels.size - 1):
            mask = mask << U64(1) | U64(1)
        for last in range(labels.size - 1, 0, -1):
            while mask >> U64(1) >= U64(last):
                mask >>= U64(1)
            while True:
                if has_half:
                    number, has_half = half, U64(0)
                else:
                    high, low = _step(high, low, more_high, more_low)
                    both = _output(high, low)
                    number, half, has_half = both & _LOW, both >> _HALF, U64(1)
                place = number & mask
                if place <= U64(last):
                    break
            line[last], line[place] = line[place], line[last]
    state[0], state[1], state[4], state[5] = high, low, has_half, half
