"""What the sampling loops ask of a model: write rows token by token, or fill single places of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor


class PrefillState(NamedTuple):
    """Tokens already read, as a row of what was read together."""

    length: int
    read: object
    """What the engine keeps of all those rows, for its own batches. Not cut apart: on a GPU a view of each
    row and layer costs more than reading the row."""
    row: int = 0


class DecoderOutput(NamedTuple):
    """What a model says after the last token of each row."""

    hidden: Tensor
    """Rows x width: the last hidden states, as the output table sees them."""
    logits: Tensor
    """Rows x vocabulary, in float32; ``StaticKVCache.advance`` may keep the model's own precision."""


class KVCache(Protocol):
    """Rows that are written side by side; none sees another."""

    def fill(self, rows: Sequence[int], prefixes: Sequence[PrefillState]) -> None:
        """Begin each of those rows with a prefix; a row just after the last one is added."""
        ...

    def keep(self, rows: Sequence[int]) -> None:
        """Drop all rows but these, the first of which becomes row 0, and so on."""
        ...

    def step(self, tokens: Tensor) -> DecoderOutput:
        """Append one token to every row and say what may follow."""
        ...


class StaticKVCache(KVCache, Protocol):
    """A batch in static tables, so that its step can be captured (ADR 31).

    The first captured step is compared with the eager ``step`` before any text is written.
    """

    @property
    def bytes(self) -> int:
        """The memory its tables take."""
        ...

    def padded_length(self, longest: int) -> int:
        """The ``longest`` of the captured step that serves rows of up to this many tokens."""
        ...

    def advance(self, tokens: Tensor, positions: Tensor, *, longest: int) -> DecoderOutput:
        """A step of the first rows, whose tokens stand at these positions, below ``longest``.

        It neither reads from the device nor sends to it; ``count_token`` updates the lengths.
        """
        ...

    def count_token(self) -> None:
        """Count the tokens that ``advance`` has appended, one to every row."""
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

    def prefill(self, rows: Sequence[Sequence[int]]) -> list[PrefillState]:
        """Read each row of tokens once; an empty row gives an empty prefix."""
        ...

    def create_cache(self, rows: int, length: int) -> KVCache:
        """An empty batch for at most ``rows`` rows of at most ``length`` tokens."""
        ...

    def log_probs(self, rows: Sequence[Sequence[int]]) -> list[Tensor]:
        """For each row of two tokens or more the natural log-probability of every token but the first."""
        ...

    def lm_head(self) -> tuple[Tensor, Tensor | None]:
        """The output table (vocabulary x width) and its bias; an error where logits are no such product."""
        ...

    def hidden_states(self, rows: Sequence[Sequence[int]]) -> Iterator[Tensor]:
        """For each row, in order, its last hidden states (tokens x width); empty where it has no tokens."""
        ...


@runtime_checkable
class StaticCacheEngine(Protocol):
    """An engine that has such batches."""

    def create_static_cache(self, rows: int, length: int) -> StaticKVCache | None:
        """An empty one; None where this model's cannot stay in place."""
        ...


class MaskedEngine(Protocol):
    """A masked language model that fills places in rows of tokens."""

    @property
    def context(self) -> int:
        """The longest row in tokens, the special ones included."""
        ...

    @property
    def device(self) -> torch.device:
        """Where its tensors are."""
        ...

    def logits(self, tokens: Tensor, lengths: Tensor, places: Tensor) -> Tensor:
        """What may stand at one place of each row, rows x vocabulary in float32.

        Args:
            tokens: Rows x columns; cells beyond a row's length are not read.
            lengths: The tokens of each row.
            places: The column of each row whose scores are wanted.
        """
        ...
