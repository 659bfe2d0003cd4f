"""BERT, RoBERTa and DistilBERT as masked language models: plain torch over tensors in the Hub's layout.

One place of each row is asked for, so the last layer's query and everything after it, the output table above
all, are computed there alone; the other places of that layer give only their keys and values.
"""

from __future__ import annotations

from collections.abc import Mapping

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
        weights = self._weights
        columns = tokens.shape[1]
        mask = (torch.arange(columns, device=self.device) < lengths[:, None])[:, None, None]
        x = weights.norm(F.embedding(tokens, weights.words) + weights.positions[:columns])
        for layer in weights.layers[:-1]:
            x = self._run(layer, x, x, mask)
        asked = x[torch.arange(len(tokens), device=self.device), places][:, None]
        x = self._run(weights.layers[-1], asked, x, mask)[:, 0]
        return weights.decoder(weights.head_norm(F.gelu(weights.head(x)))).float()

    def _run(self, layer: Layer, asked: Tensor, x: Tensor, mask: Tensor) -> Tensor:
        """The layer's output at the asked states, which attend to all of ``x``."""
        rows, columns, _ = x.shape
        heads = self.shape.heads
        query = layer.query(asked).view(rows, asked.shape[1], heads, -1).transpose(1, 2)
        key, value = layer.key_value(x).view(rows, columns, 2, heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        asked = layer.out_norm(asked + layer.out(mixed.transpose(1, 2).reshape(asked.shape)))
        return layer.down_norm(asked + layer.down(F.gelu(layer.up(asked))))
