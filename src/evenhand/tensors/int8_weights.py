"""Store weights as int8 with one scale per row: a quarter of float32's size, loaded as plain tensors.

A matrix `name` becomes `name` (int8) and `name.scale` (float32, broadcastable: (rows, 1), or (1, columns)
where outputs are columns); vectors and scalars stay, in float16. The file is an ordinary safetensors file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import torch
from safetensors.torch import save_file
from torch import Tensor

from evenhand.core.errors import ModelError
from evenhand.core.files import apply_umask
from evenhand.tensors.checkpoints import raise_model_errors, read_tensors

FORMAT: Final = "evenhand-int8-1"
_LIMIT: Final = 127
_SCALE: Final = ".scale"
# Clipping the largest weights slightly lowers the squared error of the others; tried in this order.
_CLIPS: Final = (1.0, 0.95, 0.9, 0.85, 0.8)


def quantise(matrix: Tensor, *, by_column: bool = False) -> tuple[Tensor, Tensor]:
    """Return the matrix as int8 in [-127, 127], and the scale of each row, chosen for a small squared error.

    Symmetric, so 0 stays 0. The error of a weight is at most half its row's scale, except where a row's
    largest weights are clipped because that lowers the row's squared error. With `by_column` each column has
    a scale instead.
    """
    weights = matrix.float()
    axis = 0 if by_column else 1
    peak = weights.abs().amax(dim=axis, keepdim=True).clamp(min=1e-12) / _LIMIT
    best = torch.full_like(peak, torch.inf)
    scale = peak
    for clip in _CLIPS:
        step = peak * clip
        rounded = (weights / step).round().clamp(-_LIMIT, _LIMIT)
        error = (rounded * step - weights).square().sum(dim=axis, keepdim=True)
        scale = torch.where(error < best, step, scale)
        best = torch.minimum(error, best)
    return (weights / scale).round().clamp(-_LIMIT, _LIMIT).to(torch.int8), scale


def save_quantised(
    tensors: Mapping[str, Tensor], path: Path, *, by_column: Callable[[str], bool] = lambda name: False
) -> None:
    """Write the tensors: matrices as int8, the rest as float16.

    `by_column(name)` says which matrices have their outputs as columns.
    """
    stored: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if tensor.ndim == 2:
            stored[name], stored[name + _SCALE] = quantise(tensor, by_column=by_column(name))
        else:
            stored[name] = tensor.to(torch.float16).contiguous()
    save_file(stored, path, metadata={"format": FORMAT})
    apply_umask(path)


def load_dequantised(path: Path) -> dict[str, Tensor]:
    """Return the stored tensors by name in float32; those stored without a scale, in float16, included."""
    if not path.is_file():
        raise ModelError(
            f"no weights at {path}",
            expected="a .safetensors file",
            fix="check the folder's name, or export it again",
        )
    stored = read_tensors([path])
    scales = {f"{name}{_SCALE}" for name, tensor in stored.items() if tensor.dtype == torch.int8}
    with raise_model_errors(str(path), expected="weights as `save` writes them", fix="export them again"):
        return {
            name: tensor.float() * stored.get(name + _SCALE, 1.0)
            for name, tensor in stored.items()
            if name not in scales
        }
