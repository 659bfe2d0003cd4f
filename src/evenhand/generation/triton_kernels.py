"""The attention of a row's new token as a Triton kernel.

Imported only where Triton is installed, which comes with torch for CUDA; `decode_attention` calls it.
"""

from __future__ import annotations

import triton
import triton.language as tl

# Compiled, not called: addresses and compile-time numbers have no types.
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False, disallow-untyped-decorators=False
# mypy: disallow-untyped-calls=False


@triton.jit
def decode_attention_kernel(  # noqa: PLR0913 (a kernel has no structures)
    mixed,
    keys,
    values,
    positions,
    out,
    scale,
    heads,
    length,
    size,
    SIZE: tl.constexpr,
    TILE: tl.constexpr,
):
    """Write a head's new key and value, and the mean of its values up to there, in float32 inside."""
    # Tables may have more cells than 32 bits count.
    row, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    columns = tl.arange(0, SIZE)
    inside = columns < size
    width = heads * size
    position = tl.load(positions + row)
    begin = mixed + row * 3 * width + head * size + columns
    query = tl.load(begin, mask=inside, other=0.0).to(tl.float32) * scale
    key = tl.load(begin + width, mask=inside, other=0.0)
    value = tl.load(begin + 2 * width, mask=inside, other=0.0)
    cells = (row * heads + head) * length * size
    tl.store(keys + cells + position * size + columns, key, mask=inside)
    tl.store(values + cells + position * size + columns, value, mask=inside)
    # The new token stands for itself, so that nothing just written is read back.
    most = tl.sum(query * key.to(tl.float32), 0)
    total = 1.0
    mean = value.to(tl.float32)
    for first in range(0, position, TILE):
        places = first + tl.arange(0, TILE)
        valid = places < position
        wanted = valid[:, None] & inside[None, :]
        at = cells + places[:, None] * size + columns[None, :]
        seen = tl.load(keys + at, mask=wanted, other=0.0).to(tl.float32)
        heard = tl.where(valid, tl.sum(seen * query[None, :], 1), float("-inf"))
        higher = tl.maximum(most, tl.max(heard, 0))
        shares = tl.exp(heard - higher)
        faded = tl.exp(most - higher)
        seen_values = tl.load(values + at, mask=wanted, other=0.0).to(tl.float32)
        mean = mean * faded + tl.sum(shares[:, None] * seen_values, 0)
        total = total * faded + tl.sum(shares, 0)
        most = higher
    kept = (mean / total).to(out.dtype.element_ty)
    tl.store(out + row * width + head * size + columns, kept, mask=inside)


# Compiled, not called: addresses and compile-time numbers have no types.
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False, disallow-untyped-decorators=False
# mypy: disallow-untyped-calls=False


@triton.jit
def group_max_kernel(values, out, groups, stride, WIDTH: tl.constexpr, TILE: tl.constexpr):
    """Write the largest value of each group of ``WIDTH`` neighbours; NaN where one of them is none."""
    # All rows together may have more cells than 32 bits count.
    row = tl.program_id(0).to(tl.int64)
    places = tl.program_id(1) * TILE + tl.arange(0, TILE)
    valid = places < groups
    cells = values + row * stride + places[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    seen = tl.load(cells, mask=valid[:, None], other=0.0).to(tl.float32)
    strange = tl.sum((seen != seen).to(tl.int32), 1) > 0
    most = tl.where(strange, float("nan"), tl.max(seen, 1))
    tl.store(out + row * groups + places, most.to(out.dtype.element_ty), mask=valid)


@triton.jit
def add_norm_kernel(  # noqa: PLR0913 (a kernel has no structures)
    x, more, weight, bias, total, out, epsilon, width, W: tl.constexpr
):
    """Write the sum of two rows and the sum normalised, in float32 inside."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, W)
    inside = columns < width
    cells = row * width + columns
    summed = tl.load(x + cells, mask=inside, other=0.0).to(tl.float32)
    summed += tl.load(more + cells, mask=inside, other=0.0).to(tl.float32)
    kept = summed.to(total.dtype.element_ty)
    tl.store(total + cells, kept, mask=inside)
    # As torch has it: what is normalised is the sum as it was rounded.
    seen = kept.to(tl.float32)
    away = tl.where(inside, seen - tl.sum(seen, 0) / width, 0.0)
    shrunk = away / tl.sqrt(tl.sum(away * away, 0) / width + epsilon)
    gain = tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
    shift = tl.load(bias + columns, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + cells, (shrunk * gain + shift).to(out.dtype.element_ty), mask=inside)
