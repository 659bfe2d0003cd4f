"""The one sampling loop, for plain and for mitigated text.

A prompt is read once and shared by its samples; rows are started in order of length and written side by
side; a finished row gives its place to the next one. The randomness of a row depends on (seed, prompt id,
sample, position) alone, and no row sees another, so the batch changes nothing but rounding. While an
accelerator is at a step, finished texts are told, rows made ready and prompts read, a part of them at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, islice

import torch

from evenhand.core.errors import InputError
from evenhand.core.protocols import Guide, Steering
from evenhand.core.records import Completion, GenerationSpec, Request
from evenhand.core.seeds import RowUniforms
from evenhand.models.desk import Desk
from evenhand.models.pens import Pen, PlainPen
from evenhand.models.recorded import Size, bucket
from evenhand.models.rows import Job, Row
from evenhand.neural.batching import length_sorted
from evenhand.neural.engine import Engine, Prefix
from evenhand.neural.memory import halved, is_out_of_memory, most_rows
from evenhand.neural.recording import CannotRecordError
from evenhand.neural.tokens import Codec

VERSION = "1"
"""Part of every key: raised when the loop writes other texts from the same model, spec and seed."""

DEFAULT_BATCH = 32
"""Rows on a CPU, where more of them are no faster, and where an accelerator begins."""
LARGEST_BATCH = 1024

_PREFILL_TOKENS = 4096
_SHARE = 32
"""While an accelerator is at a step, this part of the places is told or made ready: all of them would take
longer than a step."""
_LENGTHS = 64
"""How many rows fit is asked once for all lengths up to the next multiple of this."""


@dataclass(frozen=True, slots=True)
class Loop:
    """A model ready to write: engine, tokenizer, rows at a time, and what steers it."""

    engine: Engine
    codec: Codec
    batch: int | None = None
    """Rows at a time; None grows them until an accelerator's memory says no."""
    steering: Steering | None = None
    numbers: Iterator[int] = field(default_factory=count)
    """Numbers the rows for the steering, never twice, so that it may keep something for each."""
    fitting: dict[int, int] = field(default_factory=dict)
    """Length of a row, rounded up, to the rows that were found to fit."""
    desk: Desk = field(default_factory=Desk)
    """Whether steps are recorded, and what was recorded before."""

    @property
    def rows(self) -> int:
        """Rows at a time, before it is known how long they are."""
        return self.batch or DEFAULT_BATCH

    @property
    def grows(self) -> bool:
        """Whether rows are grown to what fits; on a CPU more of them are no faster."""
        return self.batch is None and self.engine.device.type != "cpu"

    @property
    def at_once(self) -> int:
        """How many texts to ask for together, so that rows are filled: any on a CPU, which needs few."""
        return 1 if self.engine.device.type == "cpu" else self.batch or LARGEST_BATCH

    def run(self, requests: Sequence[Request], spec: GenerationSpec) -> Iterator[Completion]:
        """One completion for each request and sample, as they finish.

        A prompt that does not fit the context with ``max_new_tokens`` fails with ``prompt_too_long``: a
        shorter text would not be comparable.
        """
        check_spec(spec, self.engine.context)
        jobs: list[Job] = []
        for request, tokens in zip(requests, self._prompts(requests), strict=True):
            failure = self._failure(tokens, spec)
            if failure is None:
                jobs += [Job(request.id, sample, tokens) for sample in request.samples]
            else:
                yield from _failed(request, len(tokens), failure)
        yield from _Table(self, spec, jobs).run()

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


def check_spec(spec: GenerationSpec, context: int) -> None:
    """An error where no prompt at all could be continued as asked."""
    if spec.max_new_tokens < 1 or spec.max_new_tokens >= context:
        raise InputError(
            f"max_new_tokens is {spec.max_new_tokens}",
            accepted=f"1 to {context - 1}: the model's context is {context} tokens, prompt included",
            todo="ask for fewer tokens, or take a model with a longer context",
        )
    for name, value, accepted, fits in (
        ("temperature", spec.temperature, "0 (greedy) or more", spec.temperature >= 0),
        ("top_k", spec.top_k, "0 (every token) or more", spec.top_k >= 0),
        ("top_p", spec.top_p, "above 0, at most 1", 0 < spec.top_p <= 1),
        ("repetition_penalty", spec.repetition_penalty, "above 0 (1 is none)", spec.repetition_penalty > 0),
    ):
        if not fits:
            raise InputError(f"{name} is {value}", accepted=accepted, todo=f"change {name}")


class _Table:
    """The rows being written and the jobs that wait for a place."""

    def __init__(
        self, loop: Loop, spec: GenerationSpec, jobs: Sequence[Job], places: int | None = None
    ) -> None:
        self._loop = loop
        self._spec = spec
        self._uniforms = RowUniforms(spec.seed)
        # Jobs of one prompt stand together, and prompts of like length: they are read together.
        self._waiting = deque(sorted(jobs, key=lambda job: (len(job.prompt), job.prompt)))
        self._longest = max((len(job.prompt) for job in jobs), default=0) + spec.max_new_tokens
        self._places = places or self._fitting_places()
        self._guide: Guide | None = None
        self._finished: deque[Row] = deque()
        self._completions: list[Completion] = []
        self._open()

    def _fitting_places(self) -> int:
        """The rows asked for; else what was found to fit an accelerator, from a token written in each."""
        loop = self._loop
        if not loop.grows:
            return max(1, loop.rows)
        length = _rounded(self._longest, loop.engine.context)
        known = loop.fitting.get(length, 0)
        # As many as the recording has that serves them: after more texts there would be places for it.
        wanted = min(bucket(len(self._waiting)), LARGEST_BATCH)
        if known < wanted:
            known = most_rows(max(known, DEFAULT_BATCH), wanted, lambda rows: self._fits(rows, length))
            loop.fitting[length] = known
        return known

    def _fits(self, rows: int, length: int) -> bool:
        """Whether so many rows of that length can be written, from a first token of each."""
        prompt = (self._waiting[0].prompt[0],) * (length - self._spec.max_new_tokens)
        jobs = [Job("trial", number, prompt) for number in range(rows)]
        trial = _Table(self._loop, self._spec, jobs, places=rows)
        fits = trial._moved()
        if fits:
            trial._close()
        del trial
        torch.cuda.empty_cache()
        return fits

    def run(self) -> Iterator[Completion]:
        while self._waiting or self._rows:
            if not self._moved():
                self._halve()
                continue
            yield from self._told()
        self._tell(len(self._finished))
        yield from self._told()
        self._close()

    def _open(self) -> None:
        """Begin with an empty batch."""
        self._rows: list[Row] = []
        self._ready: deque[Row] = deque()
        self._read: dict[tuple[int, ...], Prefix] = {}
        self._opened: Pen | None = None

    @property
    def _pen(self) -> Pen:
        # Not before it is needed: its tables may be what does not fit into memory.
        if self._opened is None:
            self._opened = self._recorded() or self._plain()
        return self._opened

    def _recorded(self) -> Pen | None:
        loop, length = self._loop, _rounded(self._longest, self._loop.engine.context)
        return loop.desk.open(
            loop.engine, loop.steering, self._spec, Size(self._places, length), keep=_kept(self._spec)
        )

    def _plain(self) -> Pen:
        loop = self._loop
        if loop.steering is not None and self._guide is None:
            self._guide = loop.steering.begin(keep=_kept(self._spec))
        batch = loop.engine.batch(self._places, self._longest)
        return PlainPen(batch, self._guide, self._spec, loop.engine.device)

    def _close(self) -> None:
        """Leave the pen to those who write next."""
        if self._opened is not None:
            self._loop.desk.close(self._opened)

    def _moved(self) -> bool:
        """Write one token in every row; False where memory did not suffice."""
        try:
            self._admit()
            self._drop_finished()
            if self._rows:
                self._pen.order(self._rows)
            self._prepare()
            self._take()
        except CannotRecordError as error:
            self._loop.desk.give_up(str(error))
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            return False
        else:
            return True
        self._begin_again()
        return self._moved()

    def _prepare(self) -> None:
        """Do what else there is, while an accelerator works; no more texts than places stay untold."""
        some = max(1, self._places // _SHARE)
        self._tell(max(some, len(self._finished) - self._places))
        self._make_ready(min(len(self._ready) + some, self._places))
        if self._waiting and self._waiting[0].prompt not in self._read:
            self._read_prompts()

    def _halve(self) -> None:
        """Begin again with half the rows."""
        # What does not fit is let go before memory is given back.
        self._begin_again()
        self._places = halved(self._places)
        for length, rows in self._loop.fitting.items():
            self._loop.fitting[length] = min(rows, self._places)

    def _begin_again(self) -> None:
        """Put the rows back among those that wait; what they had written comes out the same."""
        self._waiting.extendleft(row.job for row in reversed(self._rows) if not row.is_over)
        self._open()

    def _admit(self) -> None:
        """Give the places of finished rows, and empty ones, to waiting jobs."""
        free = [place for place, row in enumerate(self._rows) if row.is_over]
        free += range(len(self._rows), self._places)
        jobs = list(islice(self._waiting, len(free)))
        if not jobs:
            return
        # Prompts first: an accelerator reads them while rows are made ready.
        places, prefixes = free[: len(jobs)], self._prefixes(jobs)
        self._make_ready(len(jobs))
        rows = [self._ready.popleft() for _ in jobs]
        self._pen.fill(places, rows, prefixes)
        for place, row in zip(places, rows, strict=True):
            self._rows[place : place + 1] = [row]
            self._waiting.popleft()

    def _drop_finished(self) -> None:
        """Close the places nobody waits for."""
        left = [place for place, row in enumerate(self._rows) if not row.is_over]
        if len(left) < len(self._rows):
            left = _closed_up(left)
            self._pen.keep(left)
            self._rows = [self._rows[place] for place in left]

    def _prefixes(self, jobs: Sequence[Job]) -> list[Prefix]:
        """What each job's prompt leaves in the cache: all but its last token, which the next step reads."""
        if any(job.prompt not in self._read for job in jobs):
            self._read_prompts()
        return [self._read[job.prompt] for job in jobs]

    def _read_prompts(self) -> None:
        """Read the prompts of the jobs that come next, after those before are forgotten."""
        ahead = dict.fromkeys(job.prompt for job in islice(self._waiting, self._places))
        # At once: they may take as much memory as the rows themselves.
        self._read = {prompt: read for prompt, read in self._read.items() if prompt in ahead}
        missing = [prompt for prompt in ahead if prompt not in self._read]
        self._read.update(zip(missing, self._prefilled(missing), strict=True))

    def _prefilled(self, prompts: Sequence[Sequence[int]]) -> list[Prefix]:
        found: dict[int, Prefix] = {}
        lengths = [len(prompt) for prompt in prompts]
        for indices in length_sorted(lengths, rows=self._places, tokens=_PREFILL_TOKENS):
            prefixes = self._loop.engine.prefill([prompts[index][:-1] for index in indices])
            found.update(zip(indices, prefixes, strict=True))
        return [found[index] for index in range(len(prompts))]

    def _make_ready(self, count: int) -> None:
        """Make rows for the first jobs that wait, until there are so many."""
        for job in islice(self._waiting, len(self._ready), count):
            uniforms = self._uniforms(job.request_id, job.sample, self._spec.max_new_tokens)
            text = self._loop.codec.decode(job.prompt)
            self._ready.append(Row(next(self._loop.numbers), job, uniforms, text))

    def _take(self) -> None:
        """Give each row its next token."""
        for row, token in zip(self._rows, self._pen.read() if self._rows else (), strict=True):
            if token is not None:
                row.take(token, self._loop.codec, self._spec)
        self._finished += [row for row in self._rows if row.is_over]

    def _tell(self, count: int) -> None:
        """Say what came of so many of the rows that are finished."""
        for _ in range(min(count, len(self._finished))):
            self._completions.append(self._finished.popleft().completion(self._loop.codec, self._spec))

    def _told(self) -> list[Completion]:
        """What was said since this was asked last."""
        told, self._completions = self._completions, []
        return told


def _rounded(length: int, context: int) -> int:
    """The length for which rows are tried and recorded: a few serve all."""
    return min(-(-length // _LENGTHS) * _LENGTHS, context)


def _closed_up(left: Sequence[int]) -> list[int]:
    """The rows in an order in which only those move whose place is beyond the last one.

    >>> _closed_up([0, 2, 3, 5])
    [0, 5, 2, 3]
    """
    staying, moving = set(left), iter([place for place in left if place >= len(left)])
    return [place if place in staying else next(moving) for place in range(len(left))]


def _kept(spec: GenerationSpec) -> int:
    """How many of the likeliest tokens sampling looks at; 0 where it looks at all."""
    if spec.repetition_penalty != 1:
        return 0
    return 1 if spec.temperature == 0 else spec.top_k


def _failed(request: Request, tokens: int, failure: str) -> Iterator[Completion]:
    for sample in request.samples:
        yield Completion(request.id, sample, None, None, prompt_tokens=tokens, failure=failure)
