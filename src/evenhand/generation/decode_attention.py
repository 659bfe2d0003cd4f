"""Single-token attention over cached keys and values on a GPU: one kernel per layer instead of six."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Final, TypeAlias

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from evenhand.tensors.devices import is_current_gpu, is_triton_installed, triton_available
from evenhand.tensors.linear_layer import LayerNormWeights

COLUMN_MULTIPLE: Final = 64
"""Without the kernel, a captured step reads a multiple of this many columns."""
_TILE: Final = 32
"""Keys per block."""
_WARPS: Final = 1
_WIDEST: Final = 256


def supports_decode_attention(cells: Tensor) -> bool:
    """Whether the kernel supports this cache tensor."""
    return is_current_gpu(cells.device) and cells.shape[-1] <= _WIDEST and is_triton_installed()


def decode_attention(tables: Tensor, positions: Tensor, heads: int, layer: int, mixed: Tensor) -> Tensor:
    """Write each row's new key and value at its position, and attend to all positions up to it.

    No row reads columns beyond its own end, so the cost follows each text's length, not the longest one's.

    Args:
        tables: Layers x keys and values x rows x heads x length x size.
        positions: The position of each row's new token.
        heads: The number of heads.
        layer: The layer to read and write.
        mixed: Concatenated queries, keys and values, rows x 1 x 3 width.
    """
    from evenhand.generation import triton_kernels

    keys, values = tables[layer].unbind()
    length, size = keys.shape[2:]
    mixed = mixed.contiguous()
    out = mixed.new_empty(*mixed.shape[:-1], heads * size)
    sizes = {"SIZE": 1 << (size - 1).bit_length(), "TILE": _TILE, "num_warps": _WARPS}
    triton_kernels.decode_attention_kernel[len(mixed), heads](
        mixed, keys, values, positions, out, size**-0.5, heads, length, size, **sizes
    )
    return out


def no_cudnn_sdpa(device: torch.device) -> AbstractContextManager[None]:
    """Disable cuDNN attention, which replans for every length: 80 ms per token in half precision."""
    kinds = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
    return sdpa_kernel(kinds) if device.type == "cuda" else nullcontext()


AddNorm: TypeAlias = Callable[[Tensor, Tensor, LayerNormWeights], tuple[Tensor, Tensor]]
"""(state, addend, norm) to their sum and the normalised sum."""
_NORM_WARPS: Final = 4


def add_norm(x: Tensor, more: Tensor, norm: LayerNormWeights) -> tuple[Tensor, Tensor]:
    """The sum and the normalised sum, with torch's own kernels."""
    total = x + more
    return total, norm(total)


def fused_add_norm(x: Tensor, more: Tensor, norm: LayerNormWeights) -> tuple[Tensor, Tensor]:
    """The same with one fused kernel, for captured steps: the first one is compared with an eager step."""
    from evenhand.generation import triton_kernels

    x, more, width = x.contiguous(), more.contiguous(), x.shape[-1]
    total, out = torch.empty_like(x), torch.empty_like(x)
    sizes = {"W": 1 << (width - 1).bit_length(), "num_warps": _NORM_WARPS}
    inputs = (x, more, norm.weight, norm.bias, total, out, norm.epsilon)
    triton_kernels.add_norm_kernel[x.numel() // width,](*inputs, width, **sizes)
    return total, out


_CELLS: Final = 4096
"""Values per block of the kernel."""
_TOPK_WARPS: Final = 4


def topk(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The ``count`` largest values of each row in descending order, and their columns: `topk`.

    Ties are broken arbitrarily, as with `topk`.
    """
    width = group_width(values.shape[-1], count)
    if values.device.type != "cuda" or width < 2:
        largest, columns = values.topk(count)
        return largest, columns
    return topk_in_two_passes(values, count, width)


def group_width(columns: int, count: int) -> int:
    """Columns per group: a power of two that balances the work of both passes; 1 gives no gain."""
    return 1 << max(0, round(math.log2(max(1.0, columns / max(count, 1))) / 2))


def topk_in_two_passes(values: Tensor, count: int, width: int) -> tuple[Tensor, Tensor]:
    """Top-k through groups of adjacent values: only the ``count`` groups with the largest maxima matter.

    For a value in any other group, ``count`` group maxima are at least as large.
    """
    groups = values.shape[-1] // width
    whole = groups * width
    peaks = group_max(values, groups, width)
    best = peaks.topk(count, sorted=False).indices
    inside = torch.arange(width, device=values.device)
    left_over = torch.arange(whole, values.shape[-1], device=values.device).expand(len(values), -1)
    columns = torch.cat([(best[..., None] * width + inside).flatten(1), left_over], 1)
    largest, places = values.gather(-1, columns).topk(count)
    return largest, columns.gather(-1, places)


def group_max(values: Tensor, groups: int, width: int) -> Tensor:
    """The maximum of each group of adjacent values, rows x groups; NaN if any of them is NaN.

    On a GPU with our own kernel: torch's reads such small groups at a tenth of the bandwidth.
    """
    if is_current_gpu(values.device) and values.stride(-1) == 1 and _kernel_works():
        return group_max_triton(values, groups, width)
    return values[:, : groups * width].reshape(-1, groups, width).amax(-1)


def group_max_triton(values: Tensor, groups: int, width: int) -> Tensor:
    """The same with the kernel; the group width must be a power of two."""
    from evenhand.generation import triton_kernels

    tile = max(1, _CELLS // width)
    peaks = values.new_empty(len(values), groups)
    triton_kernels.group_max_kernel[len(values), -(-groups // tile)](
        values, peaks, groups, values.stride(0), WIDTH=width, TILE=tile, num_warps=_TOPK_WARPS
    )
    return peaks


@cache
def _kernel_works() -> bool:
    """Whether the kernel works: tested once, since uncaptured calls have no other fallback."""
    return triton_available(_run_trial, instead="torch's own kernels find the most likely tokens")


def _run_trial() -> None:
    group_max_triton(torch.zeros(1, 4, device="cuda"), 2, 2)
    torch.cuda.synchronize()
