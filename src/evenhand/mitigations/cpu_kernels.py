"""Compiled loops of calibration on a CPU: the most likely tokens of a row, and all steps of its optimisation.

In torch, every step of a batch reads the vectors of all rows from memory twice; here each row stays on one
core until it is done, and a step reads its vectors once. Sums in float32 run in any order, so the result is
close to torch's but not bitwise equal.

A function with ``begin`` and ``end`` processes the rows in between, without the GIL: see `cpu_backend`.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from evenhand.mitigations.calibration import BETA1, BETA2, EPSILON, FOLLOW, NOTHING

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

# Not all of fast-math: overflows must stay visible, since such rows keep the model's own logits.
_FLAGS: Final = {"reassoc", "contract", "arcp", "nsz"}
_compiled: Final = njit(fastmath=_FLAGS, cache=True, nogil=True)
# As in NumPy, division by zero is infinite: Python's zero check would prevent vectorisation.
_compiled_as_numpy: Final = njit(fastmath=_FLAGS, error_model="numpy", cache=True, nogil=True)
_BETA1: Final = np.float32(BETA1)
_BETA2: Final = np.float32(BETA2)
_EPSILON: Final = np.float32(EPSILON)
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
_SAMPLE: Final = 2048
"""Number of sampled logits for estimating the threshold of the most likely tokens."""
_LOW: Final = np.int64(0xFFFFFFFF)
_GROUP: Final = 8
"""Rows optimised together with a head, so that its matrix is read once for all of them."""
_LINES: Final = 32
"""Rows of the matrix per block: small enough for a core's own cache."""


class SupportArrays(NamedTuple):
    """`objective.Support` as arrays."""

    table: Floats
    tokens: Ints
    last: Floats
    offsets: Floats
    logits: Floats
    mass: Floats


class ResultArrays(NamedTuple):
    """`objective.CalibrationResult` as arrays; the last column of ``logits`` is the rest."""

    hidden: Floats
    logits: Floats
    divergence: Floats
    gain: Floats


class WordGainArrays(NamedTuple):
    """`objective.EmbeddingGain` as arrays."""

    strength: Floats
    sides: Floats
    """2 x width."""
    offsets: Floats
    units: Floats
    targets: Floats
    """The accumulated gap minus the typical gap, G - m, one per row."""
    balance: float


class HeadGainArrays(NamedTuple):
    """`objective.ClassifierGain` as arrays."""

    strength: Floats
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


@njit(inline="always")
def _rank(x: np.float32) -> np.int32:
    """An integer with the order of a float32; NaN is above all others."""
    bits = np.float32(x).view(np.int32)
    return np.int32(bits ^ ((bits >> 31) & np.int32(0x7FFFFFFF)))


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
    # 2 to the power of an integer from -126 to 128; the power of 128 is infinite.
    power: np.float32 = np.int32((np.int32(whole) + np.int32(127)) << np.int32(23)).view(np.float32)
    return (tail * r * r + r + _ONE) * power


@njit(fastmath={"contract"}, inline="always")
def tanh(x: np.float32) -> np.float32:
    """The hyperbolic tangent, accurate to 2e-7."""
    return _ONE - _TWO / (exp(_TWO * x) + _ONE)


@_compiled
def dot(one: Floats, two: Floats) -> np.float32:
    """The inner product."""
    total = np.float32(0)
    for place in range(one.size):
        total += one[place] * two[place]
    return total


@_compiled
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


@_compiled
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


@_compiled
def add(total: Floats, weight: np.float32, vector: Floats) -> None:
    """Add a weighted vector."""
    for place in range(total.size):
        total[place] += weight * vector[place]


@_compiled
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


@_compiled
def find_topk(
    begin: int, end: int, hidden: Floats, logits: Floats, reach: int, support: SupportArrays
) -> None:
    """Write the support of the rows, whose rest is estimated from the tokens up to ``reach``."""
    keys, sample = np.empty(logits.shape[1], np.int64), np.empty(2 * _SAMPLE, np.float32)
    shares, tokens, size = np.empty(reach, np.float32), np.empty(reach, np.int64), support.tokens.shape[1]
    for row in range(begin, end):
        top, total, weighted = _masses(logits[row])
        mass = top + np.float32(math.log(total))
        count = _candidate_keys(logits[row], reach, sample, keys)
        order = np.sort(keys[:count])
        inside = reached = spoken = 0.0
        for place in range(reach):
            token = _LOW - (order[count - 1 - place] & _LOW)
            value = logits[row, token]
            shares[place], tokens[place] = exp(value - mass), token
            reached += shares[place]
            spoken += float(shares[place]) * (value - top)
            if place < size:
                inside += shares[place]
                support.tokens[row, place], support.logits[row, place] = token, value
        last = support.last[row]
        _sum_vectors(size, shares, tokens, support.table, last)
        # The sum over all tokens minus that over the near ones: the mean logit beyond, times its mass.
        far = max(1 - reached, 1e-9)
        beyond = float(top) * far + float(weighted) / float(total) - spoken
        _rest_direction(hidden[row], max(reached - inside, 1e-30), far, beyond, last)
        rest = max(math.log1p(-inside), NOTHING) if inside < 1 else NOTHING
        support.mass[row] = mass
        support.offsets[row, size] = mass + np.float32(rest) - dot(last, hidden[row])


@_compiled
def _masses(logits: Floats) -> tuple[np.float32, np.float32, np.float32]:
    """The largest logit; the sums of e and of e d, with d a logit minus the largest and e = exp(d)."""
    best = _rank(logits[0])
    for place in range(logits.size):
        best = max(best, _rank(logits[place]))
    # Compared as integers, and read back: a float comparison that keeps NaN cannot be vectorised.
    top = np.int32(best ^ ((best >> 31) & np.int32(0x7FFFFFFF))).view(np.float32)
    total = weighted = np.float32(0)
    for place in range(logits.size):
        below = logits[place] - top
        if below < _LOWEST:
            below = _LOWEST
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
                keys[count] = (np.int64(_rank(logits[place])) << 32) | (_LOW - place)
                count += 1
        guess *= 2
    return count


@_compiled
def _sum_vectors(begin: int, shares: Floats, tokens: Ints, table: Floats, out: Floats) -> None:
    """Write the share-weighted sum of the vectors of the tokens from ``begin``."""
    out[:] = 0
    place = begin
    while place + 4 <= shares.size:
        a, b, c, d = tokens[place], tokens[place + 1], tokens[place + 2], tokens[place + 3]
        weights = (shares[place], shares[place + 1], shares[place + 2], shares[place + 3])
        add_four(out, weights, table[a], table[b], table[c], table[d])
        place += 4
    for last in range(place, shares.size):
        add(out, shares[last], table[tokens[last]])


@_compiled
def _rest_direction(hidden: Floats, weight: float, far: float, beyond: float, out: Floats) -> None:
    """Turn the sum over the near tokens into the mean over the whole rest (ADR 20)."""
    length = max(float(dot(hidden, hidden)), 1e-30)
    along = float(dot(out, hidden)) / weight / length
    scale = np.float32((1 + far * FOLLOW / weight) / (weight + far))
    shift = np.float32((beyond / length - far * FOLLOW * along) / (weight + far))
    for place in range(out.size):
        out[place] = scale * out[place] + shift * hidden[place]


@_compiled_as_numpy
def write_expected_vectors(begin: int, end: int, hidden: Floats, support: SupportArrays, out: Floats) -> None:
    """Write the expected vector of each row's policy."""
    for row in range(begin, end):
        tokens, total, mean = support.tokens[row], np.float32(0), out[row]
        mean[:] = 0
        for place in range(tokens.size):
            vector = support.table[tokens[place]]
            share = exp(support.offsets[row, place] + dot(vector, hidden[row]) - support.mass[row])
            total += share
            add(mean, share, vector)
        last = dot(support.last[row], hidden[row]) + support.offsets[row, tokens.size]
        share = exp(last - support.mass[row])
        add(mean, share, support.last[row])
        mean /= total + share


@_compiled_as_numpy
def optimize_by_words(
    begin: int,
    end: int,
    hidden: Floats,
    support: SupportArrays,
    steps: int,
    rate: float,
    words: WordGainArrays,
    result: ResultArrays,
) -> None:
    """Optimise rows with `objective.EmbeddingGain` and write the results."""
    upward = np.empty(hidden.shape[1], np.float32)
    vectors = np.empty((1, support.offsets.shape[1], upward.size), np.float32)
    for row in range(begin, end):
        state, start_mass = _start_state(hidden, support, row, vectors[0], result)
        size, mass = _rate(rate, state.hidden), start_mass
        for number in range(1, steps + 1):
            value = _word_gain(words, row, state, mass, upward)
            if number == 1:
                result.gain[row] = value
            _adam_step(number, size, upward, state)
            mass = _evaluate_policy(state, mass)
        result.divergence[row] = _divergence(state, start_mass, mass)


@_compiled_as_numpy
def optimize_by_head(
    begin: int,
    end: int,
    hidden: Floats,
    support: SupportArrays,
    steps: int,
    rate: float,
    head: HeadGainArrays,
    result: ResultArrays,
) -> None:
    """Optimise rows with `objective.ClassifierGain` and write the results."""
    width, units = hidden.shape[1], head.outer.size
    vectors = np.empty((_GROUP, support.offsets.shape[1], width), np.float32)
    moved, upward = np.empty((_GROUP, width), np.float32), np.empty((_GROUP, width), np.float32)
    shift, back = np.empty((_GROUP, units), np.float32), np.empty((_GROUP, units), np.float32)
    for group in range(begin, end, _GROUP):
        size = min(_GROUP, end - group)
        states = [
            _start_state(hidden, support, group + place, vectors[place], result) for place in range(size)
        ]
        mass = np.array([state[1] for state in states])
        shift[:] = 0
        for number in range(1, steps + 1):
            for place in range(size):
                value = _head_gain(head, group + place, shift[place], back[place])
                if number == 1:
                    result.gain[group + place] = value
            _multiply(head.inner_transposed, back[:size], upward)
            for place in range(size):
                row, state = group + place, states[place][0]
                _blend(state, head.strength[row] * head.share[row], upward[place])
                _adam_step(number, _rate(rate, state.hidden), upward[place], state)
                mass[place] = _evaluate_policy(state, mass[place])
                _token_shift(head, row, state, moved[place])
            if number < steps:
                _multiply(head.inner, moved[:size], shift)
        for place in range(size):
            state, start_mass = states[place]
            result.divergence[group + place] = _divergence(state, start_mass, mass[place])


@_compiled_as_numpy
def _blend(state: OptimizerState, pull: np.float32, upward: Floats) -> None:
    """Turn the gradient of D into that of the whole objective."""
    vanilla, mean = state.vanilla, state.mean
    for place in range(upward.size):
        upward[place] = vanilla[place] - mean[place] + pull * upward[place]


@_compiled_as_numpy
def _start_state(
    hidden: Floats, support: SupportArrays, row: int, vectors: Floats, result: ResultArrays
) -> tuple[OptimizerState, np.float32]:
    """The initial state of a row, and the log of its mass."""
    tokens, width = support.tokens[row], hidden.shape[1]
    for place in range(tokens.size):
        vectors[place] = support.table[tokens[place]]
    vectors[tokens.size] = support.last[row]
    state = OptimizerState(
        vectors,
        support.offsets[row],
        hidden[row],
        np.empty(tokens.size + 1, np.float32),
        np.empty(width, np.float32),
        np.empty(width, np.float32),
        np.zeros(width, np.float32),
        np.zeros(width, np.float32),
        result.hidden[row],
        result.logits[row],
    )
    state.now[:] = state.hidden
    mass = _evaluate_policy(state, support.mass[row])
    state.start[:] = state.logits
    state.vanilla[:] = state.mean
    return state, mass


@_compiled_as_numpy
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


@_compiled_as_numpy
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


@_compiled_as_numpy
def _divergence(state: OptimizerState, start_mass: np.float32, mass: np.float32) -> np.float32:
    total = np.float32(0)
    for place in range(state.start.size):
        log_share = state.start[place] - start_mass
        total += exp(log_share) * (log_share - state.logits[place] + mass)
    return total


@_compiled_as_numpy
def _rate(rate: float, hidden: Floats) -> np.float32:
    return np.float32(rate * math.sqrt(dot(hidden, hidden) / hidden.size))


@_compiled_as_numpy
def _word_gain(
    words: WordGainArrays,
    row: int,
    state: OptimizerState,
    mass: np.float32,
    upward: Floats,
) -> np.float32:
    """D of a row; writes the gradient of the whole objective."""
    strength, mean, vanilla = words.strength[row], state.mean, state.vanilla
    one_side, two_side = words.sides[0], words.sides[1]
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


@_compiled_as_numpy
def _token_shift(head: HeadGainArrays, row: int, state: OptimizerState, moved: Floats) -> None:
    """Write the shift of the next token's representation, as a part of the accumulated state."""
    now, before = state.now, state.hidden
    if head.is_natural:
        now, before = state.mean, state.vanilla
    for place in range(moved.size):
        moved[place] = head.share[row] * (now[place] - before[place])


@_compiled_as_numpy
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


@_compiled_as_numpy
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
