"""Word-level classifiers: an LSTM, a bag of words and bigrams, attention over an RNN, a transformer.

Their architectures, file format, and the reader for metrics.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, cast

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from evenhand.classifiers.text_classifier import Probabilities, check_answers
from evenhand.core.digests import digest, file_digest
from evenhand.core.records import Execution
from evenhand.core.regular_files import read_text
from evenhand.tensors import checkpoints
from evenhand.tensors.batching import batch_by_length, pad_rows
from evenhand.tensors.devices import select_device
from evenhand.text.word_tokens import split_words

LSTM_FORMAT: Final = "evenhand-lstm"
FORMAT: Final = "evenhand-words"
"""``model_type`` in the config.json of an LSTM, and of the others, whose ``kind`` distinguishes them."""
PAD: Final = 0
UNKNOWN: Final = 1
FIRST: Final = 2
"""The row of the first word; padding and the unknown word come before it."""
Kind = Literal["fasttext", "attention", "small-transformer"]
_FAR: Final = -1e9
"""A score so low that softmax gives padding a weight of zero."""
_ROWS: Final = 128
_MOST_WORDS: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class WordShape:
    """Sizes of a word-level network."""

    rows: int
    """Vocabulary size, with padding and the unknown word."""
    columns: int
    """Embedding width."""
    labels: int
    longest: int
    """Maximum number of words per text."""
    pairs: int = 0
    """Number of rows that hashed bigrams share (fasttext)."""
    layers: int = 1
    dropout: float = 0.0


SIZES: Final[Mapping[Kind, Mapping[str, Any]]] = {
    "fasttext": {"columns": 10, "pairs": 100_000},
    "attention": {"columns": 100, "dropout": 0.3},
    "small-transformer": {"columns": 128, "layers": 2, "dropout": 0.1},
}
"""Sizes of each kind: fastText's own ten columns and hashed bigrams (Joulin et al. 2017), 100 units
per direction (Zhou et al. 2016), and a transformer small enough for a few thousand articles."""


@dataclass(frozen=True, slots=True)
class LstmShape:
    """Sizes of the network; two layers of 100 units are the regard study's (appendix A.1)."""

    rows: int
    """Vocabulary size, with padding and the unknown word."""
    columns: int
    """Embedding width."""
    labels: int
    units: int = 100
    layers: int = 2


_pack = partial(pack_padded_sequence, batch_first=True, enforce_sorted=False)


class LstmNetwork(nn.Module):
    """Word embeddings, an LSTM over them, and a linear layer on the top layer's last state."""

    def __init__(self, shape: LstmShape) -> None:
        super().__init__()
        self.shape = shape
        self.words = nn.Embedding(shape.rows, shape.columns, padding_idx=PAD)
        self.lstm = nn.LSTM(shape.columns, shape.units, num_layers=shape.layers, batch_first=True)
        self.head = nn.Linear(shape.units, shape.labels)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """One logit per label, for ids and mask of shape (texts, words); padding is ignored."""
        _, (state, _) = self.lstm(_pack(self.words(ids), mask.sum(1).cpu()))
        return cast(Tensor, self.head(state[-1]))


class BagNetwork(nn.Module):
    """The mean embedding of all words and bigrams, and a linear layer: fastText's classifier.

    Bigrams are hashed into a fixed number of rows, so two of them may share one.
    """

    def __init__(self, shape: WordShape) -> None:
        super().__init__()
        self.shape = shape
        self.words = nn.Embedding(shape.rows + shape.pairs, shape.columns, padding_idx=PAD)
        nn.init.uniform_(self.words.weight[PAD + 1 :], -1 / shape.columns, 1 / shape.columns)
        self.head = nn.Linear(shape.columns, shape.labels)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """One logit per label."""
        hashed = (ids[:, :-1] * 1_000_003 + ids[:, 1:]) % self.shape.pairs + self.shape.rows
        both = (mask[:, :-1] > 0) & (mask[:, 1:] > 0)
        tokens = torch.cat([ids, torch.where(both, hashed, PAD)], 1)
        count = (tokens != PAD).sum(1, keepdim=True).clamp(min=1)
        return cast(Tensor, self.head(self.words(tokens).sum(1) / count))


class AttentionNetwork(nn.Module):
    """A bidirectional LSTM whose states are weighted by attention (Zhou et al. 2016, equations 6 to 12)."""

    def __init__(self, shape: WordShape) -> None:
        super().__init__()
        self.shape = shape
        self.words = nn.Embedding(shape.rows, shape.columns, padding_idx=PAD)
        self.lstm = nn.LSTM(shape.columns, shape.columns, bidirectional=True, batch_first=True)
        self.weights = nn.Linear(shape.columns, 1, bias=False)
        self.dropout = nn.Dropout(shape.dropout)
        self.head = nn.Linear(shape.columns, shape.labels)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """One logit per label."""
        states, _ = self.lstm(_pack(self.dropout(self.words(ids)), mask.sum(1).cpu()))
        states, _ = pad_packed_sequence(states, batch_first=True, total_length=ids.shape[1])
        forward, backward = states.chunk(2, -1)
        both = self.dropout(forward + backward)
        scores = self.weights(both.tanh())[..., 0].masked_fill(mask == 0, _FAR)
        read = (scores.softmax(-1)[:, None] @ both)[:, 0]
        return cast(Tensor, self.head(self.dropout(read.tanh())))


class SmallTransformer(nn.Module):
    """A transformer encoder trained from scratch (Vaswani et al. 2017), with its states averaged."""

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
        """One logit per label."""
        places: Tensor = self.get_buffer("places")
        states = self.encoder(self.words(ids) + places[: ids.shape[1]], src_key_padding_mask=mask == 0)
        is_word = (mask > 0)[..., None]
        read = (states * is_word).sum(1) / is_word.sum(1).clamp(min=1)
        return cast(Tensor, self.head(read))


WordNetwork = LstmNetwork | BagNetwork | AttentionNetwork | SmallTransformer
NETWORKS: Final[Mapping[Kind, Callable[[WordShape], WordNetwork]]] = {
    "fasttext": BagNetwork,
    "attention": AttentionNetwork,
    "small-transformer": SmallTransformer,
}


def sinusoids(length: int, width: int) -> Tensor:
    """Sinusoidal position embeddings (Vaswani et al. 2017, 3.5)."""
    place = torch.arange(length)[:, None]
    rate = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000.0) / width))
    return torch.stack([torch.sin(place * rate), torch.cos(place * rate)], -1).flatten(1)


def encode_words(texts: Sequence[str], index: Mapping[str, int], *, longest: int) -> list[list[int]]:
    """The embedding rows of each text's words, at least one, at most ``longest``.

    >>> encode_words(["A new word"], {"a": 2, "new": 3}, longest=9)
    [[2, 3, 1]]
    """
    return [[index.get(word, UNKNOWN) for word in split_words(text)[:longest]] or [UNKNOWN] for text in texts]


def save_word_network(
    network: WordNetwork,
    folder: Path,
    *,
    vocabulary: Sequence[str],
    labels: Sequence[str],
    longest: int,
    kind: Kind | None = None,
) -> None:
    """Write ``model.safetensors``, ``vocab.txt`` and ``config.json``; ``kind`` is None for the LSTM."""
    weights = {name: value.detach().cpu().contiguous() for name, value in network.state_dict().items()}
    save_file(weights, folder / "model.safetensors")
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    config = {
        **({"model_type": LSTM_FORMAT} if kind is None else {"model_type": FORMAT, "kind": kind}),
        "shape": asdict(network.shape),
        "id2label": dict(enumerate(labels)),
        "longest": longest,
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")


class WordClassifier:
    """A stored word-level classifier, with the interface that metrics use."""

    def __init__(self, folder: Path, execution: Execution) -> None:
        config = checkpoints.read_config(folder)
        checkpoints.check_config(config, str(folder))
        self._device, self._rows = select_device(execution.device), execution.batch or _ROWS
        with checkpoints.our_model_errors(folder):
            tensors = checkpoints.read_tensors([folder / "model.safetensors"])
            self._network = checkpoints.load_network(lambda: _network(config), tensors, str(folder))
            self._network.eval().to(self._device).requires_grad_(False)
            vocabulary = read_text(folder / "vocab.txt").split("\n")[:-1]
            self._index = {word: row for row, word in enumerate(vocabulary, start=FIRST)}
            self._longest = _longest(config["longest"])
            self.labels = tuple(cast("Mapping[str, str]", config["id2label"]).values())
            if (
                len(self.labels) != self._network.shape.labels
                or FIRST + len(vocabulary) > self._network.shape.rows
            ):
                raise ValueError(f"{len(vocabulary)} words and {len(self.labels)} labels for other weights")
            check_answers(self.read)
        files = ("config.json", "model.safetensors", "vocab.txt")
        self.digest = digest([file_digest(folder / name) for name in files])

    def read(self, texts: Sequence[str]) -> Probabilities:
        """One row per text, one column per label."""
        rows = encode_words(texts, self._index, longest=self._longest)
        answers = np.zeros((len(rows), len(self.labels)), dtype=np.float32)
        with torch.inference_mode():
            for batch in batch_by_length([len(row) for row in rows], rows=self._rows):
                ids = pad_rows([rows[place] for place in batch], device=self._device, filler=PAD)
                answers[batch] = self._network(ids, ids != PAD).softmax(-1).cpu().numpy()
        return answers


def _longest(value: object) -> int:
    """The maximum number of words read per text."""
    if not isinstance(value, int) or not 0 < value <= _MOST_WORDS:
        raise ValueError(f"longest is {value!r:.40}")
    return value


def _network(config: Mapping[str, object]) -> WordNetwork:
    shape = cast("Mapping[str, int]", config["shape"])
    if config["model_type"] == LSTM_FORMAT:
        return LstmNetwork(LstmShape(**shape))
    _longest(shape["longest"])
    return NETWORKS[cast(Kind, config["kind"])](WordShape(**shape))
