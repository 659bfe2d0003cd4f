"""The climb of `kernel.calibrate` on a processor: all steps of a row while its vectors are in the cache.

In torch every step of a batch reads the vectors of all rows from memory, twice; here rows stay with one core
until they are done, and a step reads their vectors once. Float32 with sums in any order: near the plain
climb, not equal to its last bit.

Every public function deals with the rows from ``begin`` to ``end`` and holds no lock: `lanes.each_core`.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numba import njit

from evenhand.mitigations.calibration import BETA1, BETA2, EPSILON
from evenhand.mitigations.simd_math import (
    FAST_MATH_FLAGS,
    Floats,
    Ints,
    add,
    add_four,
    dot,
    exp,
    four_by_two,
    four_dots,
    tanh,
)

_BETA1: Final = np.float32(BETA1)
_BETA2: Final = np.float32(BETA2)
_EPSILON: Final = np.float32(EPSILON)
_ONE: Final = np.float32(1)
# As in NumPy a division by nothing is infinite: where Python's error is looked for, there is no vector code.
_DIVIDES: Final = "numpy"
_GROUP: Final = 8
"""Rows that go up side by side under a head, so that its matrix is read once for all of them."""
_LINES: Final = 32
"""Lines of it that are read together: small enough to stay in a core's own cache meanwhile."""


class OptimizerInputs(NamedTuple):
    """What is climbed: the tokens of `policy.Support` as places of the table, and the rest."""

    hidden: Floats
    table: Floats
    tokens: Ints
    last: Floats
    """The direction of the rest, which comes after the tokens' vectors."""
    offsets: Floats
    mass: Floats


class OptimizerConfig(NamedTuple):
    """How it is climbed."""

    strength: Floats
    steps: int
    rate: float


class OptimizerOutputs(NamedTuple):
    """Where it ends, as `policy.Calibrated` has it; ``logits`` has the rest as its last column."""

    now: Floats
    logits: Floats
    divergence: Floats
    gain: Floats


class WordGainArrays(NamedTuple):
    """`gains.EmbeddingGain` as arrays."""

    sides: Floats
    """2 x width."""
    offsets: Floats
    units: Floats
    targets: Floats
    """What has accumulated less what is usual, G - m, one a row."""
    balance: float


class HeadGainArrays(NamedTuple):
    """`gains.ClassifierGain` as arrays."""

    inner: Floats
    inner_transposed: Floats
    """``inner`` with rows and columns exchanged."""
    outer: Floats
    outer_bias: float
    inside: Floats
    share: Floats
    weights: Floats
    is_natural: bool
    """Whether E'pi stands for the token to come, or the hidden state does."""


class OptimizerState(NamedTuple):
    """One row on its way."""

    vectors: Floats
    offsets: Floats
    hidden: Floats
    start: Floats
    vanilla: Floats
    mean: Floats
    first: Floats
    second: Floats
    now: Floats
    logits: Floats


@njit(fastmath=FAST_MATH_FLAGS, error_model=_DIVIDES, cache=True, nogil=True)
def write_expected_vectors(begin: int, end: int, ground: OptimizerInputs, out: Floats) -> None:
    """Write the vector each row's policy lets expect."""
    for row in range(begin, end):
        tokens, total, mean = ground.tokens[row], np.float32(0), out[row]
        mean[:] = 0
        for place in range(tokens.size):
            vector = ground.table[tokens[place]]
            share = exp(ground.offsets[row, place] + dot(vector, ground.hidden[row]) - ground.mass[row])
            total += share
            add(mean, share, vector)
        last = dot(ground.last[row], ground.hidden[row]) + ground.offsets[row, tokens.size]
        share = exp(last - ground.mass[row])
        add(mean, share, ground.last[row])
        mean /= total + share


@njit(fastmath=FAST_MATH_FLAGS, error_model=_DIVIDES, cache=True, nogil=True)
def optimize_by_words(
    begin: int,
    end: int,
    ground: OptimizerInputs,
    pace: OptimizerConfig,
    words: WordGainArrays,
    reached: OptimizerOutputs,
) -> None:
    """Write where rows end with `gains.EmbeddingGain`."""
    upward = np.empty(ground.hidden.shape[1], np.float32)
    vectors = np.empty((1, ground.offsets.shape[1], upward.size), np.float32)
    for row in range(begin, end):
        climber, start_mass = _start_state(ground, row, vectors[0], reached)
        rate, mass = _rate(pace.rate, climber.hidden), start_mass
        for number in range(1, pace.steps + 1):
            value = _word_gain(words, row, climber, mass, pace.strength[row], upward)
            if number == 1:
                reached.gain[row] = value
            _adam_step(number, rate, upward, climber)
            mass = _evaluate_policy(climber, mass)
        reached.divergence[row] = _divergence(climber, start_mass, mass)


@njit(fastmath=FAST_MATH_FLAGS, error_model=_DIVIDES, cache=True, nogil=True)
def optimize_by_head(
    begin: int,
    end: int,
    ground: OptimizerInputs,
    pace: OptimizerConfig,
    head: HeadGainArrays,
    reached: OptimizerOutputs,
) -> None:
    """Write where rows end with `gains.ClassifierGain`."""
    width, units = ground.hidden.shape[1], head.outer.size
    vectors = np.empty((_GROUP, ground.offsets.shape[1], width), np.float32)
    moved, upward = np.empty((_GROUP, width), np.float32), np.empty((_GROUP, width), np.float32)
    shift, back = np.empty((_GROUP, units), np.float32), np.empty((_GROUP, units), np.float32)
    for group in range(begin, end, _GROUP):
        size = min(_GROUP, end - group)
        climbers = [_start_state(ground, group + place, vectors[place], reached) for place in range(size)]
        mass = np.array([climber[1] for climber in climbers])
        shift[:] = 0
        for number in range(1, pace.steps + 1):
            for place in range(size):
                value = _head_gain(head, group + place, shift[place], back[place])
                if number == 1:
                    reached.gain[group + place] = value
            _multiply(head.inner_transposed, back[:size], upward)
            for place in range(size):
                row, climber = group + place, climbers[place][0]
                _blend(climber, pace.strength[row] * head.share[row], upward[place])
                _adam_step(number, _rate(pace.rate, climber.hidden), upward[place], climber)
                mass[place] = _evaluate_policy(climber, mass[place])
                _token_shift(head, row, climber, moved[place])
            if number < pace.steps:
                _multiply(head.inner, moved[:size], shift)
        for place in range(size):
            climber, start_mass = climbers[place]
            reached.divergence[group + place] = _divergence(climber, start_mass, mass[place])


@njit(fastmath=FAST_MATH_FLAGS, error_model=_DIVIDES, cache=True, nogil=True)
def _blend(climber: OptimizerState, pull: np.float32, upward: Floats) -> None:
    """Make the gradient of D that of the whole objective."""
    vanilla, mean = climber.vanilla, climber.mean
    for place in range(upward.size):
        upward[place] = vanilla[place] - mean[place] + pull * upward[place]


@njit(fastmath=FAST_MATH_FLAGS, error_model=_DIVIDES, cache=True, nogil=True)
def _start_state(
    ground: OptimizerInputs, row: int, vectors: Floats, reached: OptimizerOutputs
) -> tuple[OptimizerState, np.float32]:
    """A row before its first step, and the log of its mass."""
    tokens, width = ground.tokens[row], ground.hidden.shape[1]
    for place in range(tokens.size):
        vectors[place] = ground.table[tokens[place]]
    vectors[tokens.size] = ground.last[row]
    climber = OptimizerState(
        vectors,
        ground.offsets[row],
        ground.hidden[row],
        np.empty(tokens.size + 1, np.float32),
        np.empty(width, np.float32),
        np.empty(width, np.float32),
        np.zeros(width, np.float32),
        np.zeros(width, np.float32),
        reached.now[row],
        reached.logits[row],
    )
    climber.now[:] = climber.hidden
    mass = _evaluate_policy(climber, ground.mass[row])
    climber.start[:] = climber.logits
    climber.vanilla[:] = climber.mean
    return climber, mass


@njit(fastmath=FAST_MATH_FLAGS, error_model=_DIVIDES, cache=True, nogil=True)
def _evaluate_policy(climber: OptimizerState, near: np.float32) -> np.float32:
    """Write the logits of the state and the vector they let expect; the log of their mass.

    ``near`` is about that log: exponentials are taken relative to it.
    """
    vectors, logits, mean, offsets = climber.vectors, climber.logits, climber.mean, climber.offsets
    mean[:] = 0
    total = np.float32(0)
    place = 0
    while place + 4 <= logits.size:
        a, b, c, d = vectors[place], vectors[place + 1], vectors[place + 2], vectors[place + 3]
        p, q, r, s = four_dots(a, b, c, d, climber.now)
        p, q = p + offsets[place], q + offsets[place + 1]
        r, s = r + offsets[place + 2], s + offsets[place + 3]
        logits[place], logits[place + 1], logits[place + 2], logits[place + 3] = p, q, r, s
        shares = exp(p - near), exp(q - near), exp(r - near), exp(s - near)
        total += shares[0] + shares[1] + shares[2] + shares[3]
        # While the four are in the innermost cache.
        add_four(mean, shares, a, b, c, d)
        place += 4
    for other in range(place, logits.size):
        logits[other] = offsets[other] + dot(vectors[other], climber.now)
        share = exp(logits[other] - near)
        total += share
        add(mean, share, vectors[other])
    mean *= _ONE / total
    return near + np.float32(math.log(total))


@njit(fastmath=FAST_MATH_FLAGS, error_model=_DIVIDES, cache=True, nogil=True)
def _adam_step(number: int, rate: np.float32, upward: Floats, climber: OptimizerState) -> None:
    """One step of Adam up a gradient."""
    size = np.float32(rate / (1 - BETA1**number))
    spread = np.float32((1 - BETA2**number) ** -0.5)
    first, second, now = climber.first, climber.second, climber.now
    for place in range(now.size):
        slope = upward[place]
        first[place] += (_ONE - _BETA1) * (slope - first[place])
        second[place] = _BETA2 * second[place] + (_ONE - _BETA2) * slope * slope
        now[place] += size * first[place] / (np.float32(math.sqrt(second[place])) * spread + _EPSILON)


@njit(fastmath=FAST_MATH_FLAGS, error_model=_DIVIDES, cache=True, nogil=True)
def _divergence(climber: OptimizerState, start_mass: np.float32, mass: np.float32) -> np.float32:
    total = np.float32(0)
    for place in range(climber.start.size):
        said = climber.start[place] - start_mass
        total += exp(said) * (said - climber.logits[place] + mass)
    return total


@njit(fastmath=FAST_MATH_FLAGS, error_model=_DIVIDES, cache=True, nogil=True)
def _rate(rate: float, hidden: Floats) -> np.float32:
    return np.float32(rate * math.sqrt(dot(hidden, hidden) / hidden.size))


@njit(fastmath=FAST_MATH_FLAGS, error_model=_DIVIDES, cache=True, nogil=True)
def _word_gain(
    words: WordGainArrays,
    row: int,
    climber: OptimizerState,
    mass: np.float32,
    strength: np.float32,
    upward: Floats,
) -> np.float32:
    """D of a row; writes the gradient of the whole objective."""
    one_side, two_side, mean, vanilla = words.sides[0], words.sides[1], climber.mean, climber.vanilla
    unit_one, unit_two = words.units[0, row], words.units[1, row]
    one = mass - dot(climber.now, one_side) - words.offsets[0]
    two = mass - dot(climber.now, two_side) - words.offsets[1]
    gap = words.targets[row] + one - two
    lean = np.float32(words.balance * np.sign(gap))
    to_one = np.float32(2) * one / unit_one**2 - lean
    to_two = np.float32(2) * two / unit_two**2 + lean
    for place in range(upward.size):
        slope = (to_one + to_two) * mean[place] - to_one * one_side[place] - to_two * two_side[place]
        upward[place] = vanilla[place] - mean[place] + strength * slope
    value: np.float32 = (one / unit_one) ** 2 + (two / unit_two) ** 2 - lean * gap
    return value


@njit(fastmath=FAST_MATH_FLAGS, error_model=_DIVIDES, cache=True, nogil=True)
def _token_shift(head: HeadGainArrays, row: int, climber: OptimizerState, moved: Floats) -> None:
    """Write how far what stands for the token to come has moved, as a part of what has accumulated."""
    now, before = climber.now, climber.hidden
    if head.is_natural:
        now, before = climber.mean, climber.vanilla
    for place in range(moved.size):
        moved[place] = head.share[row] * (now[place] - before[place])


@njit(fastmath=FAST_MATH_FLAGS, error_model=_DIVIDES, cache=True, nogil=True)
def _multiply(matrix: Floats, rows: Floats, out: Floats) -> None:
    """Write the matrix times each of the rows; a block of its lines is read once for all of them."""
    units, whole = len(matrix) - len(matrix) % 2, len(rows) - len(rows) % 4
    for block in range(0, units, _LINES):
        end = min(block + _LINES, units)
        for row in range(0, whole, 4):
            a, b, c, d = rows[row], rows[row + 1], rows[row + 2], rows[row + 3]
            for unit in range(block, end, 2):
                one, two = four_by_two(a, b, c, d, matrix[unit], matrix[unit + 1])
                for place in range(4):
                    out[row + place, unit], out[row + place, unit + 1] = one[place], two[place]
        for row in range(whole, len(rows)):
            for unit in range(block, end):
                out[row, unit] = dot(rows[row], matrix[unit])
    for unit in range(units, len(matrix)):
        for row in range(len(rows)):
            out[row, unit] = dot(rows[row], matrix[unit])


@njit(fastmath=FAST_MATH_FLAGS, error_model=_DIVIDES, cache=True, nogil=True)
def _head_gain(head: HeadGainArrays, row: int, shift: Floats, back: Floats) -> np.float32:
    """D of a row; writes its gradient in the inner layer's input."""
    outer, inside, weights = head.outer, head.inside[row], head.weights[row]
    back[:] = 0
    active, value = np.empty(outer.size, np.float32), np.float32(0)
    for age in range(weights.size):
        if weights[age] == 0:
            continue
        before, odds = inside[age], np.float32(0)
        for unit in range(outer.size):
            active[unit] = tanh(before[unit] + shift[unit])
            odds += active[unit] * outer[unit]
        odds += np.float32(head.outer_bias)
        size = abs(odds)
        value += weights[age] * np.float32(math.log1p(math.exp(-size)))
        pull = -weights[age] * np.float32(np.sign(odds) / (1 + math.exp(size)))
        for unit in range(outer.size):
            back[unit] += pull * (_ONE - active[unit] * active[unit]) * outer[unit]
    return value
