"""Layers the two architectures share. Weights stay in float32; each product runs in the type of its input."""

from __future__ import annotations

from typing import Final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

INITIAL_DEVIATION: Final = 0.02
"""Standard deviation of fresh matrices, as in GPT-2 and BERT."""


class Linear(nn.Module):
    """`x W' + b` with W of shape (out, in), as BERT stores it."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs) * INITIAL_DEVIATION)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x: Tensor) -> Tensor:
        """Return the product in x's type."""
        return F.linear(x, self.weight.to(x.dtype), self.bias.to(x.dtype))


class Conv1D(nn.Module):
    """`x W + b` with W of shape (in, out), as GPT-2 stores it; `parts` matrices stand side by side in W."""

    def __init__(self, inputs: int, outputs: int, *, parts: int = 1, zero: bool = False) -> None:
        super().__init__()
        deviation = 0.0 if zero else INITIAL_DEVIATION
        self.weight = nn.Parameter(torch.randn(inputs, outputs) * deviation)
        self.weight.muon_parts = parts  # type: ignore[attr-defined]
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x: Tensor) -> Tensor:
        """Return the product in x's type."""
        return F.linear(x, self.weight.to(x.dtype).mT, self.bias.to(x.dtype))


class LayerNorm(nn.Module):
    """Normalise the last axis; statistics are taken in float32 whatever the input's type."""

    def __init__(self, width: int, *, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """Return the normalised input in its own type."""
        return F.layer_norm(x, (x.shape[-1],), self.weight.to(x.dtype), self.bias.to(x.dtype), self.eps)


class Table(nn.Module):
    """An embedding table."""

    def __init__(self, entries: int, width: int, *, trained: bool = True) -> None:
        super().__init__()
        values = torch.randn(entries, width) * INITIAL_DEVIATION if trained else torch.zeros(entries, width)
        self.weight = nn.Parameter(values, requires_grad=trained)


def attend(x: Tensor, heads: int, *, causal: bool) -> Tensor:
    """Return scaled dot-product attention of `x`, whose last axis is query, key and value side by side."""
    rows, length, _ = x.shape
    query, key, value = x.view(rows, length, 3, heads, -1).permute(2, 0, 3, 1, 4)
    mixed = F.scaled_dot_product_attention(query, key, value, is_causal=causal)
    return mixed.transpose(1, 2).reshape(rows, length, -1)


def token_loss(hidden: Tensor, table: Tensor, bias: Tensor | None, targets: Tensor) -> Tensor:
    """Return the mean cross-entropy, in nats, of `targets` under the tied output table."""
    logits = F.linear(hidden, table.to(hidden.dtype), None if bias is None else bias.to(hidden.dtype))
    return F.cross_entropy(logits.flatten(0, -2).float(), targets.flatten())
