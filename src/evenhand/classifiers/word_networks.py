"""Word-level classifiers beside the LSTM: a bag of words and pairs, attention over an RNN, a transformer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

import torch
from torch import Tensor, nn

FORMAT: Final = "evenhand-words"
"""``model_type`` in the config.json of such a classifier; ``kind`` says which."""
PAD: Final = 0
Kind = Literal["fasttext", "attention", "small-transformer"]
_FAR: Final = -1e9
"""A score so low that a softmax gives padding nothing."""


@dataclass(frozen=True, slots=True)
class WordShape:
    """Sizes of a network over words."""

    rows: int
    """Words, padding and unknown."""
    columns: int
    """Numbers a word."""
    labels: int
    longest: int
    """Words of a text."""
    pairs: int = 0
    """Rows that pairs of words share (fasttext)."""
    layers: int = 1
    dropout: float = 0.0


SIZES: Final[Mapping[Kind, Mapping[str, int | float]]] = {
    "fasttext": {"columns": 10, "pairs": 100_000},
    "attention": {"columns": 100, "dropout": 0.3},
    "small-transformer": {"columns": 128, "layers": 2, "dropout": 0.1},
}
"""What each kind is made of: fastText's own ten columns and hashed pairs (Joulin et al. 2017), 100 units a
direction (Zhou et al. 2016), and a transformer small enough for a few thousand articles."""


class BagNetwork(nn.Module):
    """The mean of the vectors of all words and neighbouring pairs, and a linear layer: fastText's classifier.

    Pairs are hashed into a fixed number of rows; two of them may share one.
    """

    def __init__(self, shape: WordShape) -> None:
        super().__init__()
        self.shape = shape
        self.words = nn.Embedding(shape.rows + shape.pairs, shape.columns, padding_idx=PAD)
        nn.init.uniform_(self.words.weight[PAD + 1 :], -1 / shape.columns, 1 / shape.columns)
        self.head = nn.Linear(shape.columns, shape.labels)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """One logit a label."""
        hashed = (ids[:, :-1] * 1_000_003 + ids[:, 1:]) % self.shape.pairs + self.shape.rows
        both = (mask[:, :-1] > 0) & (mask[:, 1:] > 0)
        tokens = torch.cat([ids, torch.where(both, hashed, PAD)], 1)
        count = (tokens != PAD).sum(1, keepdim=True).clamp(min=1)
        answers: Tensor = self.head(self.words(tokens).sum(1) / count)
        return answers


class AttentionNetwork(nn.Module):
    """A bidirectional LSTM whose states are weighed by attention (Zhou et al. 2016, equations 6 to 12)."""

    def __init__(self, shape: WordShape) -> None:
        super().__init__()
        self.shape = shape
        self.words = nn.Embedding(shape.rows, shape.columns, padding_idx=PAD)
        self.lstm = nn.LSTM(shape.columns, shape.columns, bidirectional=True, batch_first=True)
        self.weights = nn.Linear(shape.columns, 1, bias=False)
        self.dropout = nn.Dropout(shape.dropout)
        self.head = nn.Linear(shape.columns, shape.labels)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """One logit a label."""
        packed = nn.utils.rnn.pack_padded_sequence(
            self.dropout(self.words(ids)), mask.sum(1).cpu(), batch_first=True, enforce_sorted=False
        )
        states, _ = nn.utils.rnn.pad_packed_sequence(
            self.lstm(packed)[0], batch_first=True, total_length=ids.shape[1]
        )
        forward, backward = states.chunk(2, -1)
        both = self.dropout(forward + backward)
        scores = self.weights(both.tanh())[..., 0].masked_fill(mask == 0, _FAR)
        read = (scores.softmax(-1)[:, None] @ both)[:, 0]
        answers: Tensor = self.head(self.dropout(read.tanh()))
        return answers


class SmallTransformer(nn.Module):
    """A transformer encoder trained from nothing (Vaswani et al. 2017), its states averaged."""

    def __init__(self, shape: WordShape) -> None:
        super().__init__()
        self.shape = shape
        self.words = nn.Embedding(shape.rows, shape.columns, padding_idx=PAD)
        layer = nn.TransformerEncoderLayer(
            shape.columns, 4, 4 * shape.columns, shape.dropout, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(
            layer, shape.layers, nn.LayerNorm(shape.columns), enable_nested_tensor=False
        )
        self.head = nn.Linear(shape.columns, shape.labels)
        self.register_buffer("places", sinusoids(shape.longest, shape.columns), persistent=False)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """One logit a label."""
        places: Tensor = self.get_buffer("places")
        states = self.encoder(self.words(ids) + places[: ids.shape[1]], src_key_padding_mask=mask == 0)
        kept = (mask > 0)[..., None]
        read = (states * kept).sum(1) / kept.sum(1).clamp(min=1)
        answers: Tensor = self.head(read)
        return answers


WordNetwork = BagNetwork | AttentionNetwork | SmallTransformer
_NETWORKS: Final[Mapping[Kind, Callable[[WordShape], WordNetwork]]] = {
    "fasttext": BagNetwork,
    "attention": AttentionNetwork,
    "small-transformer": SmallTransformer,
}


def create_network(kind: Kind, shape: WordShape) -> WordNetwork:
    """A fresh network of a kind."""
    return _NETWORKS[kind](shape)


def sinusoids(length: int, width: int) -> Tensor:
    """Rows of sines and cosines that tell places apart (Vaswani et al. 2017, 3.5)."""
    place = torch.arange(length)[:, None]
    rate = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000.0) / width))
    return torch.stack([torch.sin(place * rate), torch.cos(place * rate)], -1).flatten(1)
