"""Masked generation: a prompt followed by masks; each iteration redraws one position of each row.

After Wang and Cho (2019) as used by BOLD: during the burn-in a position is sampled, afterwards it takes its
most likely token. The positions and the randomness of a row depend only on (seed, prompt id, sample,
iteration), and rows are independent. Iterations that cannot change the text are skipped:

* one whose position is redrawn by the very next iteration, because its token is never read;
* one after the burn-in at a position whose context has not changed since its most likely token was taken; a
  row is finished when that holds for every position.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from evenhand.core.errors import InputError
from evenhand.core.records import Completion, GenerationSpec, ModelRef, Request
from evenhand.core.seeds import row_uniforms
from evenhand.generation.engine import MaskedEngine
from evenhand.generation.sampling import NO_TOKEN, choose_tokens, likeliest_of
from evenhand.generation.sequences import SequenceRequest, fail_request
from evenhand.generation.spec_checks import check_control_code, check_spec
from evenhand.generation.tokenizer import MaskedTokenCodec
from evenhand.tensors.batching import RowLimits, is_out_of_memory
from evenhand.text.sentences import first_sentence_end

VERSION = "gibbs-1"
"""Part of every cache key: increased when the same model, spec and seed give other texts."""

BURN_IN: Final = 200
ITERATIONS: Final = 500
"""Defaults of masked models: BOLD's settings (appendix A.2.1)."""
_USUAL_PROMPT = 12
"""Assumed tokens of a prompt, including two special tokens, for estimates."""


@dataclass(frozen=True, slots=True)
class MaskedModel(RowLimits):
    """A local masked language model, used as a ``Model`` that continues prompts."""

    FIRST = 64
    LARGEST = 2048
    engine: MaskedEngine
    codec: MaskedTokenCodec
    batch: int | None = None
    """Batch size; None increases it until the device memory is full."""
    ref: ModelRef = field(default_factory=lambda: ModelRef("masked", "masked"))
    rows_by_length: dict[int, int] = field(default_factory=dict)
    """Maximum batch size by row length."""

    def generate(self, requests: Sequence[Request], spec: GenerationSpec) -> Iterator[Completion]:
        """Completions as they finish, one per request and sample.

        A prompt that does not fit the context with ``max_new_tokens`` fails with ``prompt_too_long``.
        """
        return self._generate(requests, self.resolved(spec))

    def _generate(self, requests: Sequence[Request], spec: GenerationSpec) -> Iterator[Completion]:
        jobs: list[SequenceRequest] = []
        prompts = self.codec.encode([request.text for request in requests])
        for request, prompt in zip(requests, prompts, strict=True):
            # The row has two special tokens.
            if len(prompt) + spec.max_new_tokens + 2 > self.engine.context:
                yield from fail_request(request, len(prompt), "prompt_too_long")
            else:
                jobs += [SequenceRequest(request, sample, tuple(prompt)) for sample in request.samples]
        # The longest first: later rows fit into the columns of earlier ones.
        yield from self._run(deque(sorted(jobs, key=lambda job: (-len(job.prompt), job.prompt))), spec)

    def _run(self, waiting: deque[SequenceRequest], spec: GenerationSpec) -> Iterator[Completion]:
        """Run batches until no job waits; out of memory, the texts start again and come out the same."""
        places = self._find_slots(waiting, spec)
        while waiting:
            rows = _GibbsBatch(self, spec, waiting, places)
            try:
                yield from rows.run()
            except RuntimeError as error:
                if not is_out_of_memory(error):
                    raise
                places = self.halve(places)
                waiting.extendleft(reversed(rows.list_unfinished()))

    def _find_slots(self, waiting: Sequence[SequenceRequest], spec: GenerationSpec) -> int:
        """The number of the longest rows that fit into memory, tested with one iteration."""
        if not waiting:
            return self.rows

        def fits(rows: int) -> bool:
            try:
                _GibbsBatch(self, spec, deque([waiting[0]] * rows), rows).iterate()
            except RuntimeError as error:
                if not is_out_of_memory(error):
                    raise
                return False
            finally:
                torch.cuda.empty_cache()
            return True

        columns = len(waiting[0].prompt) + spec.max_new_tokens + 2
        return self.find_rows(columns, len(waiting), fits)

    def pace(self, spec: GenerationSpec) -> float:
        """Lower bound on tokens per second, from two passes over a full batch: every iteration is counted."""
        spec = self.resolved(spec)
        device, size = self.engine.device, spec.max_new_tokens
        length = min(size + _USUAL_PROMPT, self.engine.context)
        tokens = torch.full((self.rows, length), self.codec.mask, device=device)
        lengths = torch.full((self.rows,), length, device=device)
        started = 0.0
        for _ in range(2):
            # The first pass is the warm-up; reading a result synchronises the device.
            started = time.perf_counter()
            self.engine.logits(tokens, lengths, lengths - 1)[0, 0].item()
        seconds = time.perf_counter() - started
        return self.rows * size / (seconds * (spec.iterations or 1))

    def resolved(self, spec: GenerationSpec) -> GenerationSpec:
        """The spec with explicit iterations; an error for options that masked models do not support."""
        check_spec(spec, self.engine.context - 2)
        if spec.control_code is not None:
            check_control_code(spec.control_code, (), self.ref.name)
        if spec.repetition_penalty != 1:
            raise InputError(
                f"repetition_penalty is {spec.repetition_penalty} for the model {self.ref.name!r}",
                expected="1 (disabled): a masked model has no left-to-right order to penalise",
                fix="omit the repetition penalty",
            )
        iterations = ITERATIONS if spec.iterations is None else spec.iterations
        burn_in = min(BURN_IN, iterations) if spec.burn_in is None else spec.burn_in
        if iterations < 1 or not 0 <= burn_in <= iterations:
            raise InputError(
                f"burn_in is {burn_in} and iterations is {iterations}",
                expected="at least 1 iteration, and a burn-in from 0 to that number",
                fix="change burn_in or iterations",
            )
        return replace(spec, iterations=iterations, burn_in=burn_in)


def schedule_iterations(
    job: SequenceRequest, spec: GenerationSpec
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """The position of every iteration, from the first mask, and the uniform number for its token.

    Positions that no iteration visits come last, so that no mask is left in the text.
    """
    count, size = spec.iterations or 0, spec.max_new_tokens
    numbers = row_uniforms(spec.seed, job.request.id, job.sample, 2 * (count + size))
    places = (numbers[0 : 2 * count : 2] * size).astype(np.int64)
    missed = np.setdiff1d(np.arange(size), places)
    places = np.concatenate([places, missed])
    return places, numbers[1 : 2 * len(places) : 2]


class _GibbsBatch:
    """A batch with all state in tensors; a waiting job takes the slot of a finished row."""

    def __init__(
        self, model: MaskedModel, spec: GenerationSpec, waiting: deque[SequenceRequest], places: int
    ) -> None:
        self._model, self._spec, self._waiting = model, spec, waiting
        # At temperature 0 the burn-in takes the most likely tokens too.
        self._burn_in = 0 if spec.temperature == 0 else spec.burn_in or 0
        count = min(places, len(waiting))
        columns = len(waiting[0].prompt) + spec.max_new_tokens + 2
        steps = (spec.iterations or 0) + spec.max_new_tokens
        device = model.engine.device
        self._jobs: list[SequenceRequest | None] = [None] * count
        self._order = torch.arange(steps, device=device)
        self._tokens = torch.zeros((count, columns), dtype=torch.long, device=device)
        self._visits = torch.zeros((count, steps), dtype=torch.long, device=device)
        self._idle = torch.zeros((count, steps), dtype=torch.bool, device=device)
        self._numbers = torch.zeros((count, steps), dtype=torch.float64, device=device)
        self._lengths = torch.zeros(count, dtype=torch.long, device=device)
        self._next = torch.full((count,), steps, device=device)
        self._changes = torch.zeros(count, dtype=torch.long, device=device)
        self._settled = torch.full((count, columns), -1, device=device)
        self._lost = torch.zeros(count, dtype=torch.bool, device=device)
        """Rows whose logits overflowed: there is no distribution to sample from."""
        self._barred = torch.tensor(sorted(model.codec.excluded_tokens), dtype=torch.long, device=device)

    def list_unfinished(self) -> list[SequenceRequest]:
        return [job for job in self._jobs if job is not None]

    def iterate(self) -> None:
        """Run one iteration of every row, to test whether it fits into memory."""
        self._fill(range(len(self._jobs)))
        self._advance(self._next_iterations())

    def run(self) -> Iterator[Completion]:
        """Run until every job is complete."""
        self._fill(range(len(self._jobs)))
        while self._jobs:
            steps = self._next_iterations()
            ended = [row for row, step in enumerate(steps.tolist()) if step == len(self._order)]
            if not ended:
                self._advance(steps)
                continue
            yield from self._emit_finished(ended)
            self._fill(ended)

    def _next_iterations(self) -> Tensor:
        """The next iteration of each row that may change its text; the number of iterations if none."""
        is_settled = self._settled.gather(1, self._visits) == self._changes[:, None]
        # Only most likely tokens settle, so the second test has no effect during the burn-in.
        live = (self._order >= self._next[:, None]) & ~self._idle
        live &= (self._order < self._burn_in) | ~is_settled
        return torch.where(live, self._order, len(self._order)).amin(1)

    def _advance(self, steps: Tensor) -> None:
        rows = torch.arange(len(steps), device=steps.device)
        places = self._visits[rows, steps]
        before = self._tokens[rows, places]
        self._tokens[rows, places] = self._model.codec.mask
        logits = self._model.engine.logits(self._tokens[:, : self._columns()], self._lengths, places)
        logits[:, self._barred] = -torch.inf
        choice = self._choose_tokens(logits, steps)
        self._lost |= choice == NO_TOKEN
        tokens = choice.clamp(min=0)
        self._tokens[rows, places] = tokens
        self._changes += tokens != before
        self._settled[rows, places] = torch.where(steps >= self._burn_in, self._changes, -1)
        self._next = torch.where(self._lost, len(self._order), steps + 1)

    def _choose_tokens(self, logits: Tensor, steps: Tensor) -> Tensor:
        """Sampled tokens for rows in their burn-in, the most likely ones for others."""
        sampling = steps < self._burn_in
        if not sampling.any():
            return likeliest_of(logits)
        choice = choose_tokens(logits, self._numbers.gather(1, steps[:, None])[:, 0], self._spec)
        return choice if sampling.all() else torch.where(sampling, choice, likeliest_of(logits))

    def _columns(self) -> int:
        size = self._spec.max_new_tokens + 2
        return max(len(job.prompt) for job in self._jobs if job is not None) + size

    def _fill(self, rows: Sequence[int]) -> None:
        """Assign the rows to waiting jobs; drop rows without a job."""
        for row in rows:
            self._jobs[row] = self._waiting.popleft() if self._waiting else None
            if (job := self._jobs[row]) is not None:
                self._start(row, job)
        if None in self._jobs:
            self._keep([row for row, job in enumerate(self._jobs) if job is not None])

    def _start(self, row: int, job: SequenceRequest) -> None:
        codec, size = self._model.codec, self._spec.max_new_tokens
        framed = [codec.before, *job.prompt, *[codec.mask] * size, codec.after]
        places, numbers = schedule_iterations(job, self._spec)
        visits = torch.from_numpy(places + 1 + len(job.prompt))
        self._tokens[row, : len(framed)] = torch.tensor(framed, device=self._tokens.device)
        self._tokens[row, len(framed) :] = 0
        self._lengths[row] = len(framed)
        self._visits[row, : len(visits)] = visits.to(self._visits.device)
        self._numbers[row, : len(visits)] = torch.from_numpy(numbers.copy()).to(self._numbers.device)
        self._idle[row] = True
        self._idle[row, : len(visits)] = _is_redrawn(visits).to(self._idle.device)
        self._next[row] = self._changes[row] = 0
        self._lost[row] = False
        self._settled[row] = -1

    def _keep(self, rows: Sequence[int]) -> None:
        at = torch.tensor(rows, dtype=torch.long, device=self._tokens.device)
        self._jobs = [self._jobs[row] for row in rows]
        self._tokens, self._lengths = self._tokens[at], self._lengths[at]
        self._visits, self._numbers, self._idle = self._visits[at], self._numbers[at], self._idle[at]
        self._next, self._changes, self._settled = self._next[at], self._changes[at], self._settled[at]
        self._lost = self._lost[at]

    def _emit_finished(self, rows: Sequence[int]) -> Iterator[Completion]:
        lost = self._lost.tolist()
        for row, tokens in zip(rows, self._tokens[rows].tolist(), strict=True):
            job = self._jobs[row]
            if job is not None and lost[row]:
                yield from fail_request(
                    replace(job.request, samples=(job.sample,)), len(job.prompt), "not_finite"
                )
            elif job is not None:
                start = len(job.prompt) + 1
                yield self._completion(job, tokens[start : start + self._spec.max_new_tokens])

    def _completion(self, job: SequenceRequest, tokens: Sequence[int]) -> Completion:
        text = self._model.codec.continuation(job.request.text, job.prompt, tokens)
        end = first_sentence_end(text) if self._spec.stop == "sentence" else None
        return Completion(
            job.request.id,
            job.sample,
            text[:end],
            "length" if end is None else "sentence",
            prompt_tokens=len(job.prompt),
            new_tokens=len(tokens),
        )


def _is_redrawn(visits: Tensor) -> Tensor:
    """Whether the very next iteration redraws the same position."""
    again = torch.zeros(len(visits), dtype=torch.bool)
    again[:-1] = visits[:-1] == visits[1:]
    return again
