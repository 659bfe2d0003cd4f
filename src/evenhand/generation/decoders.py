"""Decoders generate the next token of every row: the model's step, steering, and sampling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from evenhand.core.protocols import Candidates, LogitsProcessor, Step
from evenhand.core.records import GenerationSpec
from evenhand.generation.engine import KVCache, PrefillState
from evenhand.generation.sampling import apply_repetition_penalty, at_drawn, choose_tokens
from evenhand.generation.sequences import TokenSequence


class Decoder(Protocol):
    """Generates the tokens of a batch of rows."""

    def fill(
        self, places: Sequence[int], rows: Sequence[TokenSequence], prefixes: Sequence[PrefillState]
    ) -> None:
        """Start rows from their prefixes; a slot right after the last one is appended."""
        ...

    def keep(self, places: Sequence[int]) -> None:
        """Keep only the rows at these slots, renumbered in this order."""
        ...

    def launch(self, rows: Sequence[TokenSequence]) -> None:
        """Launch the next token of each row without waiting for the device."""
        ...

    def sync(self) -> Sequence[int | None]:
        """The launched tokens, ``NO_TOKEN`` if there is no valid distribution.

        None marks a row whose first token arrives with the next call.
        """
        ...


class EagerDecoder:
    """Decodes step by step without graphs, on any engine and device."""

    def __init__(
        self, batch: KVCache, guide: LogitsProcessor | None, spec: GenerationSpec, device: torch.device
    ) -> None:
        self._batch, self._guide, self._spec, self._device = batch, guide, spec, device

    def fill(
        self, places: Sequence[int], rows: Sequence[TokenSequence], prefixes: Sequence[PrefillState]
    ) -> None:
        """Start rows from their prefixes."""
        self._batch.fill(places, prefixes)

    def keep(self, places: Sequence[int]) -> None:
        """Keep only the rows at these slots."""
        self._batch.keep(places)

    def launch(self, rows: Sequence[TokenSequence]) -> None:
        """Launch the next token of each row."""
        last = torch.tensor([row.last for row in rows], device=self._device)
        output = self._batch.step(last)
        uniforms = torch.tensor([row.uniform for row in rows], dtype=torch.float64, device=self._device)
        candidates = Candidates(output.logits)
        if self._guide is not None:
            numbers = [row.number for row in rows]
            candidates = self._guide(Step(output.hidden, output.logits, numbers, last, uniforms))
        self._tokens = sample_tokens(candidates, uniforms, rows, self._spec)

    def sync(self) -> list[int]:
        """The launched tokens."""
        tokens: list[int] = self._tokens.tolist()
        return tokens


def sample_tokens(
    candidates: Candidates, uniforms: Tensor, rows: Sequence[TokenSequence], spec: GenerationSpec
) -> Tensor:
    """Sample the next tokens."""
    logits = candidates.logits
    if spec.repetition_penalty != 1:
        logits = apply_repetition_penalty(logits, [row.history for row in rows], spec.repetition_penalty)
    return select_candidates(candidates, choose_tokens(logits, uniforms, spec))


def select_candidates(candidates: Candidates, chosen: Tensor) -> Tensor:
    """The token of each row's chosen candidate, or ``NO_TOKEN``."""
    tokens = candidates.tokens
    return chosen if tokens is None else at_drawn(tokens, chosen)
