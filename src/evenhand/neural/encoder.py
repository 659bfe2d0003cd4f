"""The encoder behind the embedded classifiers, in plain torch: BERT's layers over factorised word vectors.

It is BERT's architecture (post-norm, exact GELU, learned positions) with two changes: words may be stored in
fewer dimensions than the layers use, and each head pools the states with its own attention, all zeros being
the mean.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from evenhand.neural.heads import HEADS, Head, width

PAD, UNKNOWN, START, END = range(4)
"""Ids of the special tokens: PAD fills, START opens and END closes every text."""
_EPS = 1e-12


@dataclass(frozen=True, slots=True)
class EncoderShape:
    """Size of an encoder."""

    vocabulary: int
    embedding: int
    """Dimensions a word is stored in; projected to ``width`` where smaller."""
    width: int = 384
    layers: int = 4
    heads: int = 12
    inner: int = 1536
    positions: int = 256

    def to_json(self) -> dict[str, int]:
        """The sizes by name."""
        return asdict(self)


class Layer(nn.Module):
    """Attention and feed-forward, each normalised after its residual."""

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
        """The layer's output; ``mask`` is False where a row is padded, of shape (rows, 1, 1, length)."""
        rows, length, _ = x.shape
        query, key, value = self.qkv(x).view(rows, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        x = self.attention_norm(x + self._drop(self.out(mixed.transpose(1, 2).reshape(rows, length, -1))))
        inner: Tensor = self.norm(x + self._drop(self.narrow(F.gelu(self.widen(x)))))
        return inner

    def _drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training)


class Encoder(nn.Module):
    """Token ids in, one state a token out."""

    def __init__(self, shape: EncoderShape, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.shape, self.dropout = shape, dropout
        self.words = nn.Embedding(shape.vocabulary, shape.embedding)
        factorised = shape.embedding != shape.width
        self.project = nn.Linear(shape.embedding, shape.width, bias=False) if factorised else nn.Identity()
        self.positions = nn.Embedding(shape.positions, shape.width)
        self.norm = nn.LayerNorm(shape.width, eps=_EPS)
        self.layers = nn.ModuleList(Layer(shape, dropout) for _ in range(shape.layers))

    def blocks(self) -> nn.ModuleList:
        """The layers, whose matrices Muon trains."""
        return self.layers

    def embed(self, ids: Tensor) -> Tensor:
        """The input of the first layer."""
        x = self.norm(self.project(self.words(ids)) + self.positions.weight[: ids.shape[1]])
        return F.dropout(x, self.dropout, self.training)

    def states(self, ids: Tensor) -> list[Tensor]:
        """The embedding and every layer's output, each (rows, length, width); padding is told by its id."""
        mask = (ids != PAD)[:, None, None, :]
        found = [self.embed(ids)]
        for layer in self.layers:
            found.append(layer(found[-1], mask))
        return found

    def forward(self, ids: Tensor) -> Tensor:
        """The last layer's output."""
        return self.states(ids)[-1]


class ClassifierNetwork(nn.Module):
    """An encoder with heads: one forward pass, the logits of every head side by side."""

    def __init__(self, encoder: Encoder, heads: tuple[Head, ...] = HEADS) -> None:
        super().__init__()
        self.encoder, self.heads = encoder, heads
        size = encoder.shape.width
        self.queries = nn.Parameter(torch.zeros(len(heads), size))
        self.weight = nn.Parameter(torch.randn(width(heads), size) * 0.02)
        self.bias = nn.Parameter(torch.zeros(width(heads)))

    def blocks(self) -> nn.ModuleList:
        """The encoder's layers, whose matrices Muon trains."""
        return self.encoder.blocks()

    def forward(self, ids: Tensor) -> Tensor:
        """Logits of shape (rows, labels of all heads)."""
        return self.read(self.encoder(ids), ids != PAD)

    def read(self, states: Tensor, mask: Tensor) -> Tensor:
        """Logits from the encoder's states; ``mask`` is False where a row is padded."""
        pooled = pool(states, self.queries.to(states.dtype), mask)
        # Not repeat_interleave: its counts would have to be sent, and a GPU waited for.
        parts = zip(torch.split(pooled, 1, dim=1), self.heads, strict=True)
        spread = torch.cat([part.expand(-1, len(head.labels), -1) for part, head in parts], dim=1)
        return (spread * self.weight.to(states.dtype)).sum(-1).float() + self.bias


def pool(states: Tensor, queries: Tensor, mask: Tensor) -> Tensor:
    """States averaged with weights softmax(state . query), of shape (rows, queries, width)."""
    scores = (states @ queries.mT).float().masked_fill(~mask[..., None], float("-inf"))
    return scores.softmax(dim=1).to(states.dtype).mT @ states


def mean(states: Tensor, mask: Tensor) -> Tensor:
    """The mean state of each row, padding left out: MiniLM's sentence vector before it is normalised."""
    kept = mask[..., None].to(states.dtype)
    return (states * kept).sum(1) / kept.sum(1)


def probabilities(values: Tensor, heads: tuple[Head, ...] = HEADS) -> Tensor:
    """Logits of all heads as probabilities: softmax within a ``one-of`` head, sigmoid in the others."""
    parts = torch.split(values, [len(head.labels) for head in heads], dim=-1)
    return torch.cat(
        [
            part.softmax(-1) if head.kind == "one-of" else part.sigmoid()
            for head, part in zip(heads, parts, strict=True)
        ],
        dim=-1,
    )
