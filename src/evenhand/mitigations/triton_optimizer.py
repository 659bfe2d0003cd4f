"""`calibration_steering.calibrate` as Triton kernels: a few launches per step instead of thirty.

Imported only where Triton is installed, which comes with torch for CUDA. `gpu_backend` calls them.
"""

from __future__ import annotations

import triton
import triton.language as tl

from evenhand.mitigations.calibration import BETA1, BETA2, EPSILON

# Compiled, not called: pointers and compile-time constants have no types.
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False, disallow-untyped-decorators=False
# mypy: disallow-untyped-calls=False


# A kernel can read numbers of its module only if they are constexpr.
_BETA1, _BETA2, _EPSILON = tl.constexpr(BETA1), tl.constexpr(BETA2), tl.constexpr(EPSILON)


@triton.jit
def evaluate_policy(  # noqa: PLR0913 (a kernel has no structures)
    table,
    tokens,
    last,
    offsets,
    now,
    near,
    logits,
    totals,
    means,
    count,
    width,
    W: tl.constexpr,
    PARTS: tl.constexpr,
    TILE: tl.constexpr,
):
    """Write the logits of a row's tokens, and each part's sums of their masses and mass-weighted vectors.

    Masses are relative to ``near``, which approximates the log of their sum.
    """
    row, part = tl.program_id(0), tl.program_id(1)
    columns = tl.arange(0, W)
    inside = columns < width
    state = tl.load(now + row * width + columns, mask=inside, other=0.0)
    base = tl.load(near + row)
    rest = tl.load(last + row * width + columns, mask=inside, other=0.0)
    rest_logit = tl.sum(rest * state, 0) + tl.load(offsets + row * (count + 1) + count)
    tl.store(logits + row * (count + 1) + count, rest_logit)
    # The rest belongs to the first part.
    total = tl.where(part == 0, tl.exp(rest_logit - base), 0.0)
    mean = total * rest
    for begin in range(part * TILE, count, PARTS * TILE):
        places = begin + tl.arange(0, TILE)
        valid = places < count
        token = tl.load(tokens + row * count + places, mask=valid, other=0)
        cells = table + token[:, None] * width + columns[None, :]
        vectors = tl.load(cells, mask=valid[:, None] & inside[None, :], other=0.0).to(tl.float32)
        offset = tl.load(offsets + row * (count + 1) + places, mask=valid, other=0.0)
        heard = tl.sum(vectors * state[None, :], 1) + offset
        tl.store(logits + row * (count + 1) + places, heard, mask=valid)
        share = tl.where(valid, tl.exp(heard - base), 0.0)
        total += tl.sum(share, 0)
        mean += tl.sum(share[:, None] * vectors, 0)
    tl.store(totals + row * PARTS + part, total)
    tl.store(means + (row * PARTS + part) * width + columns, mean, mask=inside)


@triton.jit
def log_masses(logits, mass, mean_logit, count, stride, TILE: tl.constexpr):
    """Write the log of a row's mass and the mean of its logits under its own policy, in one pass."""
    row = tl.program_id(0).to(tl.int64)
    begin = logits + row * stride
    maximum = tl.load(begin)
    total, spoken = 0.0, 0.0
    for first in range(0, count, TILE):
        columns = first + tl.arange(0, TILE)
        heard = tl.load(begin + columns, mask=columns < count, other=float("-inf"))
        higher = tl.maximum(maximum, tl.max(heard, 0))
        faded = tl.exp(maximum - higher)
        # So low that its exponential is 0, but finite.
        below = tl.maximum(heard - higher, -87.0)
        share = tl.where(columns < count, tl.exp(below), 0.0)
        spoken = faded * (spoken + total * (maximum - higher)) + tl.sum(share * below, 0)
        total = faded * total + tl.sum(share, 0)
        maximum = higher
    tl.store(mass + row, maximum + tl.log(total))
    tl.store(mean_logit + row, maximum + spoken / total)


@triton.jit
def weigh_rest(  # noqa: PLR0913
    table,
    tokens,
    values,
    mass,
    sums,
    size,
    reach,
    width,
    W: tl.constexpr,
    PARTS: tl.constexpr,
    TILE: tl.constexpr,
):
    """Write each part's share-weighted sum of the vectors of a row's tokens beyond ``size``."""
    row, part = tl.program_id(0), tl.program_id(1)
    columns = tl.arange(0, W)
    inside = columns < width
    base = tl.load(mass + row)
    total = tl.zeros([W], tl.float32)
    for begin in range(size + part * TILE, reach, PARTS * TILE):
        places = begin + tl.arange(0, TILE)
        valid = places < reach
        token = tl.load(tokens + row * reach + places, mask=valid, other=0)
        heard = tl.load(values + row * reach + places, mask=valid, other=float("-inf"))
        cells = table + token[:, None] * width + columns[None, :]
        vectors = tl.load(cells, mask=valid[:, None] & inside[None, :], other=0.0).to(tl.float32)
        total += tl.sum(tl.exp(heard - base)[:, None] * vectors, 0)
    tl.store(sums + (row * PARTS + part) * width + columns, total, mask=inside)


@triton.jit
def rest_direction(  # noqa: PLR0913
    sums,
    values,
    mass,
    mean_logit,
    hidden,
    last,
    offset,
    follow,
    nothing,
    size,
    reach,
    width,
    R: tl.constexpr,
    W: tl.constexpr,
    PARTS: tl.constexpr,
):
    """Write the direction of a row's rest, and the bias added to its product with the state."""
    row = tl.program_id(0)
    places = tl.arange(0, R)
    known = places < reach
    base = tl.load(mass + row)
    heard = tl.load(values + row * reach + places, mask=known, other=0.0)
    shares = tl.where(known, tl.exp(heard - base), 0.0)
    within = tl.sum(tl.where(places < size, shares, 0.0), 0)
    weight = tl.maximum(tl.sum(tl.where(places >= size, shares, 0.0), 0), 1e-30)
    far = tl.maximum(1 - tl.sum(shares, 0), 1e-9)
    beyond = tl.load(mean_logit + row) - tl.sum(shares * heard, 0)
    columns = tl.arange(0, W)
    inside = columns < width
    state = tl.load(hidden + row * width + columns, mask=inside, other=0.0)
    near = tl.zeros([W], tl.float32)
    for part in tl.static_range(PARTS):
        near += tl.load(sums + (row * PARTS + part) * width + columns, mask=inside, other=0.0)
    near = near / weight
    length = tl.maximum(tl.sum(state * state, 0), 1e-30)
    across = near - tl.sum(near * state, 0) / length * state
    away = beyond / far / length * state + follow * across
    mean = (weight * near + far * away) / (weight + far)
    tl.store(last + row * width + columns, mean, mask=inside)
    # The log of an empty rest is negligible in every sum.
    rest = base + tl.maximum(tl.log(tl.maximum(1 - within, 0.0)), nothing)
    tl.store(offset + row, rest - tl.sum(mean * state, 0))


@triton.jit
def merge_parts(totals, means, near, row, columns, inside, width, PARTS: tl.constexpr):
    """The expected vector of a row and the log of its mass, from all parts."""
    total = tl.load(totals + row * PARTS)
    mean = tl.load(means + row * PARTS * width + columns, mask=inside, other=0.0)
    for part in tl.static_range(1, PARTS):
        total += tl.load(totals + row * PARTS + part)
        mean += tl.load(means + (row * PARTS + part) * width + columns, mask=inside, other=0.0)
    return mean / total, tl.load(near + row) + tl.log(total)


@triton.jit
def adam_step(upward, first, second, now, rate, size, spread, cells, inside):  # noqa: PLR0913
    """One ascent step of Adam."""
    one = tl.load(first + cells, mask=inside, other=0.0)
    two = tl.load(second + cells, mask=inside, other=0.0)
    state = tl.load(now + cells, mask=inside, other=0.0)
    one += (1 - _BETA1) * (upward - one)
    two = _BETA2 * two + (1 - _BETA2) * upward * upward
    tl.store(first + cells, one, mask=inside)
    tl.store(second + cells, two, mask=inside)
    tl.store(now + cells, state + rate * size * one / (tl.sqrt(two) * spread + _EPSILON), mask=inside)


@triton.jit
def step_by_words(  # noqa: PLR0913
    totals,
    means,
    near,
    now,
    first,
    second,
    vanilla,
    rates,
    strengths,
    gained,
    sides,
    units,
    wanted,
    one_offset,
    two_offset,
    balance,
    size,
    spread,
    rows,
    width,
    FIRST: tl.constexpr,
    W: tl.constexpr,
    PARTS: tl.constexpr,
):
    """One ascent step with `objective.EmbeddingGain`; the first one also writes D."""
    row = tl.program_id(0)
    columns = tl.arange(0, W)
    inside = columns < width
    cells = row * width + columns
    mean, mass = merge_parts(totals, means, near, row, columns, inside, width, PARTS)
    tl.store(near + row, mass)
    if FIRST:
        tl.store(vanilla + cells, mean, mask=inside)
        before = mean
    else:
        before = tl.load(vanilla + cells, mask=inside, other=0.0)
    state = tl.load(now + cells, mask=inside, other=0.0)
    one_side = tl.load(sides + columns, mask=inside, other=0.0)
    two_side = tl.load(sides + width + columns, mask=inside, other=0.0)
    one = mass - tl.sum(state * one_side, 0) - one_offset
    two = mass - tl.sum(state * two_side, 0) - two_offset
    unit_one, unit_two = tl.load(units + row), tl.load(units + rows + row)
    gap = tl.load(wanted + row) + one - two
    lean = balance * tl.where(gap > 0, 1.0, tl.where(gap < 0, -1.0, 0.0))
    if FIRST:
        far = one * one / (unit_one * unit_one) + two * two / (unit_two * unit_two)
        tl.store(gained + row, far - lean * gap)
    to_one = 2 * one / (unit_one * unit_one) - lean
    to_two = 2 * two / (unit_two * unit_two) + lean
    slope = (to_one + to_two) * mean - to_one * one_side - to_two * two_side
    upward = before - mean + tl.load(strengths + row) * slope
    adam_step(upward, first, second, now, tl.load(rates + row), size, spread, cells, inside)


@triton.jit
def expected_vector(  # noqa: PLR0913
    totals,
    means,
    near,
    now,
    hidden,
    vanilla,
    mean_out,
    moved,
    share,
    width,
    FIRST: tl.constexpr,
    NATURAL: tl.constexpr,
    W: tl.constexpr,
    PARTS: tl.constexpr,
):
    """Write the expected vector, and the shift of the next token's representation."""
    row = tl.program_id(0)
    columns = tl.arange(0, W)
    inside = columns < width
    cells = row * width + columns
    mean, mass = merge_parts(totals, means, near, row, columns, inside, width, PARTS)
    tl.store(near + row, mass)
    tl.store(mean_out + cells, mean, mask=inside)
    if FIRST:
        tl.store(vanilla + cells, mean, mask=inside)
    else:
        if NATURAL:
            way = mean - tl.load(vanilla + cells, mask=inside, other=0.0)
        else:
            way = tl.load(now + cells, mask=inside, other=0.0)
            way -= tl.load(hidden + cells, mask=inside, other=0.0)
        tl.store(moved + cells, tl.load(share + row) * way, mask=inside)


@triton.jit
def head_gain_gradient(  # noqa: PLR0913
    inside_layer,
    shift,
    weights,
    outer,
    outer_bias,
    share,
    strengths,
    back,
    gained,
    ages,
    units,
    FIRST: tl.constexpr,
    U: tl.constexpr,
):
    """Write lambda times the gradient of `objective.ClassifierGain` in the inner layer's input."""
    row = tl.program_id(0)
    columns = tl.arange(0, U)
    valid = columns < units
    outward = tl.load(outer + columns, mask=valid, other=0.0)
    bias = tl.load(outer_bias)
    total = tl.zeros([U], tl.float32)
    value = 0.0
    for age in range(ages):
        weight = tl.load(weights + row * ages + age)
        cells = inside_layer + (row * ages + age) * units + columns
        loaded = tl.load(cells, mask=valid, other=0.0)
        if not FIRST:
            loaded += tl.load(shift + row * units + columns, mask=valid, other=0.0)
        active = 2 * tl.sigmoid(2 * loaded) - 1
        odds = tl.sum(active * outward, 0) + bias
        sign = tl.where(odds > 0, 1.0, tl.where(odds < 0, -1.0, 0.0))
        small = tl.exp(-tl.abs(odds))
        value += weight * tl.log(1 + small)
        total += -weight * sign * small / (1 + small) * (1 - active * active)
    scale = tl.load(share + row) * tl.load(strengths + row)
    tl.store(back + row * units + columns, scale * total * outward, mask=valid)
    if FIRST:
        tl.store(gained + row, value)


@triton.jit
def step_by_head(  # noqa: PLR0913
    slope, mean, vanilla, first, second, now, rates, size, spread, width, W: tl.constexpr
):
    """One ascent step on the objective, given the gradient of the gain."""
    row = tl.program_id(0)
    columns = tl.arange(0, W)
    inside = columns < width
    cells = row * width + columns
    upward = tl.load(vanilla + cells, mask=inside, other=0.0) + tl.load(slope + cells, mask=inside, other=0.0)
    upward -= tl.load(mean + cells, mask=inside, other=0.0)
    adam_step(upward, first, second, now, tl.load(rates + row), size, spread, cells, inside)
