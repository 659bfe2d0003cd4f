"""Requested sequences and sequences in progress."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from evenhand.core.records import Completion, Finish, GenerationSpec, Request
from evenhand.generation.sampling import NO_TOKEN
from evenhand.generation.tokenizer import TokenCodec
from evenhand.text.sentences import first_sentence_end

_HALF_WRITTEN = "\ufffd"


@dataclass(frozen=True, slots=True)
class SequenceRequest:
    """One text to generate."""

    request: Request
    sample: int
    prompt: tuple[int, ...]


def fail_request(request: Request, tokens: int, failure: str) -> Iterator[Completion]:
    """The failed completions of a request, with the reason."""
    for sample in request.samples:
        yield Completion(request.id, sample, None, None, prompt_tokens=tokens, failure=failure)


@dataclass(slots=True)
class TokenSequence:
    """A text being generated."""

    number: int
    job: SequenceRequest
    uniforms: npt.NDArray[np.float64]
    prompt_text: str
    tokens: list[int] = field(default_factory=list)
    finish: Finish | None = None
    failure: str | None = None
    """The reason for a failure: ``not_finite`` if the logits overflowed."""

    @property
    def is_over(self) -> bool:
        """Whether the sequence is finished."""
        return self.finish is not None or self.failure is not None

    @property
    def last(self) -> int:
        """The token the model reads next."""
        return self.tokens[-1] if self.tokens else self.job.prompt[-1]

    def append(self, token: int, codec: TokenCodec, spec: GenerationSpec) -> None:
        """Append a token, and detect the end."""
        if token == NO_TOKEN:
            self.failure = "not_finite"
            return
        self.tokens.append(token)
        if token in codec.ends:
            self.finish = "end"
        elif spec.stop == "sentence" and first_sentence_end(self.decode(codec), complete=False) is not None:
            self.finish = "sentence"
        elif len(self.tokens) == spec.max_new_tokens:
            self.finish = "length"

    def decode(self, codec: TokenCodec) -> str:
        """The text so far, without the prompt."""
        # Decoded with the prompt: some tokenizers decode a word differently at the start of a text.
        tokens = self.tokens[:-1] if self.finish == "end" else self.tokens
        return codec.decode([*self.job.prompt, *tokens])[len(self.prompt_text) :]

    def to_completion(self, codec: TokenCodec, spec: GenerationSpec) -> Completion:
        """The completion of the finished text."""
        completion = Completion(
            self.job.request.id,
            self.job.sample,
            None,
            None,
            prompt_tokens=len(self.job.prompt),
            new_tokens=len(self.tokens),
            failure=self.failure,
        )
        if self.failure is not None:
            return completion
        # The token limit may fall inside a multi-byte character.
        text = self.decode(codec).rstrip(_HALF_WRITTEN)
        end = first_sentence_end(text) if spec.stop == "sentence" else None
        return replace(completion, text=text[:end], finish=self.finish if end is None else "sentence")
