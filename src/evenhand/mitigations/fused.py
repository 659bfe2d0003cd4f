"""The climb of `kernel.calibrate` on a processor: all steps of a row while its vectors are in the cache.

In torch every step of a batch reads the vectors of all rows from memory, twice; here a row stays with one
core until it is done. Float32 with sums in any order: near the plain climb, not equal to its last bit.

Every public function deals with the rows from ``begin`` to ``end`` and holds no lock: `each_core` runs it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

BETA1: Final = np.float32(0.9)
BETA2: Final = np.float32(0.999)
EPSILON: Final = np.float32(1e-8)
_ONE: Final = np.float32(1)
# Not the whole of fast-math: an overflow must stay visible, since such a row is left as the model had it.
_LOOSE: Final = {"reassoc", "contract", "arcp", "nsz"}


class Climb(NamedTuple):
    """What is climbed, and how."""

    hidden: Floats
    vectors: Floats
    offsets: Floats
    strength: Floats
    steps: int
    rate: float


class Reached(NamedTuple):
    """Where it ends, as `kernel.Calibrated` has it; ``logits`` has the rest as its last column."""

    now: Floats
    logits: Floats
    divergence: Floats
    gained: Floats


class Words(NamedTuple):
    """`gains.EmbeddingGain` as arrays."""

    sides: Floats
    """2 x width."""
    offsets: Floats
    units: Floats
    wanted: Floats
    """What has accumulated less what is usual, G - m, one a row."""
    balance: float


class Head(NamedTuple):
    """`gains.ClassifierGain` as arrays."""

    inner: Floats
    outer: Floats
    outer_bias: float
    inside: Floats
    share: Floats
    weights: Floats
    expected: Floats
    is_natural: bool
    """Whether ``expected`` stands for the token to come, or the hidden state does."""


def each_core(work: Callable[..., None], rows: int, *arguments: object, cores: int) -> None:
    """Run a function of this module over all rows, a part of them on each core."""
    parts = min(cores, rows)
    if parts < 2:
        work(0, rows, *arguments)
        return
    ends = [rows * part // parts for part in range(parts + 1)]
    # Not numba's own threads: they must not be forked, and corpora are counted in forked processes.
    with ThreadPoolExecutor(parts) as pool:
        begun = [pool.submit(work, begin, end, *arguments) for begin, end in pairwise(ends)]
        for part in begun:
            part.result()


@njit(fastmath=_LOOSE, cache=True, nogil=True)
def _dot(one: Floats, two: Floats) -> np.float32:
    total = np.float32(0)
    for place in range(one.size):
        total += one[place] * two[place]
    return total


@njit(fastmath=_LOOSE, cache=True, nogil=True)
def _read(vectors: Floats, offsets: Floats, state: Floats, logits: Floats) -> np.float32:
    """Write the logits of a state; the log of their mass."""
    most = np.float32(-np.inf)
    for token in range(offsets.size):
        logits[token] = offsets[token] + _dot(vectors[token], state)
        most = max(most, logits[token])
    total = np.float32(0)
    for token in range(offsets.size):
        total += math.exp(logits[token] - most)
    return most + np.float32(math.log(total))


@njit(fastmath=_LOOSE, cache=True, nogil=True)
def _expect(vectors: Floats, logits: Floats, mass: np.float32, mean: Floats) -> None:
    """Write the vector the policy lets expect."""
    mean[:] = 0
    for token in range(logits.size):
        share, vector = np.float32(math.exp(logits[token] - mass)), vectors[token]
        for place in range(mean.size):
            mean[place] += share * vector[place]


@njit(fastmath=_LOOSE, cache=True, nogil=True)
def _step(
    number: int,
    rate: np.float32,
    upward: Floats,
    first: Floats,
    second: Floats,
    now: Floats,
) -> None:
    """One step of Adam up a gradient."""
    size = np.float32(rate / (1 - 0.9**number))
    spread = np.float32((1 - 0.999**number) ** -0.5)
    for place in range(now.size):
        slope = upward[place]
        first[place] += (_ONE - BETA1) * (slope - first[place])
        second[place] = BETA2 * second[place] + (_ONE - BETA2) * slope * slope
        now[place] += size * first[place] / (np.float32(math.sqrt(second[place])) * spread + EPSILON)


@njit(fastmath=_LOOSE, cache=True, nogil=True)
def _divergence(start: Floats, start_mass: np.float32, logits: Floats, mass: np.float32) -> np.float32:
    total = np.float32(0)
    for token in range(start.size):
        said = start[token] - start_mass
        total += np.float32(math.exp(said)) * (said - logits[token] + mass)
    return total


@njit(fastmath=_LOOSE, cache=True, nogil=True)
def _rate(rate: float, hidden: Floats) -> np.float32:
    return np.float32(rate * math.sqrt(_dot(hidden, hidden) / hidden.size))


@njit(fastmath=_LOOSE, cache=True, nogil=True)
def climb_by_words(begin: int, end: int, climb: Climb, words: Words, reached: Reached) -> None:
    """Write where rows end with `gains.EmbeddingGain`."""
    _, tokens, width = climb.vectors.shape
    one_side, two_side = words.sides[0], words.sides[1]
    mean, vanilla = np.empty(width, np.float32), np.empty(width, np.float32)
    upward = np.empty(width, np.float32)
    start = np.empty(tokens, np.float32)
    for row in range(begin, end):
        vectors, offsets, strength = climb.vectors[row], climb.offsets[row], climb.strength[row]
        unit_one, unit_two = words.units[0, row], words.units[1, row]
        first, second = np.zeros(width, np.float32), np.zeros(width, np.float32)
        now, logits, rate = reached.now[row], reached.logits[row], _rate(climb.rate, climb.hidden[row])
        now[:] = climb.hidden[row]
        start_mass = mass = _read(vectors, offsets, now, logits)
        start[:] = logits
        _expect(vectors, logits, mass, vanilla)
        for number in range(1, climb.steps + 1):
            _expect(vectors, logits, mass, mean)
            one = mass - _dot(now, one_side) - words.offsets[0]
            two = mass - _dot(now, two_side) - words.offsets[1]
            gap = words.wanted[row] + one - two
            lean = np.float32(words.balance * np.sign(gap))
            if number == 1:
                reached.gained[row] = (one / unit_one) ** 2 + (two / unit_two) ** 2 - lean * gap
            to_one = np.float32(2) * one / unit_one**2 - lean
            to_two = np.float32(2) * two / unit_two**2 + lean
            for place in range(width):
                slope = (to_one + to_two) * mean[place] - to_one * one_side[place] - to_two * two_side[place]
                upward[place] = vanilla[place] - mean[place] + strength * slope
            _step(number, rate, upward, first, second, now)
            mass = _read(vectors, offsets, now, logits)
        reached.divergence[row] = _divergence(start, start_mass, logits, mass)


@njit(fastmath=_LOOSE, cache=True, nogil=True)
def climb_by_head(begin: int, end: int, climb: Climb, head: Head, reached: Reached) -> None:
    """Write where rows end with `gains.ClassifierGain`."""
    _, tokens, width = climb.vectors.shape
    mean, vanilla = np.empty(width, np.float32), np.empty(width, np.float32)
    upward = np.empty(width, np.float32)
    start, back = np.empty(tokens, np.float32), np.empty(head.outer.size, np.float32)
    for row in range(begin, end):
        vectors, offsets, hidden = climb.vectors[row], climb.offsets[row], climb.hidden[row]
        first, second = np.zeros(width, np.float32), np.zeros(width, np.float32)
        now, logits, rate = reached.now[row], reached.logits[row], _rate(climb.rate, hidden)
        now[:] = hidden
        start_mass = mass = _read(vectors, offsets, now, logits)
        start[:] = logits
        _expect(vectors, logits, mass, vanilla)
        for number in range(1, climb.steps + 1):
            _expect(vectors, logits, mass, mean)
            for place in range(width):
                natural = mean[place] - head.expected[row, place]
                upward[place] = head.share[row] * (natural if head.is_natural else now[place] - hidden[place])
            value = _pull(head, row, upward, back)
            if number == 1:
                reached.gained[row] = value
            for place in range(width):
                upward[place] = vanilla[place] - mean[place]
            for unit in range(back.size):
                pull, weights = climb.strength[row] * head.share[row] * back[unit], head.inner[unit]
                for place in range(width):
                    upward[place] += pull * weights[place]
            _step(number, rate, upward, first, second, now)
            mass = _read(vectors, offsets, now, logits)
        reached.divergence[row] = _divergence(start, start_mass, logits, mass)


@njit(fastmath=_LOOSE, cache=True, nogil=True)
def _pull(head: Head, row: int, moved: Floats, back: Floats) -> np.float32:
    """D of a row; writes its gradient in the inner layer's input."""
    outer, inside, weights = head.outer, head.inside[row], head.weights[row]
    shift, active = np.empty(outer.size, np.float32), np.empty(outer.size, np.float32)
    for unit in range(outer.size):
        shift[unit] = _dot(head.inner[unit], moved)
    back[:] = 0
    value = np.float32(0)
    for age in range(weights.size):
        odds = np.float32(head.outer_bias)
        for unit in range(outer.size):
            active[unit] = math.tanh(inside[age, unit] + shift[unit])
            odds += active[unit] * outer[unit]
        size = abs(odds)
        value += weights[age] * np.float32(math.log1p(math.exp(-size)))
        pull = -weights[age] * np.float32(np.sign(odds) / (1 + math.exp(size)))
        for unit in range(outer.size):
            back[unit] += pull * (_ONE - active[unit] * active[unit]) * outer[unit]
    return value


@njit(fastmath=_LOOSE, cache=True, nogil=True)
def expect(begin: int, end: int, hidden: Floats, vectors: Floats, offsets: Floats, out: Floats) -> None:
    """Write the vector each row's policy lets expect."""
    logits = np.empty(offsets.shape[1], np.float32)
    for row in range(begin, end):
        mass = _read(vectors[row], offsets[row], hidden[row], logits)
        _expect(vectors[row], logits, mass, out[row])


@njit(fastmath=_LOOSE, cache=True, nogil=True)
def weigh(begin: int, end: int, table: Floats, tokens: Ints, weights: Floats, out: Floats) -> None:
    """Write for each row the weighted sum of the table's rows that its tokens name."""
    for row in range(begin, end):
        total = out[row]
        total[:] = 0
        for place in range(tokens.shape[1]):
            weight, vector = weights[row, place], table[tokens[row, place]]
            for column in range(total.size):
                total[column] += weight * vector[column]


@njit(cache=True, nogil=True)
def gather(begin: int, end: int, table: Floats, tokens: Ints, last: Floats, out: Floats) -> None:
    """Write the table's rows that tokens name, and one more row after them."""
    for row in range(begin, end):
        for place in range(tokens.shape[1]):
            out[row, place] = table[tokens[row, place]]
        out[row, tokens.shape[1]] = last[row]
