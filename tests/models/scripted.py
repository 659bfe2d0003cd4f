"""An engine without a model: its rows repeat a script of tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from evenhand.generation.engine import DecoderOutput, KVCache, PrefillState


class Scripted:
    """An engine whose rows repeat a script of tokens; it counts what it is asked."""

    def __init__(self, script: Sequence[int], *, context: int = 64, vocabulary: int = 300) -> None:
        self.script, self.context, self.vocabulary = script, context, vocabulary
        self.device = torch.device("cpu")
        self.prefilled: list[tuple[int, ...]] = []
        self.steps: list[int] = []
        self.fail_at: set[int] = set()

    def prefill(self, rows: Sequence[Sequence[int]]) -> list[PrefillState]:
        self.prefilled += [tuple(row) for row in rows]
        return [PrefillState(len(row), ()) for row in rows]

    def create_cache(self, rows: int, length: int) -> KVCache:
        return ScriptedBatch(self, rows)

    def create_static_cache(self, rows: int, length: int) -> None:
        return None

    def log_probs(self, rows: Sequence[Sequence[int]]) -> list[Tensor]:
        raise NotImplementedError

    def lm_head(self) -> tuple[Tensor, Tensor | None]:
        raise NotImplementedError

    def hidden_states(self, rows: Sequence[Sequence[int]]) -> Iterator[Tensor]:
        raise NotImplementedError


class ScriptedBatch:
    def __init__(self, engine: Scripted, rows: int) -> None:
        self.engine, self.capacity, self.written = engine, rows, list[int]()

    def fill(self, rows: Sequence[int], prefixes: Sequence[PrefillState]) -> None:
        for row in rows:
            assert row <= len(self.written)
            self.written[row : row + 1] = [0]
        assert len(self.written) <= self.capacity

    def keep(self, rows: Sequence[int]) -> None:
        assert len(set(rows)) == len(rows)
        self.written = [self.written[row] for row in rows]

    def step(self, tokens: Tensor) -> DecoderOutput:
        self.engine.steps.append(len(tokens))
        if len(self.engine.steps) in self.engine.fail_at:
            raise torch.OutOfMemoryError("no memory")
        assert len(tokens) == len(self.written)
        script = self.engine.script
        logits = torch.zeros(len(tokens), self.engine.vocabulary)
        for row, count in enumerate(self.written):
            logits[row, script[count % len(script)]] = 1
        self.written = [count + 1 for count in self.written]
        return DecoderOutput(torch.zeros(len(tokens), 1), logits)
