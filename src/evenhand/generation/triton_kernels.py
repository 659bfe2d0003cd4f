"""Triton kernels for single-token attention, grouped maxima and fused normalisation.

Imported only where Triton is installed, which comes with torch for CUDA; `decode_attention` calls it.
"""

from __future__ import annotations

import triton
import triton.language as tl

# Compiled, not called: pointers and compile-time constants have no types.
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
    """Write a head's new key and value, and its attention output up to there, computed in float32."""
    # The cache may have more cells than 32 bits can index.
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
    # The new token is handled separately, so that nothing just written is read back.
    maximum = tl.sum(query * key.to(tl.float32), 0)
    total = 1.0
    mean = value.to(tl.float32)
    for first in range(0, position, TILE):
        places = first + tl.arange(0, TILE)
        valid = places < position
        mask = valid[:, None] & inside[None, :]
        at = cells + places[:, None] * size + columns[None, :]
        loaded = tl.load(keys + at, mask=mask, other=0.0).to(tl.float32)
        scores = tl.where(valid, tl.sum(loaded * query[None, :], 1), float("-inf"))
        higher = tl.maximum(maximum, tl.max(scores, 0))
        shares = tl.exp(scores - higher)
        faded = tl.exp(maximum - higher)
        loaded_values = tl.load(values + at, mask=mask, other=0.0).to(tl.float32)
        mean = mean * faded + tl.sum(shares[:, None] * loaded_values, 0)
        total = total * faded + tl.sum(shares, 0)
        maximum = higher
    rounded = (mean / total).to(out.dtype.element_ty)
    tl.store(out + row * width + head * size + columns, rounded, mask=inside)


@triton.jit
def group_max_kernel(values, out, groups, stride, WIDTH: tl.constexpr, TILE: tl.constexpr):
    """Write the maximum of each group of ``WIDTH`` adjacent values; NaN if any of them is NaN."""
    # All rows together may have more cells than 32 bits can index.
    row = tl.program_id(0).to(tl.int64)
    places = tl.program_id(1) * TILE + tl.arange(0, TILE)
    valid = places < groups
    cells = values + row * stride + places[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    loaded = tl.load(cells, mask=valid[:, None], other=0.0).to(tl.float32)
    has_nan = tl.sum((loaded != loaded).to(tl.int32), 1) > 0
    maximum = tl.where(has_nan, float("nan"), tl.max(loaded, 1))
    tl.store(out + row * groups + places, maximum.to(out.dtype.element_ty), mask=valid)


@triton.jit
def add_norm_kernel(  # noqa: PLR0913 (a kernel has no structures)
    x, more, weight, bias, total, out, epsilon, width, W: tl.constexpr
):
    """Write the sum of two rows and the normalised sum, computed in float32."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, W)
    inside = columns < width
    cells = row * width + columns
    summed = tl.load(x + cells, mask=inside, other=0.0).to(tl.float32)
    summed += tl.load(more + cells, mask=inside, other=0.0).to(tl.float32)
    rounded = summed.to(total.dtype.element_ty)
    tl.store(total + cells, rounded, mask=inside)
    # As in torch, the rounded sum is normalised.
    loaded = rounded.to(tl.float32)
    centred = tl.where(inside, loaded - tl.sum(loaded, 0) / width, 0.0)
    normed = centred / tl.sqrt(tl.sum(centred * centred, 0) / width + epsilon)
    gain = tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
    shift = tl.load(bias + columns, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + cells, (normed * gain + shift).to(out.dtype.element_ty), mask=inside)
