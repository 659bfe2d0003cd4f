"""What the sampling loop asks of a causal language model: read prompts, then write rows token by token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor


class Prefix(NamedTuple):
    """Tokens already read: their keys and values, layer by layer, each heads x length x size."""

    length: int
    layers: tuple[tuple[Tensor, Tensor], ...]


class Output(NamedTuple):
    """What a model says after the last token of each row."""

    hidden: Tensor
    """Rows x width: the last hidden states, as the output table sees them."""
    logits: Tensor
    """Rows x vocabulary, in float32."""


class Batch(Protocol):
    """Rows that are written side by side; none sees another."""

    def fill(self, rows: Sequence[int], prefixes: Sequence[Prefix]) -> None:
        """Begin each of those rows with a prefix; a row just after the last one is added."""
        ...

    def keep(self, rows: Sequence[int]) -> None:
        """Drop all rows but these, which are in increasing order."""
        ...

    def step(self, tokens: Tensor) -> Output:
        """Append one token to every row and say what may follow."""
        ...


class Engine(Protocol):
    """A causal language model that reads and writes tokens."""

    @property
    def context(self) -> int:
        """The longest row in tokens."""
        ...

    @property
    def device(self) -> torch.device:
        """Where its tensors are."""
        ...

    def prefill(self, rows: Sequence[Sequence[int]]) -> list[Prefix]:
        """Read each row of tokens once; an empty row gives an empty prefix."""
        ...

    def batch(self, rows: int, length: int) -> Batch:
        """An empty batch for at most ``rows`` rows of at most ``length`` tokens."""
        ...

    def log_probs(self, rows: Sequence[Sequence[int]]) -> list[Tensor]:
        """For each row of two tokens or more the natural log-probability of every token but the first."""
        ...

    def output(self) -> tuple[Tensor, Tensor | None]:
        """The output table (vocabulary x width) and its bias; an error where logits are no such product."""
        ...

    def hidden_states(self, rows: Sequence[Sequence[int]]) -> Iterator[Tensor]:
        """For each row, in order, its last hidden states (tokens x width); empty where it has no tokens."""
        ...
