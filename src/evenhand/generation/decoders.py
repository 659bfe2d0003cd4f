"""What writes the next token of every row: the model's step, what steers it, and the draw."""

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
    """Writes the rows of a batch."""

    def fill(
        self, places: Sequence[int], rows: Sequence[TokenSequence], prefixes: Sequence[PrefillState]
    ) -> None:
        """Begin rows, each with its prefix; a place just after the last one is added."""
        ...

    def keep(self, places: Sequence[int]) -> None:
        """Drop all rows but those at these places, the first of which becomes row 0, and so on."""
        ...

    def launch(self, rows: Sequence[TokenSequence]) -> None:
        """Launch the next token of each row; an accelerator is not waited for."""
        ...

    def sync(self) -> Sequence[int | None]:
        """The tokens that were launched, ``NO_TOKEN`` where there is none to draw.

        None stands for a row whose first one comes a call later.
        """
        ...


class EagerDecoder:
    """Writes by one call after the other, on any engine and device."""

    def __init__(
        self, batch: KVCache, guide: LogitsProcessor | None, spec: GenerationSpec, device: torch.device
    ) -> None:
        self._batch, self._guide, self._spec, self._device = batch, guide, spec, device

    def fill(
        self, places: Sequence[int], rows: Sequence[TokenSequence], prefixes: Sequence[PrefillState]
    ) -> None:
        """Begin rows, each with its prefix."""
        self._batch.fill(places, prefixes)

    def keep(self, places: Sequence[int]) -> None:
        """Drop all rows but those at these places."""
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
        """The tokens that were launched."""
        tokens: list[int] = self._tokens.tolist()
        return tokens


def sample_tokens(
    candidates: Candidates, uniforms: Tensor, rows: Sequence[TokenSequence], spec: GenerationSpec
) -> Tensor:
    """The tokens that come next."""
    logits = candidates.logits
    if spec.repetition_penalty != 1:
        logits = apply_repetition_penalty(logits, [row.history for row in rows], spec.repetition_penalty)
    return select_candidates(candidates, choose_tokens(logits, uniforms, spec))


def select_candidates(candidates: Candidates, chosen: Tensor) -> Tensor:
    """The token behind each row's chosen candidate, where one was chosen."""
    tokens = candidates.tokens
    return chosen if tokens is None else at_drawn(tokens, chosen)
