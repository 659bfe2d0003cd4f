"""Classifiers over words as something to train: their vocabulary, and how they are stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final, get_args

import numpy as np
import torch
from torch import nn

from evenhand.classifiers import lstm
from evenhand.classifiers.lstm import FIRST, PAD, LstmNetwork, LstmShape
from evenhand.classifiers.word_networks import SIZES, Kind, WordShape, create_network
from evenhand.core.digests import digest
from evenhand.core.files import user_path
from evenhand.text.word_tokens import split_words
from evenhand.text.word_vectors import WordVectors, load_embedded_vectors, read_vectors
from evenhand.training.finetuning import Padding

KINDS: tuple[Kind, ...] = get_args(Kind)


class WordBackbone:
    """A fresh network of a kind over the words of the training texts; other words are one unknown word."""

    def __init__(
        self, kind: Kind, texts: Sequence[str], labels: Sequence[str], *, longest: int, seed: int = 0
    ) -> None:
        self._kind, self._labels, self.longest = kind, tuple(labels), longest
        self._vocabulary = build_vocabulary(texts, longest=longest)
        self._index = {word: row for row, word in enumerate(self._vocabulary, start=FIRST)}
        sizes = {name: size for name, size in SIZES[kind].items() if isinstance(size, int)}
        shape = WordShape(
            rows=len(self._vocabulary) + FIRST,
            labels=len(labels),
            longest=longest,
            dropout=SIZES[kind].get("dropout", 0.0),
            **sizes,
        )
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self._network = create_network(kind, shape)
        self.revision = f"random, seed {seed}"
        self.padding = Padding(PAD)
        self.network: nn.Module = self._network

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The rows of each text's words."""
        return lstm.encode_words(texts, self._index, longest=self.longest)

    def save(self, folder: Path) -> None:
        """Write the network as a metric loads it."""
        lstm.save_word_network(
            self._network,
            folder,
            vocabulary=self._vocabulary,
            labels=self._labels,
            longest=self.longest,
            kind=self._kind,
        )


def build_vocabulary(texts: Sequence[str], *, longest: int) -> list[str]:
    """The words within the first ``longest`` of each text, most frequent first."""
    counts = Counter(word for text in texts for word in split_words(text)[:longest])
    return sorted(counts, key=lambda word: (-counts[word], word))


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
        self._vocabulary = build_vocabulary(texts, longest=longest)
        self._labels, self.longest = tuple(labels), longest
        known = load_vectors(vectors)
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
        return lstm.encode_words(texts, index, longest=self.longest)

    def save(self, folder: Path) -> None:
        """Write the network as a metric loads it."""
        lstm.save_word_network(
            self._network, folder, vocabulary=self._vocabulary, labels=self._labels, longest=self.longest
        )


def load_vectors(name: str) -> WordVectors | None:
    """The vectors of a name: none where it is empty, ``embedded``, or a file of any known format."""
    if not name:
        return None
    return load_embedded_vectors() if name == EMBEDDED else read_vectors(user_path(name))


def vectors_identity(name: str) -> str:
    """What identifies the vectors of a name."""
    found = load_vectors(name)
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
