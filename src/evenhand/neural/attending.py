"""One token's attention to its row's keys and values on a GPU: a kernel a layer in place of six."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from evenhand.neural.devices import is_current
from evenhand.neural.kernels import has_triton

REACH: Final = 64
"""Without the kernel a recorded step looks at so many columns, or a multiple of them."""
_TILE: Final = 32
"""Keys a block holds at once."""
_WARPS: Final = 1
_WIDEST: Final = 256


def can_attend(cells: Tensor) -> bool:
    """Whether the kernel can work on tables such as this one."""
    return is_current(cells.device) and cells.shape[-1] <= _WIDEST and has_triton()


@dataclass(frozen=True, slots=True)
class Attending:
    """Writes each row's new key and value at its position, and attends to all up to there.

    No row looks at columns beyond its own end, so the work is that of the texts, not of the longest one.
    """

    tables: Tensor
    """Layers x keys and values x rows x heads x length x size."""
    positions: Tensor
    heads: int

    def __call__(self, layer: int, mixed: Tensor) -> Tensor:
        """Queries, keys and values side by side (rows x 1 x 3 width) to what is attended to."""
        from evenhand.neural import attending_blocks

        keys, values = self.tables[layer].unbind()
        length, size = keys.shape[2:]
        mixed = mixed.contiguous()
        out = mixed.new_empty(*mixed.shape[:-1], self.heads * size)
        attending_blocks.attend[len(mixed), self.heads](
            mixed,
            keys,
            values,
            self.positions,
            out,
            size**-0.5,
            self.heads,
            length,
            size,
            SIZE=1 << (size - 1).bit_length(),
            TILE=_TILE,
            num_warps=_WARPS,
        )
        return out


def planless(device: torch.device) -> AbstractContextManager[None]:
    """Attention without cuDNN, which plans anew for every length: 80 ms a token in half precision."""
    kinds = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
    return sdpa_kernel(kinds) if device.type == "cuda" else nullcontext()
