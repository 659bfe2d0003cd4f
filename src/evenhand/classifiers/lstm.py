"""A word-level LSTM classifier; how classifiers over words are stored, and how a metric reads with them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, cast

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from evenhand.classifiers.text_classifier import PROBE_TEXT, Probabilities, check_probabilities
from evenhand.classifiers.word_networks import FORMAT as WORDS
from evenhand.classifiers.word_networks import Kind, WordNetwork, WordShape, create_network
from evenhand.core.digests import digest, file_digest
from evenhand.core.records import Execution
from evenhand.core.regular_files import read_text
from evenhand.tensors.batching import batch_by_length
from evenhand.tensors.checkpoints import (
    check_layers,
    load_network,
    our_model_errors,
    read_config,
    read_tensors,
)
from evenhand.tensors.devices import select_device
from evenhand.text.word_tokens import split_words

FORMAT: Final = "evenhand-lstm"
"""``model_type`` in the config.json of such a classifier."""
PAD: Final = 0
UNKNOWN: Final = 1
FIRST: Final = 2
"""The row of the first word; padding and unknown words stand before it."""
_ROWS: Final = 128
_MOST_WORDS: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class LstmShape:
    """Sizes of the network; two layers of 100 units are the regard study's (appendix A.1)."""

    rows: int
    """Words, padding and unknown."""
    columns: int
    """Numbers a word."""
    labels: int
    units: int = 100
    layers: int = 2


class LstmNetwork(nn.Module):
    """Words to vectors, an LSTM over them, a linear layer on the top layer's last state."""

    def __init__(self, shape: LstmShape) -> None:
        super().__init__()
        self.shape = shape
        self.words = nn.Embedding(shape.rows, shape.columns, padding_idx=PAD)
        self.lstm = nn.LSTM(shape.columns, shape.units, num_layers=shape.layers, batch_first=True)
        self.head = nn.Linear(shape.units, shape.labels)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """One logit a label, for ids and mask of shape (texts, words); padding is never read."""
        packed = nn.utils.rnn.pack_padded_sequence(
            self.words(ids), mask.sum(1).cpu(), batch_first=True, enforce_sorted=False
        )
        _, (state, _) = self.lstm(packed)
        answers: Tensor = self.head(state[-1])
        return answers


def encode_words(texts: Sequence[str], index: Mapping[str, int], *, longest: int) -> list[list[int]]:
    """The rows of each text's words, at least one, at most ``longest``.

    >>> encode(["A new word"], {"a": 2, "new": 3}, longest=9)
    [[2, 3, 1]]
    """
    return [[index.get(word, UNKNOWN) for word in split_words(text)[:longest]] or [UNKNOWN] for text in texts]


def save_word_network(
    network: LstmNetwork | WordNetwork,
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
        **({"model_type": FORMAT} if kind is None else {"model_type": WORDS, "kind": kind}),
        "shape": asdict(network.shape),
        "id2label": dict(enumerate(labels)),
        "longest": longest,
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")


class WordClassifier:
    """A stored classifier over words, as a metric asks it."""

    def __init__(self, folder: Path, execution: Execution) -> None:
        config = read_config(folder)
        check_layers(config, str(folder))
        self._device, self._rows = select_device(execution.device), execution.batch or _ROWS
        with our_model_errors(folder):
            tensors = read_tensors([folder / "model.safetensors"])
            self._network = load_network(lambda: _network(config), tensors, str(folder))
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
            check_probabilities(self.read([PROBE_TEXT]))
        files = ("config.json", "model.safetensors", "vocab.txt")
        self.digest = digest([file_digest(folder / name) for name in files])

    def read(self, texts: Sequence[str]) -> Probabilities:
        """One row a text, one column a label."""
        rows = encode_words(texts, self._index, longest=self._longest)
        found = np.zeros((len(rows), len(self.labels)), dtype=np.float32)
        with torch.inference_mode():
            for batch in batch_by_length([len(row) for row in rows], rows=self._rows):
                ids = nn.utils.rnn.pad_sequence(
                    [torch.tensor(rows[place]) for place in batch], batch_first=True, padding_value=PAD
                ).to(self._device)
                found[batch] = self._network(ids, ids != PAD).softmax(-1).cpu().numpy()
        return found


def _longest(value: object) -> int:
    """How many words of a text are read."""
    if not isinstance(value, int) or not 0 < value <= _MOST_WORDS:
        raise ValueError(f"longest is {value!r:.40}")
    return value


def _network(config: Mapping[str, object]) -> LstmNetwork | WordNetwork:
    shape = cast("Mapping[str, int]", config["shape"])
    if config["model_type"] == FORMAT:
        return LstmNetwork(LstmShape(**shape))
    _longest(shape["longest"])
    return create_network(cast(Kind, config["kind"]), WordShape(**shape))
