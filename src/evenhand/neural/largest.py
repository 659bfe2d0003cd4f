"""The largest values of each row, on a GPU without reading all of them several times."""

from __future__ import annotations

import math

import torch
from torch import Tensor


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
    peaks = values[:, :whole].reshape(-1, groups, width).amax(-1)
    best = peaks.topk(count, sorted=False).indices
    inside = torch.arange(width, device=values.device)
    left_over = torch.arange(whole, values.shape[-1], device=values.device).expand(len(values), -1)
    columns = torch.cat([(best[..., None] * width + inside).flatten(1), left_over], 1)
    found, places = values.gather(-1, columns).topk(count)
    return found, columns.gather(-1, places)
