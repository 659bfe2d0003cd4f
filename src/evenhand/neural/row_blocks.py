"""Small work on whole rows as Triton kernels, each in place of two or three of torch's.

Only imported where Triton is there, which comes with torch for CUDA. `largest` and `adding` call them.
"""

from __future__ import annotations

import triton
import triton.language as tl

# Compiled, not called: addresses and compile-time numbers have no types.
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False, disallow-untyped-decorators=False
# mypy: disallow-untyped-calls=False


@triton.jit
def peaks(values, out, groups, stride, WIDTH: tl.constexpr, TILE: tl.constexpr):
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
def add_norm(  # noqa: PLR0913 (a kernel has no structures)
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
