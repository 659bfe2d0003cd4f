"""The classifiers' encoder on a CPU: texts laid end to end, so that no padding is computed.

Only attention and pooling know rows: neighbours of equal length, of which batches of sorted texts have many,
are a view of the states, need no mask, and are read together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from evenhand.neural.encoder import Encoder, Layer
from evenhand.neural.linear import Linear


class PackedEncoder:
    """An encoder that only reads: its matrices are packed once, the encoder it came from is not needed."""

    def __init__(self, encoder: Encoder) -> None:
        self._words, self._positions = encoder.words.weight, encoder.positions.weight
        self._project = _packed(encoder.project) if isinstance(encoder.project, nn.Linear) else None
        self._norm = encoder.norm
        self._layers = [_PackedLayer(layer) for layer in encoder.layers if isinstance(layer, Layer)]

    def __call__(self, rows: Sequence[Sequence[int]]) -> Iterator[Tensor]:
        """The states of the rows in their order, neighbours of equal length as rows x length x width."""
        runs = [(length, len(list(same))) for length, same in groupby(map(len, rows))]
        x = self._embedded(rows)
        for layer in self._layers:
            x = layer(x, runs)
        for states, (length, count) in zip(_cut(x, runs), runs, strict=True):
            yield states.view(count, length, -1)

    def _embedded(self, rows: Sequence[Sequence[int]]) -> Tensor:
        ids = torch.tensor([token for row in rows for token in row])
        places = torch.tensor([place for row in rows for place in range(len(row))])
        words = F.embedding(ids, self._words)
        x = words if self._project is None else self._project(words)
        embedded: Tensor = self._norm(x.add_(F.embedding(places, self._positions)))
        return embedded


class _PackedLayer:
    """Attention and feed-forward over texts end to end."""

    def __init__(self, layer: Layer) -> None:
        self._heads = layer.heads
        self._qkv, self._out = _packed(layer.qkv), _packed(layer.out)
        self._widen, self._narrow = _packed(layer.widen), _packed(layer.narrow)
        self._attention_norm, self._norm = layer.attention_norm, layer.norm

    def __call__(self, x: Tensor, runs: Sequence[tuple[int, int]]) -> Tensor:
        """The layer's output; ``runs`` are lengths and how many neighbours have them."""
        parts = zip(_cut(self._qkv(x), runs), runs, strict=True)
        mixed = torch.cat([self._attended(part, length, count) for part, (length, count) in parts])
        x = self._attention_norm(self._out(mixed).add_(x))
        found: Tensor = self._norm(self._narrow(self._widen.gelu(x)).add_(x))
        return found

    def _attended(self, qkv: Tensor, length: int, count: int) -> Tensor:
        query, key, value = qkv.view(count, length, 3, self._heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value)
        return mixed.transpose(1, 2).reshape(count * length, -1)


def _packed(layer: nn.Linear) -> Linear:
    return Linear(layer.weight.detach(), None if layer.bias is None else layer.bias.detach())


def _cut(x: Tensor, runs: Sequence[tuple[int, int]]) -> tuple[Tensor, ...]:
    return torch.split(x, [length * count for length, count in runs])
