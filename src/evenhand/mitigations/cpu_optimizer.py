"""`token_calibration.calibrate` on a CPU: runs all steps of a row while its vectors are in the cache.

In torch, every step of a batch reads the vectors of all rows from memory twice; here each row stays on one
core until it is done, and a step reads its vectors once. Sums in float32 run in any order, so the result is
close to torch's but not bitwise equal.

Every public function works on the rows from ``begin`` to ``end`` without the GIL: see `run_on_cores`.
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
# As in NumPy, division by zero is infinite: Python's zero check would prevent vectorisation.
_compiled: Final = njit(fastmath=FAST_MATH_FLAGS, error_model="numpy", cache=True, nogil=True)
_GROUP: Final = 8
"""Rows optimised together with a head, so that its matrix is read once for all of them."""
_LINES: Final = 32
"""Rows of the matrix per block: small enough for a core's own cache."""


class OptimizerInputs(NamedTuple):
    """The inputs: the tokens of `policy.Support` as rows of the output matrix, and the rest."""

    hidden: Floats
    table: Floats
    tokens: Ints
    last: Floats
    """The direction of the rest, placed after the tokens' vectors."""
    offsets: Floats
    mass: Floats


class OptimizerConfig(NamedTuple):
    """The settings of the optimiser."""

    strength: Floats
    steps: int
    rate: float


class OptimizerOutputs(NamedTuple):
    """The result as in `policy.CalibrationResult`; the last column of ``logits`` is the rest."""

    now: Floats
    logits: Floats
    divergence: Floats
    gain: Floats


class WordGainArrays(NamedTuple):
    """`debias_gains.EmbeddingGain` as arrays."""

    sides: Floats
    """2 x width."""
    offsets: Floats
    units: Floats
    targets: Floats
    """The accumulated gap minus the typical gap, G - m, one per row."""
    balance: float


class HeadGainArrays(NamedTuple):
    """`debias_gains.ClassifierGain` as arrays."""

    inner: Floats
    inner_transposed: Floats
    """``inner`` transposed."""
    outer: Floats
    outer_bias: float
    inside: Floats
    share: Floats
    weights: Floats
    is_natural: bool
    """Whether E'pi represents the next token; otherwise the hidden state does."""


class OptimizerState(NamedTuple):
    """One row between two steps."""

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


@_compiled
def write_expected_vectors(begin: int, end: int, inputs: OptimizerInputs, out: Floats) -> None:
    """Write the expected vector of each row's policy."""
    for row in range(begin, end):
        tokens, total, mean = inputs.tokens[row], np.float32(0), out[row]
        mean[:] = 0
        for place in range(tokens.size):
            vector = inputs.table[tokens[place]]
            share = exp(inputs.offsets[row, place] + dot(vector, inputs.hidden[row]) - inputs.mass[row])
            total += share
            add(mean, share, vector)
        last = dot(inputs.last[row], inputs.hidden[row]) + inputs.offsets[row, tokens.size]
        share = exp(last - inputs.mass[row])
        add(mean, share, inputs.last[row])
        mean /= total + share


@_compiled
def optimize_by_words(
    begin: int,
    end: int,
    inputs: OptimizerInputs,
    config: OptimizerConfig,
    words: WordGainArrays,
    outputs: OptimizerOutputs,
) -> None:
    """Optimise rows with `debias_gains.EmbeddingGain` and write the results."""
    upward = np.empty(inputs.hidden.shape[1], np.float32)
    vectors = np.empty((1, inputs.offsets.shape[1], upward.size), np.float32)
    for row in range(begin, end):
        state, start_mass = _start_state(inputs, row, vectors[0], outputs)
        rate, mass = _rate(config.rate, state.hidden), start_mass
        for number in range(1, config.steps + 1):
            value = _word_gain(words, row, state, mass, config.strength[row], upward)
            if number == 1:
                outputs.gain[row] = value
            _adam_step(number, rate, upward, state)
            mass = _evaluate_policy(state, mass)
        outputs.divergence[row] = _divergence(state, start_mass, mass)


@_compiled
def optimize_by_head(
    begin: int,
    end: int,
    inputs: OptimizerInputs,
    config: OptimizerConfig,
    head: HeadGainArrays,
    outputs: OptimizerOutputs,
) -> None:
    """Optimise rows with `debias_gains.ClassifierGain` and write the results."""
    width, units = inputs.hidden.shape[1], head.outer.size
    vectors = np.empty((_GROUP, inputs.offsets.shape[1], width), np.float32)
    moved, upward = np.empty((_GROUP, width), np.float32), np.empty((_GROUP, width), np.float32)
    shift, back = np.empty((_GROUP, units), np.float32), np.empty((_GROUP, units), np.float32)
    for group in range(begin, end, _GROUP):
        size = min(_GROUP, end - group)
        states = [_start_state(inputs, group + place, vectors[place], outputs) for place in range(size)]
        mass = np.array([state[1] for state in states])
        shift[:] = 0
        for number in range(1, config.steps + 1):
            for place in range(size):
                value = _head_gain(head, group + place, shift[place], back[place])
                if number == 1:
                    outputs.gain[group + place] = value
            _multiply(head.inner_transposed, back[:size], upward)
            for place in range(size):
                row, state = group + place, states[place][0]
                _blend(state, config.strength[row] * head.share[row], upward[place])
                _adam_step(number, _rate(config.rate, state.hidden), upward[place], state)
                mass[place] = _evaluate_policy(state, mass[place])
                _token_shift(head, row, state, moved[place])
            if number < config.steps:
                _multiply(head.inner, moved[:size], shift)
        for place in range(size):
            state, start_mass = states[place]
            outputs.divergence[group + place] = _divergence(state, start_mass, mass[place])


@_compiled
def _blend(state: OptimizerState, pull: np.float32, upward: Floats) -> None:
    """Turn the gradient of D into that of the whole objective."""
    vanilla, mean = state.vanilla, state.mean
    for place in range(upward.size):
        upward[place] = vanilla[place] - mean[place] + pull * upward[place]


@_compiled
def _start_state(
    inputs: OptimizerInputs, row: int, vectors: Floats, outputs: OptimizerOutputs
) -> tuple[OptimizerState, np.float32]:
    """The initial state of a row, and the log of its mass."""
    tokens, width = inputs.tokens[row], inputs.hidden.shape[1]
    for place in range(tokens.size):
        vectors[place] = inputs.table[tokens[place]]
    vectors[tokens.size] = inputs.last[row]
    state = OptimizerState(
        vectors,
        inputs.offsets[row],
        inputs.hidden[row],
        np.empty(tokens.size + 1, np.float32),
        np.empty(width, np.float32),
        np.empty(width, np.float32),
        np.zeros(width, np.float32),
        np.zeros(width, np.float32),
        outputs.now[row],
        outputs.logits[row],
    )
    state.now[:] = state.hidden
    mass = _evaluate_policy(state, inputs.mass[row])
    state.start[:] = state.logits
    state.vanilla[:] = state.mean
    return state, mass


@_compiled
def _evaluate_policy(state: OptimizerState, near: np.float32) -> np.float32:
    """Write the logits of the state and their expected vector; return the log of their mass.

    ``near`` approximates that log: exponentials are taken relative to it.
    """
    vectors, logits, mean, offsets = state.vectors, state.logits, state.mean, state.offsets
    mean[:] = 0
    total = np.float32(0)
    place = 0
    while place + 4 <= logits.size:
        a, b, c, d = vectors[place], vectors[place + 1], vectors[place + 2], vectors[place + 3]
        p, q, r, s = four_dots(a, b, c, d, state.now)
        p, q = p + offsets[place], q + offsets[place + 1]
        r, s = r + offsets[place + 2], s + offsets[place + 3]
        logits[place], logits[place + 1], logits[place + 2], logits[place + 3] = p, q, r, s
        shares = exp(p - near), exp(q - near), exp(r - near), exp(s - near)
        total += shares[0] + shares[1] + shares[2] + shares[3]
        # While the four vectors are in the L1 cache.
        add_four(mean, shares, a, b, c, d)
        place += 4
    for other in range(place, logits.size):
        logits[other] = offsets[other] + dot(vectors[other], state.now)
        share = exp(logits[other] - near)
        total += share
        add(mean, share, vectors[other])
    mean *= _ONE / total
    return near + np.float32(math.log(total))


@_compiled
def _adam_step(number: int, rate: np.float32, upward: Floats, state: OptimizerState) -> None:
    """One ascent step of Adam."""
    size = np.float32(rate / (1 - BETA1**number))
    spread = np.float32((1 - BETA2**number) ** -0.5)
    first, second, now = state.first, state.second, state.now
    for place in range(now.size):
        slope = upward[place]
        first[place] += (_ONE - _BETA1) * (slope - first[place])
        second[place] = _BETA2 * second[place] + (_ONE - _BETA2) * slope * slope
        now[place] += size * first[place] / (np.float32(math.sqrt(second[place])) * spread + _EPSILON)


@_compiled
def _divergence(state: OptimizerState, start_mass: np.float32, mass: np.float32) -> np.float32:
    total = np.float32(0)
    for place in range(state.start.size):
        log_share = state.start[place] - start_mass
        total += exp(log_share) * (log_share - state.logits[place] + mass)
    return total


@_compiled
def _rate(rate: float, hidden: Floats) -> np.float32:
    return np.float32(rate * math.sqrt(dot(hidden, hidden) / hidden.size))


@_compiled
def _word_gain(
    words: WordGainArrays,
    row: int,
    state: OptimizerState,
    mass: np.float32,
    strength: np.float32,
    upward: Floats,
) -> np.float32:
    """D of a row; writes the gradient of the whole objective."""
    one_side, two_side, mean, vanilla = words.sides[0], words.sides[1], state.mean, state.vanilla
    unit_one, unit_two = words.units[0, row], words.units[1, row]
    one = mass - dot(state.now, one_side) - words.offsets[0]
    two = mass - dot(state.now, two_side) - words.offsets[1]
    gap = words.targets[row] + one - two
    lean = np.float32(words.balance * np.sign(gap))
    to_one = np.float32(2) * one / unit_one**2 - lean
    to_two = np.float32(2) * two / unit_two**2 + lean
    for place in range(upward.size):
        slope = (to_one + to_two) * mean[place] - to_one * one_side[place] - to_two * two_side[place]
        upward[place] = vanilla[place] - mean[place] + strength * slope
    value: np.float32 = (one / unit_one) ** 2 + (two / unit_two) ** 2 - lean * gap
    return value


@_compiled
def _token_shift(head: HeadGainArrays, row: int, state: OptimizerState, moved: Floats) -> None:
    """Write the shift of the next token's representation, as a part of the accumulated state."""
    now, before = state.now, state.hidden
    if head.is_natural:
        now, before = state.mean, state.vanilla
    for place in range(moved.size):
        moved[place] = head.share[row] * (now[place] - before[place])


@_compiled
def _multiply(matrix: Floats, rows: Floats, out: Floats) -> None:
    """Write the matrix times each of the rows; each block of the matrix is read once for all of them."""
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


@_compiled
def _head_gain(head: HeadGainArrays, row: int, shift: Floats, back: Floats) -> np.float32:
    """D of a row; writes its gradient with respect to the inner layer's input."""
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
