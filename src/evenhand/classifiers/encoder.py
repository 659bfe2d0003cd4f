"""The encoder behind the embedded classifiers, in plain torch: BERT's layers over factorised word embeddings.

It is BERT's architecture (post-norm, exact GELU, learned positions) with two changes: words may be stored in
fewer dimensions than the layers use, and each head pools the states with its own attention, where all-zero
queries give the mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Literal, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from evenhand.tensors.linear_layer import PackedLinear

HeadKind = Literal["one-of", "each"]


@dataclass(frozen=True, slots=True)
class Head:
    """One question that a classifier answers about a text."""

    name: str
    labels: tuple[str, ...]
    kind: HeadKind
    """``one-of``: the labels exclude each other (softmax); ``each``: every label is binary (sigmoid)."""


REGARD: Final = Head("regard", ("negative", "neutral", "positive", "other"), "one-of")
TOXICITY: Final = Head("toxicity", ("toxic", "identity_attack"), "each")
EMOTION: Final = Head("emotion", ("anger", "fear", "joy", "sadness", "neutral"), "one-of")
INTENSITY: Final = Head("intensity", ("anger", "fear", "joy", "sadness"), "each")
IDEOLOGY: Final = Head("ideology", ("conservative",), "each")
HEADS: Final = (REGARD, TOXICITY, EMOTION, INTENSITY, IDEOLOGY)
"""The heads of the embedded encoder, in the order of its logits."""


def count_logits(heads: tuple[Head, ...] = HEADS) -> int:
    """The total number of logits of all heads.

    >>> count_logits()
    16
    """
    return sum(len(head.labels) for head in heads)


def head_columns(name: str, heads: tuple[Head, ...] = HEADS) -> slice:
    """The columns of the logits of the head ``name``.

    >>> head_columns("toxicity")
    slice(4, 6, None)
    """
    start = 0
    for head in heads:
        if head.name == name:
            return slice(start, start + len(head.labels))
        start += len(head.labels)
    raise KeyError(name)


PAD, UNKNOWN, START, END = range(4)
"""Ids of the special tokens: PAD pads, START opens and END closes every text."""
_EPS = 1e-12


@dataclass(frozen=True, slots=True)
class EncoderShape:
    """Size of an encoder."""

    vocabulary: int
    embedding: int
    """Dimensions that a word is stored in; projected to ``width`` if smaller."""
    width: int = 384
    layers: int = 4
    heads: int = 12
    inner: int = 1536
    positions: int = 256


class EncoderLayer(nn.Module):
    """Attention and feed-forward layer, each normalised after its residual connection."""

    def __init__(self, shape: EncoderShape, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = shape.heads, dropout
        self.qkv = nn.Linear(shape.width, 3 * shape.width)
        self.qkv.weight.muon_parts = 3  # type: ignore[attr-defined]
        self.out = nn.Linear(shape.width, shape.width)
        self.attention_norm = nn.LayerNorm(shape.width, eps=_EPS)
        self.widen = nn.Linear(shape.width, shape.inner)
        self.narrow = nn.Linear(shape.inner, shape.width)
        self.norm = nn.LayerNorm(shape.width, eps=_EPS)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """The layer's output; ``mask`` is False at padding, of shape (rows, 1, 1, length)."""
        rows, length, _ = x.shape
        query, key, value = self.qkv(x).view(rows, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        mixed = self.out(mixed.transpose(1, 2).reshape(rows, length, -1))
        x = self.attention_norm(x + F.dropout(mixed, self.dropout, self.training))
        inner = self.narrow(F.gelu(self.widen(x)))
        return cast(Tensor, self.norm(x + F.dropout(inner, self.dropout, self.training)))


class Encoder(nn.Module):
    """Maps token ids to one state per token."""

    def __init__(self, shape: EncoderShape, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.shape, self.dropout = shape, dropout
        self.words = nn.Embedding(shape.vocabulary, shape.embedding)
        factorised = shape.embedding != shape.width
        self.project = nn.Linear(shape.embedding, shape.width, bias=False) if factorised else nn.Identity()
        self.positions = nn.Embedding(shape.positions, shape.width)
        self.norm = nn.LayerNorm(shape.width, eps=_EPS)
        self.layers = nn.ModuleList(EncoderLayer(shape, dropout) for _ in range(shape.layers))

    def blocks(self) -> nn.ModuleList:
        """The layers, whose matrices are trained with Muon."""
        return self.layers

    def embed(self, ids: Tensor) -> Tensor:
        """The input of the first layer."""
        x = self.norm(self.project(self.words(ids)) + self.positions.weight[: ids.shape[1]])
        return F.dropout(x, self.dropout, self.training)

    def states(self, ids: Tensor) -> list[Tensor]:
        """The embedding and every layer's output, each (rows, length, width); padding has the id `PAD`."""
        mask = (ids != PAD)[:, None, None, :]
        states = [self.embed(ids)]
        for layer in self.layers:
            states.append(layer(states[-1], mask))
        return states

    def forward(self, ids: Tensor) -> Tensor:
        """The last layer's output."""
        return self.states(ids)[-1]


class ClassifierNetwork(nn.Module):
    """An encoder with heads: one forward pass gives the logits of all heads, concatenated."""

    def __init__(self, encoder: Encoder, heads: tuple[Head, ...] = HEADS) -> None:
        super().__init__()
        self.encoder, self.heads = encoder, heads
        size = encoder.shape.width
        self.queries = nn.Parameter(torch.zeros(len(heads), size))
        self.weight = nn.Parameter(torch.randn(count_logits(heads), size) * 0.02)
        self.bias = nn.Parameter(torch.zeros(count_logits(heads)))

    def blocks(self) -> nn.ModuleList:
        """The encoder's layers, whose matrices are trained with Muon."""
        return self.encoder.blocks()

    def forward(self, ids: Tensor) -> Tensor:
        """Logits of shape (rows, labels of all heads)."""
        return self.read(self.encoder(ids), ids != PAD)

    def read(self, states: Tensor, mask: Tensor) -> Tensor:
        """Logits from the encoder's states; ``mask`` is False at padding."""
        pooled = pool_states(states, self.queries.to(states.dtype), mask)
        # Not repeat_interleave: its counts would have to be transferred, which blocks on the GPU.
        parts = zip(torch.split(pooled, 1, dim=1), self.heads, strict=True)
        spread = torch.cat([part.expand(-1, len(head.labels), -1) for part, head in parts], dim=1)
        return (spread * self.weight.to(states.dtype)).sum(-1).float() + self.bias


def pool_states(states: Tensor, queries: Tensor, mask: Tensor) -> Tensor:
    """States averaged with weights softmax(state . query), of shape (rows, queries, width)."""
    scores = (states @ queries.mT).float().masked_fill(~mask[..., None], float("-inf"))
    return scores.softmax(dim=1).to(states.dtype).mT @ states


def to_probabilities(values: Tensor, heads: tuple[Head, ...] = HEADS) -> Tensor:
    """Logits of all heads as probabilities: softmax within a ``one-of`` head, sigmoid in the others."""
    parts = torch.split(values, [len(head.labels) for head in heads], dim=-1)
    shares = [
        part.softmax(-1) if head.kind == "one-of" else part.sigmoid()
        for head, part in zip(heads, parts, strict=True)
    ]
    return torch.cat(shares, dim=-1)


class PackedEncoder:
    """An encoder for inference only: its matrices are packed once, and the original encoder is not kept."""

    def __init__(self, encoder: Encoder) -> None:
        self._words, self._positions = encoder.words.weight, encoder.positions.weight
        self._project = PackedLinear.of(encoder.project) if isinstance(encoder.project, nn.Linear) else None
        self._norm = encoder.norm
        self._layers = [_PackedLayer(layer) for layer in encoder.layers if isinstance(layer, EncoderLayer)]

    def __call__(self, rows: Sequence[Sequence[int]]) -> Iterator[Tensor]:
        """The states of the rows in order; adjacent rows of equal length come as rows x length x width."""
        runs = [(length, len(list(same))) for length, same in groupby(map(len, rows))]
        x = self._embed(rows)
        for layer in self._layers:
            x = layer(x, runs)
        parts = torch.split(x, [length * count for length, count in runs])
        for states, (length, count) in zip(parts, runs, strict=True):
            yield states.view(count, length, -1)

    def _embed(self, rows: Sequence[Sequence[int]]) -> Tensor:
        ids = torch.tensor([token for row in rows for token in row])
        places = torch.tensor([place for row in rows for place in range(len(row))])
        words = F.embedding(ids, self._words)
        x = words if self._project is None else self._project(words)
        return cast(Tensor, self._norm(x.add_(F.embedding(places, self._positions))))


class _PackedLayer:
    """Attention and feed-forward over concatenated texts."""

    def __init__(self, layer: EncoderLayer) -> None:
        self._heads = layer.heads
        self._qkv, self._out = PackedLinear.of(layer.qkv), PackedLinear.of(layer.out)
        self._widen, self._narrow = PackedLinear.of(layer.widen), PackedLinear.of(layer.narrow)
        self._attention_norm, self._norm = layer.attention_norm, layer.norm

    def __call__(self, x: Tensor, runs: Sequence[tuple[int, int]]) -> Tensor:
        """The layer's output; ``runs`` are lengths and the number of adjacent texts with each."""
        mixed = []
        parts = torch.split(self._qkv(x), [length * count for length, count in runs])
        for part, (length, count) in zip(parts, runs, strict=True):
            query, key, value = part.view(count, length, 3, self._heads, -1).permute(2, 0, 3, 1, 4)
            states = F.scaled_dot_product_attention(query, key, value)
            mixed.append(states.transpose(1, 2).reshape(count * length, -1))
        x = self._attention_norm(self._out(torch.cat(mixed)).add_(x))
        return cast(Tensor, self._norm(self._narrow(self._widen.gelu(x)).add_(x)))
