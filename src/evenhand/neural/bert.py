"""BERT, RoBERTa and DistilBERT as masked language models: plain torch over tensors in the Hub's layout.

One place of each row is asked for, so the last layer's query and everything after it, the output table above
all, are computed there alone; the other places of that layer give only their keys and values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from evenhand.neural.bert_weights import BertShape, Layer, lay_out


class Bert:
    """A BERT-like model ready to run: a ``MaskedEngine``.

    Args:
        shape: Its sizes.
        tensors: Its weights under the Hub's names; the names of other heads are ignored.
        device: Where it runs.
        dtype: What it computes in; logits are float32 always.
    """

    def __init__(
        self,
        shape: BertShape,
        tensors: Mapping[str, Tensor],
        *,
        device: torch.device | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.shape = shape
        self.device = device or torch.device("cpu")
        self.dtype = dtype
        self._weights = lay_out(shape, tensors, device=self.device, dtype=dtype)

    @property
    def context(self) -> int:
        """The longest row in tokens."""
        return self.shape.context

    @torch.no_grad()
    def logits(self, tokens: Tensor, lengths: Tensor, places: Tensor) -> Tensor:
        """What may stand at one place of each row, rows x vocabulary in float32."""
        weights, layout = self._weights, _Layout.of(tokens, lengths)
        columns = torch.arange(tokens.shape[1], device=self.device).expand_as(tokens)
        x = F.embedding(layout.packed(tokens), weights.words) + weights.positions[layout.packed(columns)]
        x = weights.norm(x)
        for layer in weights.layers[:-1]:
            x = self._everywhere(layer, x, layout)
        x = self._asked(weights.layers[-1], x, layout, places)
        return weights.decoder(weights.head_norm(F.gelu(weights.head(x)))).float()

    def _everywhere(self, layer: Layer, x: Tensor, layout: _Layout) -> Tensor:
        """The layer's output at every place."""
        query = self._heads(layout.spread(layer.query(x)))
        return _finished(layer, x, layout.packed(self._attended(query, layer.key_value(x), layout)))

    def _asked(self, layer: Layer, x: Tensor, layout: _Layout, places: Tensor) -> Tensor:
        """The layer's output at one place of each row."""
        asked = layout.spread(x)[torch.arange(layout.rows, device=self.device), places]
        query = self._heads(layer.query(asked)[:, None])
        return _finished(layer, asked, self._attended(query, layer.key_value(x), layout)[:, 0])

    def _attended(self, query: Tensor, key_value: Tensor, layout: _Layout) -> Tensor:
        key, value = (self._heads(part) for part in layout.spread(key_value).chunk(2, dim=-1))
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=layout.mask)
        return mixed.transpose(1, 2).flatten(2)

    def _heads(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], self.shape.heads, -1).transpose(1, 2)


def _finished(layer: Layer, x: Tensor, mixed: Tensor) -> Tensor:
    """What a layer makes of states and what they attended to."""
    x = layer.out_norm(x + layer.out(mixed))
    return layer.down_norm(x + layer.down(F.gelu(layer.up(x))))


class _Layout(NamedTuple):
    """Rows laid end to end: on a CPU padding would cost as much as text, and only attention needs rows."""

    rows: int
    columns: int
    cells: Tensor | None
    """Where the tokens lie among rows x columns; None where all cells are computed."""
    mask: Tensor | None
    """False where a row has ended, rows x 1 x 1 x columns; None where every row is full."""

    @classmethod
    def of(cls, tokens: Tensor, lengths: Tensor) -> _Layout:
        rows, columns = tokens.shape
        there = torch.arange(columns, device=tokens.device) < lengths[:, None]
        # An accelerator has room to spare, and would have to be waited for.
        if tokens.device.type != "cpu":
            return cls(rows, columns, None, there[:, None, None])
        if there.all():
            return cls(rows, columns, None, None)
        return cls(rows, columns, there.flatten().nonzero()[:, 0], there[:, None, None])

    def packed(self, padded: Tensor) -> Tensor:
        """Rows x columns (x width) end to end."""
        cells = padded.flatten(0, 1)
        return cells if self.cells is None else cells.index_select(0, self.cells)

    def spread(self, packed: Tensor) -> Tensor:
        """States end to end as rows x columns x width, zero where a row has ended."""
        if self.cells is not None:
            empty = packed.new_zeros((self.rows * self.columns, packed.shape[1]))
            packed = empty.index_copy_(0, self.cells, packed)
        return packed.view(self.rows, self.columns, -1)
