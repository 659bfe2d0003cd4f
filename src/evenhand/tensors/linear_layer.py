"""Layers for inference: matrix products with weights laid out for their device, and normalisation."""

from __future__ import annotations

from typing import Final, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

ROWS_HINT: Final = 32
"""The number of rows the packed layout is chosen for; any other number works too."""


class LayerNormWeights(NamedTuple):
    """Layer normalisation with its gain and bias."""

    weight: Tensor
    bias: Tensor
    epsilon: float

    def __call__(self, x: Tensor) -> Tensor:
        """The normalised rows."""
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.epsilon)


class PackedLinear:
    """``x W' + b``, W being outputs x inputs.

    On a CPU in float32 the matrix is stored in oneDNN's blocked layout, which its kernels read up to six
    times faster than a plain one at 32 rows. The operators are those that torch's compiler emits; if a build
    of torch lacks them, the plain product is used.
    """

    __slots__ = ("_bias", "_is_packed", "_weight")

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        packed = _pack(weight)
        self._is_packed = packed is not None
        self._weight = weight if packed is None else packed
        self._bias = bias

    @classmethod
    def of(cls, layer: nn.Linear) -> PackedLinear:
        """The product of a layer, without gradients."""
        return cls(layer.weight.detach(), None if layer.bias is None else layer.bias.detach())

    def __call__(self, x: Tensor) -> Tensor:
        """The product for every row of x."""
        if not self._is_packed:
            return F.linear(x, self._weight, self._bias)
        return self._linear_pointwise(x, "none", "")

    def gelu(self, x: Tensor) -> Tensor:
        """The exact GELU of the product, applied while it is still in the CPU cache."""
        return self._linear_pointwise(x, "gelu", "none") if self._is_packed else F.gelu(self(x))

    def tanh_gelu(self, x: Tensor) -> Tensor:
        """The tanh approximation of GELU of the product; on a GPU it is fused into the product's kernel."""
        if self._bias is None or not fuses_gelu(self._weight):
            return F.gelu(self(x), approximate="tanh")
        rows = x.reshape(-1, x.shape[-1])
        products: Tensor = torch._addmm_activation(self._bias, rows, self._weight.T, use_gelu=True)
        return products.view(*x.shape[:-1], -1)

    def _linear_pointwise(self, x: Tensor, then: str, kind: str) -> Tensor:
        products: Tensor = torch.ops.mkldnn._linear_pointwise(x, self._weight, self._bias, then, [], kind)
        return products


def fuses_gelu(weight: Tensor) -> bool:
    """Whether torch fuses GELU for these weights: a GPU's kernel approximates it, a CPU's does not."""
    fits = weight.dtype in (torch.bfloat16, torch.float16) and weight.device.type == "cuda"
    return fits and hasattr(torch, "_addmm_activation")


def _pack(weight: Tensor) -> Tensor | None:
    """The matrix in oneDNN's layout, or None if that is not available."""
    fits = weight.device.type == "cpu" and weight.dtype == torch.float32
    if not fits or not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return None
    try:
        packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), ROWS_HINT)
    except (AttributeError, RuntimeError):
        return None
    return packed
