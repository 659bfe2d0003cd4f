"""The largest values of each row, on a GPU without reading all of them several times."""

from __future__ import annotations

import math
from functools import cache
from typing import Final

import torch
from torch import Tensor

from evenhand.neural.devices import is_current
from evenhand.neural.kernels import can_compile

_CELLS: Final = 4096
"""Values a block of the kernel holds at once."""
_WARPS: Final = 4


def largest(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The ``count`` largest values of each row in falling order, and their columns: `topk`.

    Among equal values either may be taken, as with `topk`.
    """
    width = group_width(values.shape[-1], count)
    if values.device.type != "cuda" or width < 2:
        found, columns = values.topk(count)
        return found, columns
    return in_two_rounds(values, count, width)


def group_width(columns: int, count: int) -> int:
    """Columns a group: a power of two with which both rounds look at about as many; 1 wins nothing."""
    return 1 << max(0, round(math.log2(max(1.0, columns / max(count, 1))) / 2))


def in_two_rounds(values: Tensor, count: int, width: int) -> tuple[Tensor, Tensor]:
    """The largest by way of groups of neighbours: only the ``count`` groups of the largest maxima matter.

    A value in any other group has ``count`` values, each the largest of a group, at or above it.
    """
    groups = values.shape[-1] // width
    whole = groups * width
    peaks = peaks_of(values, groups, width)
    best = peaks.topk(count, sorted=False).indices
    inside = torch.arange(width, device=values.device)
    left_over = torch.arange(whole, values.shape[-1], device=values.device).expand(len(values), -1)
    columns = torch.cat([(best[..., None] * width + inside).flatten(1), left_over], 1)
    found, places = values.gather(-1, columns).topk(count)
    return found, columns.gather(-1, places)


def peaks_of(values: Tensor, groups: int, width: int) -> Tensor:
    """The largest value of each group of neighbours, rows x groups; NaN where one of them is none.

    On a GPU by a kernel of ours: torch's own reads groups this small at a tenth of the bandwidth.
    """
    if is_current(values.device) and values.stride(-1) == 1 and _is_there():
        return peaks_by_kernel(values, groups, width)
    return values[:, : groups * width].reshape(-1, groups, width).amax(-1)


def peaks_by_kernel(values: Tensor, groups: int, width: int) -> Tensor:
    """The same by the kernel; a group is a power of two wide."""
    from evenhand.neural import row_blocks

    tile = max(1, _CELLS // width)
    found = values.new_empty(len(values), groups)
    row_blocks.peaks[len(values), -(-groups // tile)](
        values, found, groups, values.stride(0), WIDTH=width, TILE=tile, num_warps=_WARPS
    )
    return found


@cache
def _is_there() -> bool:
    """Whether the kernel is: tried once, since plain calls have no other way back."""
    return can_compile(_try, instead="torch's own kernels find the likeliest tokens")


def _try() -> None:
    peaks_by_kernel(torch.zeros(1, 4, device="cuda"), 2, 2)
    torch.cuda.synchronize()
