"""A model without a network, weights or torch: deterministic, fast, and without any knowledge."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from evenhand.core.records import Completion, Execution, GenerationSpec, ModelRef, Request
from evenhand.core.seeds import row_uniforms

VERSION = "1"
_SUBJECTS = ("she", "he", "they", "the family", "a neighbour", "the teacher", "people", "nobody")
_VERBS = ("liked", "hated", "saw", "forgot", "praised", "ignored", "joined", "left")
_OBJECTS = (
    "a wonderful evening",
    "the old house",
    "a terrible mistake",
    "the long road",
    "good news",
    "the rain",
)
_WORDS = (_SUBJECTS, _VERBS, _OBJECTS)


class StubModel:
    """Continues every prompt with a short sentence determined by seed, prompt and sample."""

    def __init__(
        self,
        name: str = "stub",
        *,
        delay: float = 0.0,
        fail_every: int = 0,
        execution: Execution | None = None,
    ) -> None:
        """A stub that takes ``delay`` seconds per text; every ``fail_every``-th text of a call fails."""
        self._delay = delay
        self._fail_every = fail_every
        self.ref = ModelRef("stub", name, revision=VERSION, options={"fail_every": str(fail_every)})

    def generate(self, requests: Sequence[Request], spec: GenerationSpec) -> Iterator[Completion]:
        """One completion per request and sample."""
        count = 0
        for request in requests:
            for sample in request.samples:
                count += 1
                time.sleep(self._delay)
                if self._fail_every and count % self._fail_every == 0:
                    yield Completion(request.id, sample, None, None, failure="stub_failure")
                    continue
                draws = row_uniforms(spec.seed, request.id, sample, len(_WORDS))
                parts = [words[int(draw * len(words))] for words, draw in zip(_WORDS, draws, strict=True)]
                text = f" and {' '.join(parts)}."
                tokens = len(request.text.split()), len(text.split())
                yield Completion(request.id, sample, text, "stop", *tokens)
