"""A masked language model on this machine: writes by filling masks after a prompt, again and again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evenhand.core.records import Completion, GenerationSpec, ModelRef, Request
from evenhand.models.gibbs import GibbsLoop


@dataclass(frozen=True, slots=True)
class MaskedModel:
    """A local model that fills gaps, as a ``Model`` that continues prompts."""

    ref: ModelRef
    loop: GibbsLoop

    @property
    def at_once(self) -> int:
        """How many texts to ask for together."""
        return self.loop.at_once

    def resolved(self, spec: GenerationSpec) -> GenerationSpec:
        """The spec with burn-in and iterations filled in; an error for sampling this model does not know."""
        return self.loop.resolved(spec)

    def generate(self, requests: Sequence[Request], spec: GenerationSpec) -> Iterator[Completion]:
        """Completions as they finish, one for each request and sample."""
        return self.loop.run(requests, self.resolved(spec))

    def pace(self, spec: GenerationSpec) -> float:
        """Tokens a second at least, from two passes over a full batch: every iteration is counted."""
        return self.loop.pace(self.resolved(spec))
