"""A causal language model on this machine: writes, scores and can be steered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from evenhand.core.errors import InputError
from evenhand.core.protocols import Steering
from evenhand.core.records import Completion, GenerationSpec, ModelRef, Request
from evenhand.models.decoding import VERSION, Loop
from evenhand.neural.devices import dtype_name
from evenhand.neural.tokens import Codec


@dataclass(frozen=True, slots=True)
class CausalModel:
    """A local model that continues texts from left to right: a ``SteerableModel``."""

    ref: ModelRef
    loop: Loop
    control_code: str | None = None
    """What every prompt is preceded by where the spec names nothing else (CTRL)."""
    takes_control_codes: bool = False

    def generate(self, requests: Sequence[Request], spec: GenerationSpec) -> Iterator[Completion]:
        """Completions as they finish, one for each request and sample."""
        code = spec.control_code or self.control_code
        if code is None:
            return self.loop.run(requests, spec)
        if not self.takes_control_codes:
            raise InputError(
                f"control code {code!r} for the model {self.ref.name!r}",
                accepted="control codes are for CTRL models",
                todo="leave the control code out",
            )
        return self.loop.run([replace(item, text=f"{code} {item.text}") for item in requests], spec)

    def log_likelihoods(self, texts: Sequence[str]) -> list[tuple[float, int]]:
        """For each text its natural log-probability and the number of tokens it was summed over.

        Every token is scored once, the first one after the tokenizer's start token. A text longer than the
        context is read in windows that share one token. An empty text is (0.0, 0).
        """
        rows = [self._windows(tokens) for tokens in self._started(texts)]
        parts = iter(self.loop.engine.log_probs([window for windows in rows for window in windows]))
        return [_total([next(parts) for _ in windows]) for windows in rows]

    def steered(self, steering: Steering, *, name: str, options: Mapping[str, str]) -> CausalModel:
        """The same model with a steering; ``name`` and ``options`` become part of its identity."""
        if self.loop.steering is not None:
            raise InputError(
                f"the model {self.ref.name!r} is steered already",
                accepted="one steering at a time",
                todo="apply the mitigation to the plain model",
            )
        marks = {"mitigation": name} | {f"mitigation.{key}": value for key, value in options.items()}
        ref = replace(self.ref, options={**self.ref.options, **marks})
        return replace(self, ref=ref, loop=replace(self.loop, steering=steering))

    def _started(self, texts: Sequence[str]) -> list[list[int]]:
        start = self.loop.codec.start
        rows = self.loop.codec.encode(texts)
        return [row if start is None or row[:1] == [start] else [start, *row] for row in rows]

    def _windows(self, tokens: Sequence[int]) -> list[Sequence[int]]:
        size = self.loop.engine.context
        return [tokens[at : at + size] for at in range(0, len(tokens) - 1, size - 1)]


def identity_options(codec: Codec, *, dtype: torch.dtype, device: torch.device) -> dict[str, str]:
    """What decides a local model's texts besides its weights."""
    return {
        "tokenizer": codec.digest,
        "dtype": dtype_name(dtype),
        "device": device.type,
        "loop": VERSION,
    }


def _total(parts: Sequence[torch.Tensor]) -> tuple[float, int]:
    return sum(float(part.double().sum()) for part in parts), sum(len(part) for part in parts)
