"""The sampling loop, shared by plain and mitigated generation.

A prompt is prefilled once and shared by its samples; rows start in order of length and are decoded as a
batch; a waiting row takes the slot of a finished one. The randomness of a row depends only on (seed, prompt
id, sample, position), and rows are independent, so the batch affects nothing but rounding. While the device
computes a step, finished completions are emitted, rows prepared and prompts prefilled in batches.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, islice

import torch

from evenhand.core.protocols import LogitsProcessor, Steering
from evenhand.core.records import Completion, GenerationSpec, Request
from evenhand.core.seeds import RowUniforms
from evenhand.generation.decoders import Decoder, EagerDecoder, GraphCache, GraphCaptureError, bucket_size
from evenhand.generation.engine import Engine, PrefillState
from evenhand.generation.sequences import SequenceRequest, TokenSequence, fail_request
from evenhand.generation.spec_checks import check_spec
from evenhand.generation.tokenizer import TokenCodec
from evenhand.tensors.batching import RowLimits, is_out_of_memory, map_by_length

VERSION = "1"
"""Part of every cache key: increased when the same model, spec and seed give other texts."""

DEFAULT_BATCH = 32
"""Batch size on a CPU, where larger batches are no faster, and the initial one on a GPU."""
LARGEST_BATCH = 1024

_PREFILL_TOKENS = 4096
_SHARE = 32
"""During one device step, one in this many slots is emitted or prepared: all of them would take longer than a
step."""
_LENGTHS = 64
"""Row lengths are rounded up to a multiple of this when testing how many rows fit."""


@dataclass(frozen=True, slots=True)
class SamplingLoop(RowLimits):
    """A model ready to generate: engine, tokenizer, batch size, and steering."""

    FIRST = DEFAULT_BATCH
    LARGEST = LARGEST_BATCH
    engine: Engine
    codec: TokenCodec
    batch: int | None = None
    """Batch size; None increases it until the device memory is full."""
    steering: Steering | None = None
    numbers: Iterator[int] = field(default_factory=count)
    """Unique row ids, so that the steering can keep state for each row."""
    rows_by_length: dict[int, int] = field(default_factory=dict)
    """Maximum batch size by rounded row length."""
    graph_cache: GraphCache = field(default_factory=GraphCache)
    """The cache of captured steps."""

    def run(self, requests: Sequence[Request], spec: GenerationSpec) -> Iterator[Completion]:
        """Yield one completion per request and sample, as they finish.

        A prompt that does not fit the context with ``max_new_tokens`` fails with ``prompt_too_long``: a
        shorter text would not be comparable.
        """
        check_spec(spec, self.engine.context)
        jobs: list[SequenceRequest] = []
        for request, tokens in zip(requests, self._prompts(requests), strict=True):
            failure = self._failure(tokens, spec)
            if failure is None:
                jobs += [SequenceRequest(request, sample, tokens) for sample in request.samples]
            else:
                yield from fail_request(request, len(tokens), failure)
        yield from Scheduler(self, spec, jobs).run()

    def _prompts(self, requests: Sequence[Request]) -> list[tuple[int, ...]]:
        """The tokens of each prompt; an empty one begins with the tokenizer's start token."""
        start = () if self.codec.start is None else (self.codec.start,)
        return [
            tuple(tokens) or start for tokens in self.codec.encode([request.text for request in requests])
        ]

    def _failure(self, prompt: Sequence[int], spec: GenerationSpec) -> str | None:
        if not prompt:
            return "empty_prompt"
        return "prompt_too_long" if len(prompt) + spec.max_new_tokens > self.engine.context else None


class Scheduler:
    """Assigns waiting jobs to the slots of a batch."""

    def __init__(
        self,
        loop: SamplingLoop,
        spec: GenerationSpec,
        jobs: Sequence[SequenceRequest],
        places: int | None = None,
    ) -> None:
        self._loop = loop
        self._spec = spec
        self._uniforms = RowUniforms(spec.seed)
        # Sorted by prompt and length, since prompts are prefilled in batches.
        self._waiting = deque(sorted(jobs, key=lambda job: (len(job.prompt), job.prompt)))
        self._longest = max((len(job.prompt) for job in jobs), default=0) + spec.max_new_tokens
        self._slots = places or self._find_slots()
        self._guide: LogitsProcessor | None = None
        self._finished: deque[TokenSequence] = deque()
        self._completions: list[Completion] = []
        self.reset()

    def _find_slots(self) -> int:
        """The requested batch size, else the largest that fits the device, tested with one token per row."""
        length = _round_length(self._longest, self._loop.engine.context)
        # Rounded up to the batch size of the captured step, so that more texts can fill its slots.
        wanted = min(bucket_size(len(self._waiting)), LARGEST_BATCH)
        return self._loop.find_rows(length, wanted, lambda rows: self._fits(rows, length))

    def _fits(self, rows: int, length: int) -> bool:
        """Whether this many rows of that length fit into memory, tested with a first token of each."""
        prompt = (self._waiting[0].prompt[0],) * (length - self._spec.max_new_tokens)
        jobs = [replace(self._waiting[0], sample=number, prompt=prompt) for number in range(rows)]
        trial = Scheduler(self._loop, self._spec, jobs, places=rows)
        fits = trial.step()
        if fits:
            trial._close()
        del trial
        torch.cuda.empty_cache()
        return fits

    def run(self) -> Iterator[Completion]:
        """Generate every job's text and yield the completions; halve the rows where memory runs out."""
        while self._waiting or self._rows:
            if self.step():
                yield from self.drain_finished()
            else:
                # The references are dropped before memory is freed.
                self.requeue()
                self._slots = self._loop.halve(self._slots)
        self._emit(len(self._finished))
        yield from self.drain_finished()
        self._close()

    def reset(self) -> None:
        """Start with an empty batch."""
        self._rows: list[TokenSequence] = []
        self._ready: deque[TokenSequence] = deque()
        self._read: dict[tuple[int, ...], PrefillState] = {}
        self._open_decoder: Decoder | None = None

    @property
    def _decoder(self) -> Decoder:
        # Created when needed: its tensors may be what exceeds the memory.
        if self._open_decoder is None:
            loop, keep = self._loop, _topk_needed(self._spec)
            length = _round_length(self._longest, loop.engine.context)
            self._open_decoder = loop.graph_cache.acquire(
                loop.engine, loop.steering, self._spec, self._slots, length, keep=keep
            )
            if self._open_decoder is None:
                if loop.steering is not None and self._guide is None:
                    self._guide = loop.steering.begin(keep=keep)
                batch = loop.engine.create_cache(self._slots, self._longest)
                self._open_decoder = EagerDecoder(batch, self._guide, self._spec, loop.engine.device)
        return self._open_decoder

    def _close(self) -> None:
        """Release the decoder for the next run."""
        if self._open_decoder is not None:
            self._loop.graph_cache.release(self._open_decoder)

    def step(self) -> bool:
        """Generate one token in every row; False if memory ran out."""
        try:
            self._admit()
            self._drop_finished()
            if self._rows:
                self._decoder.launch(self._rows)
            self._prepare()
            self._append_tokens()
        except GraphCaptureError as error:
            self._loop.graph_cache.disable(str(error))
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            return False
        else:
            return True
        self.requeue()
        return self.step()

    def _prepare(self) -> None:
        """Do host work while the device computes; at most as many finished texts wait as there are slots."""
        some = max(1, self._slots // _SHARE)
        self._emit(max(some, len(self._finished) - self._slots))
        self._prepare_sequences(min(len(self._ready) + some, self._slots))
        if self._waiting and self._waiting[0].prompt not in self._read:
            self._read_prompts()

    def requeue(self) -> None:
        """Put the rows back into the queue; their texts come out the same."""
        self._waiting.extendleft(row.job for row in reversed(self._rows) if not row.is_over)
        self.reset()

    def _admit(self) -> None:
        """Assign the slots of finished rows, and empty slots, to waiting jobs."""
        free = [place for place, row in enumerate(self._rows) if row.is_over]
        free += range(len(self._rows), self._slots)
        jobs = list(islice(self._waiting, len(free)))
        if not jobs:
            return
        # Prompts first: the device prefills them while rows are prepared.
        if any(job.prompt not in self._read for job in jobs):
            self._read_prompts()
        places, prefixes = free[: len(jobs)], [self._read[job.prompt] for job in jobs]
        self._prepare_sequences(len(jobs))
        rows = [self._ready.popleft() for _ in jobs]
        self._decoder.fill(places, rows, prefixes)
        for place, row in zip(places, rows, strict=True):
            self._rows[place : place + 1] = [row]
            self._waiting.popleft()

    def _drop_finished(self) -> None:
        """Remove the slots of finished rows."""
        left = [place for place, row in enumerate(self._rows) if not row.is_over]
        if len(left) < len(self._rows):
            left = _compact_slots(left)
            self._decoder.keep(left)
            self._rows = [self._rows[place] for place in left]

    def _read_prompts(self) -> None:
        """Prefill the prompts of the next jobs without their last token, which the next step reads."""

        def read(batch: Sequence[Sequence[int]]) -> list[PrefillState]:
            return self._loop.engine.prefill([prompt[:-1] for prompt in batch])

        ahead = dict.fromkeys(job.prompt for job in islice(self._waiting, self._slots))
        # Earlier prompts are dropped first: they may take as much memory as the rows themselves.
        self._read = {prompt: state for prompt, state in self._read.items() if prompt in ahead}
        missing = [prompt for prompt in ahead if prompt not in self._read]
        states = map_by_length(missing, read, rows=self._slots, tokens=_PREFILL_TOKENS)
        self._read.update(zip(missing, states, strict=True))

    def _prepare_sequences(self, count: int) -> None:
        """Prepare rows for the first waiting jobs, until ``count`` are ready."""
        for job in islice(self._waiting, len(self._ready), count):
            uniforms = self._uniforms(job.request.id, job.sample, self._spec.max_new_tokens)
            text = self._loop.codec.decode(job.prompt)
            self._ready.append(TokenSequence(next(self._loop.numbers), job, uniforms, text))

    def _append_tokens(self) -> None:
        """Append the next token to each row."""
        for row, token in zip(self._rows, self._decoder.sync() if self._rows else (), strict=True):
            if token is not None:
                row.append(token, self._loop.codec, self._spec)
        self._finished += [row for row in self._rows if row.is_over]

    def _emit(self, count: int) -> None:
        """Emit up to ``count`` of the finished rows."""
        for _ in range(min(count, len(self._finished))):
            self._completions.append(self._finished.popleft().to_completion(self._loop.codec, self._spec))

    def drain_finished(self) -> list[Completion]:
        """The completions emitted since the last call."""
        completions, self._completions = self._completions, []
        return completions


def _round_length(length: int, context: int) -> int:
    """The length for which memory is tested and graphs are captured: a few lengths serve all rows."""
    return min(-(-length // _LENGTHS) * _LENGTHS, context)


def _compact_slots(left: Sequence[int]) -> list[int]:
    """An order of the remaining rows that moves only those beyond the new last slot.

    >>> _compact_slots([0, 2, 3, 5])
    [0, 5, 2, 3]
    """
    staying, moving = set(left), iter([place for place in left if place >= len(left)])
    return [place if place in staying else next(moving) for place in range(len(left))]


def _topk_needed(spec: GenerationSpec) -> int:
    """The number of most likely tokens that sampling reads; 0 if it reads all."""
    if spec.repetition_penalty != 1:
        return 0
    return 1 if spec.temperature == 0 else spec.top_k
