"""Local causal language models, which generate, score and can be steered."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from evenhand.core.errors import InputError
from evenhand.core.protocols import LMHead, Steering
from evenhand.core.records import Completion, GenerationSpec, ModelRef, Request
from evenhand.generation.scheduler import SamplingLoop
from evenhand.generation.spec_checks import check_control_code, check_spec, refuse_iterations

_TRIAL = 4
"""Tokens per text in the speed trial."""


@dataclass(frozen=True, slots=True)
class CausalModel:
    """A local model that continues texts from left to right: a ``SteerableModel``."""

    ref: ModelRef
    loop: SamplingLoop
    control_code: str | None = None
    """The control code put before every prompt if the spec names none (CTRL)."""
    control_codes: frozenset[str] = frozenset()
    """The codes its tokenizer knows; empty except for CTRL models."""

    @property
    def at_once(self) -> int:
        """The number of texts to request together."""
        return self.loop.at_once

    def resolved(self, spec: GenerationSpec) -> GenerationSpec:
        """The spec unchanged; an error for sampling options that this model does not support."""
        check_spec(spec, self.loop.engine.context)
        refuse_iterations(spec, self.ref.name)
        if spec.control_code is not None:
            check_control_code(spec.control_code, self.control_codes, self.ref.name)
        return spec

    def generate(self, requests: Sequence[Request], spec: GenerationSpec) -> Iterator[Completion]:
        """Completions as they finish, one per request and sample; a control code is not part of them."""
        self.resolved(spec)
        code = spec.control_code or self.control_code
        if code is not None:
            requests = [replace(item, text=f"{code} {item.text}") for item in requests]
        return self.loop.run(requests, spec)

    def pace(self, spec: GenerationSpec) -> float:
        """Tokens per second, measured on a few tokens of a full batch of short prompts."""
        trial = replace(self.resolved(spec), max_new_tokens=min(_TRIAL, spec.max_new_tokens), stop="none")
        rows = max(self.loop.rows, self.at_once)
        requests = [Request(f"trial {number}", "The", (0,)) for number in range(rows)]
        # The first pass warms up: one prompt is enough for a CPU; a GPU captures a graph for the full batch.
        for _ in self.generate(requests[: self.at_once], trial):
            pass
        started = time.perf_counter()
        tokens = sum(answer.new_tokens or 0 for answer in self.generate(requests, trial))
        return max(tokens, 1) / (time.perf_counter() - started)

    def log_likelihoods(self, texts: Sequence[str]) -> list[tuple[float, int]]:
        """For each text its natural log-probability and the number of tokens summed over.

        Every token is scored once, the first one after the tokenizer's start token. A text longer than the
        context is read in windows that overlap by one token. An empty text is (0.0, 0).
        """
        start, size = self.loop.codec.start, self.loop.engine.context
        heads = [] if start is None else [start]
        rows = [
            [tokens[at : at + size] for at in range(0, len(tokens) - 1, size - 1)]
            for tokens in ([*heads, *words] for words in self._words(texts))
        ]
        parts = iter(self.loop.engine.log_probs([window for windows in rows for window in windows]))
        return [_total([next(parts) for _ in windows]) for windows in rows]

    def anatomy(self) -> LMHead:
        """Its output embedding and tokenizer; an error if logits are not a product with an embedding."""
        table, bias = self.loop.engine.lm_head()
        return LMHead(table, bias, self._words)

    def hidden_states(self, texts: Sequence[str], *, longest: int) -> Iterator[torch.Tensor]:
        """For each text its last hidden states, tokens x width, of at most ``longest`` tokens."""
        size = min(longest, self.loop.engine.context)
        return self.loop.engine.hidden_states([tokens[:size] for tokens in self.loop.codec.encode(texts)])

    def steered(self, steering: Steering, *, name: str, options: Mapping[str, str]) -> CausalModel:
        """The same model with a steering applied; ``name`` and ``options`` become part of its identity."""
        if self.loop.steering is not None:
            raise InputError(
                f"the model {self.ref.name!r} is already steered",
                expected="one steering at a time",
                fix="apply the mitigation to the plain model",
            )
        marks = {"mitigation": name} | {f"mitigation.{key}": value for key, value in options.items()}
        ref = replace(self.ref, options={**self.ref.options, **marks})
        return replace(self, ref=ref, loop=replace(self.loop, steering=steering))

    def _words(self, texts: Sequence[str]) -> list[list[int]]:
        start = self.loop.codec.start
        return [row[1:] if row[:1] == [start] else row for row in self.loop.codec.encode(texts)]


def _total(parts: Sequence[torch.Tensor]) -> tuple[float, int]:
    return sum(float(part.double().sum()) for part in parts), sum(len(part) for part in parts)


def local_options(tokenizer: str, *, dtype: torch.dtype, device: torch.device, loop: str) -> dict[str, str]:
    """What determines a local model's texts besides its weights and the spec, for its ``ModelRef``.

    Args:
        tokenizer: The digest of its tokenizer.
        dtype: The type it computes in.
        device: Where it runs; the index among identical devices does not matter.
        loop: The version of the decoding loop.
    """
    kind = str(dtype).removeprefix("torch.")
    return {"tokenizer": tokenizer, "dtype": kind, "device": device.type, "loop": loop}
