"""Classifiers over words as something to train: their vocabulary, and how they are stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import torch
from torch import nn

from evenhand.neural import lstm
from evenhand.neural.lstm import FIRST, PAD
from evenhand.neural.word_networks import SIZES, Kind, WordShape, network_of
from evenhand.text.tokens import words
from evenhand.training.finetune import Padding

KINDS: tuple[Kind, ...] = get_args(Kind)


class WordBackbone:
    """A fresh network of a kind over the words of the training texts; other words are one unknown word."""

    def __init__(
        self, kind: Kind, texts: Sequence[str], labels: Sequence[str], *, longest: int, seed: int = 0
    ) -> None:
        self._kind, self._labels, self.longest = kind, tuple(labels), longest
        self._vocabulary = vocabulary(texts, longest=longest)
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
            self._network = network_of(kind, shape)
        self.revision = f"random, seed {seed}"
        self.padding = Padding(PAD)
        self.network: nn.Module = self._network

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The rows of each text's words."""
        return lstm.encode(texts, self._index, longest=self.longest)

    def save(self, folder: Path) -> None:
        """Write the network as a metric loads it."""
        lstm.save(
            self._network,
            folder,
            vocabulary=self._vocabulary,
            labels=self._labels,
            longest=self.longest,
            kind=self._kind,
        )


def vocabulary(texts: Sequence[str], *, longest: int) -> list[str]:
    """The words within the first ``longest`` of each text, most frequent first."""
    counts = Counter(word for text in texts for word in words(text)[:longest])
    return sorted(counts, key=lambda word: (-counts[word], word))
