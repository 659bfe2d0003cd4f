"""The LSTM of the regard study as something to train: its words, and vectors they may start from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import torch
from torch import nn

from evenhand.core.digests import digest
from evenhand.core.file_names import user_path
from evenhand.neural import lstm
from evenhand.neural.lstm import FIRST, PAD, LstmNetwork, LstmShape
from evenhand.text.vectors import WordVectors, embedded_vectors, read_vectors
from evenhand.training.finetune import Padding
from evenhand.training.word_networks import vocabulary

COLUMNS: Final = 100
"""Numbers a word where no vectors are given."""
EMBEDDED: Final = "embedded"


class LstmBackbone:
    """A fresh LSTM over the words of the training texts; vectors, where given, are tuned with the rest.

    A word of the training texts that the vectors do not have starts at random, like all words without them;
    words that no training text has are one unknown word.
    """

    def __init__(
        self, texts: Sequence[str], labels: Sequence[str], *, vectors: str = "", longest: int, seed: int = 0
    ) -> None:
        self._vocabulary = vocabulary(texts, longest=longest)
        self._labels, self.longest = tuple(labels), longest
        known = open_vectors(vectors)
        columns = known.matrix.shape[1] if known is not None else COLUMNS
        shape = LstmShape(len(self._vocabulary) + FIRST, columns, len(labels))
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self._network = LstmNetwork(shape)
        self.known = _start(self._network, self._vocabulary, known) if known is not None else 0
        self.revision = f"random, seed {seed}" if known is None else f"vectors {known.digest}, seed {seed}"
        self.padding = Padding(PAD)
        self.network: nn.Module = self._network

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The rows of each text's words."""
        index = {word: row for row, word in enumerate(self._vocabulary, start=FIRST)}
        return lstm.encode(texts, index, longest=self.longest)

    def save(self, folder: Path) -> None:
        """Write the network as a metric loads it."""
        lstm.save(
            self._network, folder, vocabulary=self._vocabulary, labels=self._labels, longest=self.longest
        )


def open_vectors(name: str) -> WordVectors | None:
    """The vectors of a name: none where it is empty, ``embedded``, or a file of any known format."""
    if not name:
        return None
    return embedded_vectors() if name == EMBEDDED else read_vectors(user_path(name))


def vectors_identity(name: str) -> str:
    """What identifies the vectors of a name."""
    found = open_vectors(name)
    return "" if found is None else found.digest or digest(list(found.words))


def _start(network: LstmNetwork, vocabulary: Sequence[str], vectors: WordVectors) -> int:
    """Put the vectors of known words in the network, scaled to the spread of the random ones; how many."""
    scale = 1.0 / max(float(vectors.matrix.std()), 1e-6)
    places = [(row, vectors.find(word)) for row, word in enumerate(vocabulary, start=FIRST)]
    found = [(row, place) for row, place in places if place >= 0]
    if found:
        rows, theirs = (list(part) for part in zip(*found, strict=True))
        with torch.no_grad():
            start = np.ascontiguousarray(vectors.matrix[theirs]) * np.float32(scale)
            network.words.weight[torch.tensor(rows)] = torch.from_numpy(start)
    return len(found)
