"""Interfaces of models for the sampling loops: causal decoding and masked prediction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor


class PrefillState(NamedTuple):
    """A prefilled prompt: one row of a jointly prefilled batch."""

    length: int
    read: object
    """The engine's own state of the whole prefilled batch. It is not split: on a GPU a view of each row and
    layer costs more than prefilling the row."""
    row: int = 0


class DecoderOutput(NamedTuple):
    """The output of a model after the last token of each row."""

    hidden: Tensor
    """Rows x width: the last hidden states, the input of the LM head."""
    logits: Tensor
    """Rows x vocabulary, in float32; ``StaticKVCache.advance`` may use the model's precision."""


class KVCache(Protocol):
    """The key-value cache of a batch of independent rows."""

    def fill(self, rows: Sequence[int], prefixes: Sequence[PrefillState]) -> None:
        """Start these rows from their prefixes; a row right after the last one is appended."""
        ...

    def keep(self, rows: Sequence[int]) -> None:
        """Keep only these rows, renumbered in this order."""
        ...

    def step(self, tokens: Tensor) -> DecoderOutput:
        """Append one token to every row and return the next output."""
        ...


class StaticKVCache(KVCache, Protocol):
    """A cache in static tensors, so that its step can be captured (ADR 31).

    The first captured step is compared with the eager ``step`` before any text is generated.
    """

    @property
    def bytes(self) -> int:
        """The memory of its tensors."""
        ...

    def padded_length(self, longest: int) -> int:
        """The ``longest`` of the captured step for rows of up to this many tokens."""
        ...

    def advance(self, tokens: Tensor, positions: Tensor, *, longest: int) -> DecoderOutput:
        """Run a step of the first rows, with tokens at these positions, below ``longest``.

        It transfers nothing from or to the device; ``count_token`` updates the lengths.
        """
        ...

    def count_token(self) -> None:
        """Count the tokens that ``advance`` appended, one per row."""
        ...


class Engine(Protocol):
    """A causal language model: token ids in, logits out."""

    @property
    def context(self) -> int:
        """The maximum row length in tokens."""
        ...

    @property
    def device(self) -> torch.device:
        """The device of its tensors."""
        ...

    def prefill(self, rows: Sequence[Sequence[int]]) -> list[PrefillState]:
        """Prefill each row of tokens once; an empty row gives an empty prefix."""
        ...

    def create_cache(self, rows: int, length: int) -> KVCache:
        """An empty cache for at most ``rows`` rows of at most ``length`` tokens."""
        ...

    def create_static_cache(self, rows: int, length: int) -> StaticKVCache | None:
        """The same in static tensors; None if this model's cache cannot be static."""
        ...

    def log_probs(self, rows: Sequence[Sequence[int]]) -> list[Tensor]:
        """The natural log-probability of every token but the first, for each row of at least two tokens."""
        ...

    def lm_head(self) -> tuple[Tensor, Tensor | None]:
        """The output matrix (vocabulary x width) and its bias; an error if logits are not such a product."""
        ...

    def hidden_states(self, rows: Sequence[Sequence[int]]) -> Iterator[Tensor]:
        """The last hidden states of each row, in order (tokens x width); empty if it has no tokens."""
        ...


class MaskedEngine(Protocol):
    """A masked language model: token ids in, logits at one position per row out."""

    @property
    def context(self) -> int:
        """The maximum row length in tokens, including special tokens."""
        ...

    @property
    def device(self) -> torch.device:
        """The device of its tensors."""
        ...

    def logits(self, tokens: Tensor, lengths: Tensor, places: Tensor) -> Tensor:
        """The logits at one position of each row, rows x vocabulary in float32.

        Args:
            tokens: Rows x columns; cells beyond a row's length are not read.
            lengths: The number of tokens of each row.
            places: The column of each row for which to compute logits.
        """
        ...
