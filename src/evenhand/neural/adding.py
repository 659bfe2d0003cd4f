"""What follows every half of a layer: its output is added to the state, and the sum is normalised."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import torch
from torch import Tensor

from evenhand.neural.weights import Norm

Add: TypeAlias = Callable[[Tensor, Tensor, Norm], tuple[Tensor, Tensor]]
"""(state, what is added, norm) to their sum, and the sum normalised."""
_WARPS: Final = 4


def added(x: Tensor, more: Tensor, norm: Norm) -> tuple[Tensor, Tensor]:
    """The sum, and the sum normalised, by torch's own kernels."""
    total = x + more
    return total, norm(total)


def added_at_once(x: Tensor, more: Tensor, norm: Norm) -> tuple[Tensor, Tensor]:
    """The same by one kernel of ours, for recorded steps: their first one is compared with a plain one."""
    from evenhand.neural import row_blocks

    x, more, width = x.contiguous(), more.contiguous(), x.shape[-1]
    total, out = torch.empty_like(x), torch.empty_like(x)
    row_blocks.add_norm[x.numel() // width,](
        x,
        more,
        norm.weight,
        norm.bias,
        total,
        out,
        norm.epsilon,
        width,
        W=1 << (width - 1).bit_length(),
        num_warps=_WARPS,
    )
    return total, out
