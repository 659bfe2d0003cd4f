"""Decoders generate the next token of every row: the model's step, steering, and sampling.

`EagerDecoder` works on any engine and device. `GraphDecoder` replays a captured step: model, steering and
sampling as one CUDA graph (ADR 31). All state of that step is in static tensors with one slot per row: the
last token, its position, the row's uniform numbers, and the memory of the steering. A step reads and updates
them, so that between two steps only the replay is sent to the device. Slots without a row are computed too,
and ignored. A step is launched before the previous step's tokens are read, so that the device does not wait
for the host; a row that has ended by then is computed once more, and the result is discarded. On a CPU
nothing is captured and the step is called directly, so that everything except the capture is tested there.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, TypeAlias, TypeVar

import numpy as np
import torch
from torch import Tensor

from evenhand.core.protocols import (
    Candidates,
    CapturableProcessor,
    LogitsProcessor,
    Steering,
    Step,
    SupportsCapture,
)
from evenhand.core.records import GenerationSpec
from evenhand.generation.engine import DecoderOutput, Engine, KVCache, PrefillState, StaticKVCache
from evenhand.generation.sampling import apply_repetition_penalty, at_drawn, choose_tokens, is_fixed_sampling
from evenhand.generation.sequences import TokenSequence
from evenhand.tensors.batching import is_out_of_memory
from evenhand.tensors.devices import is_current_gpu, to_device

_FACTOR: Final = 4
"""Steps are captured for 1, 4, 16, ... rows, so that few graphs serve all batch sizes."""
_TOLERANCE: Final = {torch.float32: 1e-3, torch.float64: 1e-3}
_HALF_TOLERANCE: Final = 0.1
_SHARE: Final = 16
"""A decoder is kept between runs if it takes at most one part in this many of the device memory."""
_WARM_UPS: Final = 2
_log = logging.getLogger(__name__)
R = TypeVar("R")


class EagerDecoder:
    """Decodes step by step without graphs, on any engine and device."""

    def __init__(
        self, batch: KVCache, guide: LogitsProcessor | None, spec: GenerationSpec, device: torch.device
    ) -> None:
        self._batch, self._guide, self._spec, self._device = batch, guide, spec, device

    def fill(
        self, places: Sequence[int], rows: Sequence[TokenSequence], prefixes: Sequence[PrefillState]
    ) -> None:
        """Start rows from their prefixes; a slot right after the last one is appended."""
        self._batch.fill(places, prefixes)

    def keep(self, places: Sequence[int]) -> None:
        """Keep only the rows at these slots, renumbered in this order."""
        self._batch.keep(places)

    def launch(self, rows: Sequence[TokenSequence]) -> None:
        """Launch the next token of each row without waiting for the device."""
        last = torch.tensor([row.last for row in rows], device=self._device)
        output = self._batch.step(last)
        numbers = [row.uniforms[len(row.tokens)] for row in rows]
        uniforms = torch.tensor(numbers, dtype=torch.float64, device=self._device)
        candidates = Candidates(output.logits)
        if self._guide is not None:
            ids = [row.number for row in rows]
            candidates = self._guide(Step(output.hidden, output.logits, ids, last, uniforms))
        self._tokens = sample_tokens(candidates, uniforms, rows, self._spec)

    def sync(self) -> list[int]:
        """The launched tokens, ``NO_TOKEN`` if there is no valid distribution."""
        tokens: list[int] = self._tokens.tolist()
        return tokens


def sample_tokens(
    candidates: Candidates, uniforms: Tensor, rows: Sequence[TokenSequence], spec: GenerationSpec
) -> Tensor:
    """Sample the next tokens."""
    logits = candidates.logits
    if spec.repetition_penalty != 1:
        histories = [[*row.job.prompt, *row.tokens] for row in rows]
        logits = apply_repetition_penalty(logits, histories, spec.repetition_penalty)
    return select_candidates(candidates, choose_tokens(logits, uniforms, spec))


def select_candidates(candidates: Candidates, chosen: Tensor) -> Tensor:
    """The token of each row's chosen candidate, or ``NO_TOKEN``."""
    tokens = candidates.tokens
    return chosen if tokens is None else at_drawn(tokens, chosen)


class GraphCaptureError(Exception):
    """A step cannot be captured; the caller continues without a graph."""


class GraphCapture:
    """Captures CUDA graphs that share one memory pool: each ends before the next is replayed."""

    def __init__(self, device: torch.device) -> None:
        self._pool = torch.cuda.graph_pool_handle() if device.type == "cuda" else None

    def __call__(self, step: Callable[[], R], state: Sequence[Tensor]) -> Callable[[], R]:
        """A function that repeats the step with results in fixed memory; a step changes ``state``.

        On a CPU it is the step itself. An error if it cannot be captured or memory runs out.
        """
        if self._pool is None:
            return step
        before, stream = [cells.clone() for cells in state], torch.cuda.current_stream()
        try:
            _warm_up(step)
            graph = torch.cuda.CUDAGraph()
            # Other threads may use the device at the same time.
            with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
                outputs = step()
        except Exception as error:
            # A failed capture may leave its own stream current.
            torch.cuda.set_stream(stream)
            if any(map(is_out_of_memory, _chain(error))):
                raise torch.OutOfMemoryError(str(error)) from error
            raise GraphCaptureError(f"{type(error).__name__}: {error}") from error
        finally:
            for cells, old in zip(state, before, strict=True):
                cells.copy_(old)

        def replay() -> R:
            graph.replay()
            return outputs

        return replay


class AsyncTokenCopy:
    """Copies tokens from a device asynchronously; those of the last two steps can be read."""

    def __init__(self, most: int, device: torch.device) -> None:
        # Only copies to pinned memory are asynchronous.
        self._is_cuda = device.type == "cuda"
        self._cells = deque(torch.zeros(most, dtype=torch.long, pin_memory=self._is_cuda) for _ in range(2))

    def __call__(self, tokens: Tensor) -> Callable[[], list[int]]:
        """A function that waits for these tokens only, not for later work, and reads them."""
        self._cells.rotate()
        cells = self._cells[0][: len(tokens)]
        cells.copy_(tokens, non_blocking=True)
        if not self._is_cuda:
            return cells.tolist
        copy_done = torch.cuda.Event()  # type: ignore[no-untyped-call]
        copy_done.record()

        def read() -> list[int]:
            copy_done.synchronize()
            tokens: list[int] = cells.tolist()
            return tokens

        return read


def _warm_up(step: Callable[[], object]) -> None:
    """Let libraries select and compile kernels, which is not allowed during capture."""
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    try:
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UPS):
                step()
    finally:
        # Also after an error: otherwise tensors are freed while the stream may still write to them.
        torch.cuda.current_stream().wait_stream(stream)


def _chain(error: BaseException | None) -> Iterator[Exception]:
    """An error and its causes."""
    while error is not None:
        if isinstance(error, Exception):
            yield error
        error = error.__cause__ or error.__context__


def bucket_size(rows: int) -> int:
    """The batch size of the graph that serves this many rows, if there are enough slots.

    >>> [bucket(rows) for rows in (1, 5, 127, 1024)]
    [1, 16, 256, 1024]
    """
    size = 1
    while size < rows:
        size *= _FACTOR
    return size


class _StepOutputs(NamedTuple):
    """The results of a captured step, in static memory."""

    output: DecoderOutput
    uniforms: Tensor
    candidates: Candidates
    tokens: Tensor | None
    """The sampled tokens; None if sampling is not part of the graph."""


@dataclass(slots=True)
class _PendingStep:
    """A launched step whose tokens have not been read."""

    tokens: Callable[[], list[int]]
    """A function that waits for its tokens."""
    slots: list[int | None]
    """The index of each row's token among them; None for a row that started later."""


class GraphDecoder:
    """Decodes by replaying a captured step; its methods are those of `EagerDecoder`."""

    def __init__(
        self,
        batch: StaticKVCache,
        steering: Steering | None,
        spec: GenerationSpec,
        slots: int,
        length: int,
        *,
        keep: int,
        device: torch.device,
    ) -> None:
        self.slots, self._length = slots, length
        self._batch, self._spec, self._record = batch, spec, GraphCapture(device)
        self._steering, self._keep = steering, keep
        self._guide, self._capturable = _begin_steering(steering, keep)
        self._draws = is_fixed_sampling(spec) and self._guide is None
        self._last, self._positions, self._written = (
            torch.zeros(slots, dtype=torch.long, device=device) for _ in range(3)
        )
        self._uniforms = torch.zeros(slots, spec.max_new_tokens, dtype=torch.float64, device=device)
        self._memory = () if self._capturable is None else tuple(self._capturable.fresh(slots, device))
        self._lengths: list[int] = []
        self._steps: dict[tuple[int, int], Callable[[], _StepOutputs]] = {}
        self._is_checked = False
        self._fetch = AsyncTokenCopy(slots, device)
        self._pending: _PendingStep | None = None

    @property
    def device(self) -> torch.device:
        """The device of the decoder."""
        return self._last.device

    @property
    def bytes(self) -> int:
        """A lower bound of its memory."""
        return self._batch.bytes

    def can_serve(self, steering: Steering | None, spec: GenerationSpec, slots: int, length: int) -> bool:
        """Whether the captured steps fit this steering and spec, and so many slots of that length."""
        same = steering is self._steering and replace(spec, seed=0, samples=0, stop="none") == replace(
            self._spec, seed=0, samples=0, stop="none"
        )
        return same and slots <= self.slots and length <= self._length

    def clear(self) -> None:
        """Drop all rows, but keep the graphs."""
        self.keep([])
        self._pending = None
        self._guide, self._capturable = _begin_steering(self._steering, self._keep)

    def fill(
        self, places: Sequence[int], rows: Sequence[TokenSequence], prefixes: Sequence[PrefillState]
    ) -> None:
        """Start rows from their prefixes."""
        self._batch.fill(places, prefixes)
        for place, prefix in zip(places, prefixes, strict=True):
            self._lengths[place : place + 1] = [prefix.length]
            if self._pending is not None:
                self._pending.slots[place : place + 1] = [None]
        device = self._last.device
        initial = [list(places), [row.last for row in rows], [prefix.length for prefix in prefixes]]
        slots, last, positions = to_device(torch.tensor(initial), device).unbind()
        self._last[slots], self._positions[slots] = last, positions
        self._written.index_fill_(0, slots, 0)
        self._uniforms[slots] = to_device(torch.from_numpy(np.stack([row.uniforms for row in rows])), device)
        if self._capturable is not None:
            for cells, fresh in zip(self._memory, self._capturable.fresh(len(rows), device), strict=True):
                cells[slots] = fresh

    def keep(self, places: Sequence[int]) -> None:
        """Keep only the rows at these slots."""
        self._batch.keep(places)
        self._lengths = [self._lengths[place] for place in places]
        if self._pending is not None:
            self._pending.slots = [self._pending.slots[place] for place in places]
        moves = [(new, old) for new, old in enumerate(places) if new != old]
        if moves:
            targets, sources = to_device(torch.tensor(moves), self.device).unbind(1)
            for cells in self._state:
                cells[targets] = cells[sources]

    @torch.no_grad()
    def launch(self, rows: Sequence[TokenSequence]) -> None:
        """Launch the next token of each row, and the one after it if sampling is part of the graph."""
        self._due = self._pending or self._launch_step(rows)
        goes_on = any(len(row.tokens) + 1 < self._spec.max_new_tokens for row in rows)
        self._pending = self._launch_step(rows) if self._draws and goes_on else None

    def sync(self) -> list[int | None]:
        """The launched tokens; None for a row that started after their step."""
        tokens = self._due.tokens()
        return [None if place is None else tokens[place] for place in self._due.slots]

    def _launch_step(self, rows: Sequence[TokenSequence]) -> _PendingStep:
        """Launch one more token for every row without waiting."""
        count = len(rows)
        result = self._read_outputs(count)
        if result.tokens is None:
            tokens = self._sample_eagerly(result, rows)
            self._read_next(tokens)
        else:
            tokens = result.tokens[:count]
        return _PendingStep(self._fetch(tokens), list(range(count)))

    def _read_outputs(self, count: int) -> _StepOutputs:
        """Run the next step and return its outputs."""
        bucket = min(bucket_size(count), self.slots)
        reach = self._batch.padded_length(max(self._lengths) + 1)
        if (bucket, reach) not in self._steps:
            self._steps[bucket, reach] = self._record(lambda: self._step(bucket, reach), self._state)
        step = self._steps[bucket, reach]
        if self._is_checked:
            result = step()
            self._batch.count_token()
        else:
            result = self._verify_capture(step, count)
        self._lengths = [length + 1 for length in self._lengths]
        return result

    @property
    def _state(self) -> tuple[Tensor, ...]:
        """The state of the rows besides the key-value cache."""
        return (self._last, self._positions, self._written, self._uniforms, *self._memory)

    def _step(self, rows: int, longest: int) -> _StepOutputs:
        """Compute one token for each of the first ``rows`` slots."""
        last, positions, written = self._last[:rows], self._positions[:rows], self._written[:rows]
        output = self._batch.advance(last, positions, longest=longest)
        uniforms = self._uniforms[:rows].gather(1, written[:, None])[:, 0]
        candidates, tokens = Candidates(output.logits), None
        if self._capturable is not None:
            memory = [cells[:rows] for cells in self._memory]
            candidates, updated = self._capturable.advance(
                output.hidden, output.logits.float(), uniforms, memory
            )
            for cells, new in zip(memory, updated, strict=True):
                cells.copy_(new)
        if self._draws:
            tokens = select_candidates(candidates, choose_tokens(candidates.logits, uniforms, self._spec))
            self._read_next(tokens)
        # Slots without a row advance too, but never beyond their length.
        positions.add_(1).clamp_(max=self._length - 1)
        written.add_(1).clamp_(max=self._spec.max_new_tokens - 1)
        return _StepOutputs(output, uniforms, candidates, tokens)

    def _read_next(self, tokens: Tensor) -> None:
        """Set these as the next step's input; a row without a token is over and may read any."""
        self._last[: len(tokens)] = tokens.clamp(min=0)

    def _verify_capture(self, step: Callable[[], _StepOutputs], count: int) -> _StepOutputs:
        """Run the first step, whose hidden states must match an eager step; both write the same cells."""
        plain = self._batch.step(self._last[:count]).hidden.float()
        result = _try_step(step)
        away = result.output.hidden[:count].float() - plain
        near = _TOLERANCE.get(result.output.hidden.dtype, _HALF_TOLERANCE)
        if not bool(away.norm() <= near * plain.norm()):
            raise GraphCaptureError(f"hidden states differ by {float(away.norm() / plain.norm()):.1e}")
        self._is_checked = True
        return result

    def _sample_eagerly(self, result: _StepOutputs, rows: Sequence[TokenSequence]) -> Tensor:
        """Sample the next tokens if steering or sampling cannot be captured."""
        count = len(rows)
        uniforms, (logits, tokens) = result.uniforms[:count], result.candidates
        logits = logits[:count].float()
        candidates = Candidates(logits, None if tokens is None else tokens[:count])
        if self._guide is not None:
            numbers, hidden = [row.number for row in rows], result.output.hidden[:count]
            candidates = self._guide(Step(hidden, logits, numbers, self._last[:count], uniforms))
        return sample_tokens(candidates, uniforms, rows, self._spec)


def _try_step(step: Callable[[], _StepOutputs]) -> _StepOutputs:
    """Run the first step; the exceptions of unsupported architectures vary, so all are caught."""
    try:
        return step()
    except Exception as error:
        if is_out_of_memory(error):
            raise
        raise GraphCaptureError(f"{type(error).__name__}: {error}") from error


def _begin_steering(
    steering: Steering | None, keep: int
) -> tuple[LogitsProcessor | None, CapturableProcessor | None]:
    """The steering of new texts: capturable if it has such a form, else a logits processor."""
    if steering is None:
        return None, None
    guide = steering.begin(keep=keep)
    capturable = guide.flow() if isinstance(guide, SupportsCapture) else None
    return (guide, None) if capturable is None else (None, capturable)


Decoder: TypeAlias = EagerDecoder | GraphDecoder


@dataclass(slots=True)
class GraphCache:
    """Holds at most one decoder; a run takes it out while decoding, so that two runs never share it."""

    can_capture: bool | None = None
    """Whether to capture steps; None captures them on a GPU."""
    _decoders: list[GraphDecoder] = field(default_factory=list)

    def acquire(
        self,
        engine: Engine,
        steering: Steering | None,
        spec: GenerationSpec,
        slots: int,
        length: int,
        *,
        keep: int,
    ) -> Decoder | None:
        """A decoder with slots of that length, in tokens; None if steps are not captured."""
        device = engine.device
        if not (is_current_gpu(device) if self.can_capture is None else self.can_capture):
            return None
        kept_decoder = self._decoders.pop() if self._decoders else None
        if kept_decoder is not None and kept_decoder.can_serve(steering, spec, slots, length):
            return kept_decoder
        # Freed before new tensors are allocated.
        del kept_decoder
        batch = engine.create_static_cache(slots, length)
        if batch is None:
            return None
        return GraphDecoder(batch, steering, spec, slots, length, keep=keep, device=device)

    def release(self, decoder: Decoder) -> None:
        """Keep a graph decoder for the next run, unless it takes too much memory."""
        if isinstance(decoder, GraphDecoder) and decoder.bytes * _SHARE <= _device_memory(decoder.device):
            decoder.clear()
            self._decoders[:] = [decoder]

    def disable(self, reason: str) -> None:
        """Stop capturing steps of this model."""
        self.can_capture = False
        _log.warning("decoding without CUDA graphs, which is slower: %s", reason)


def _device_memory(device: torch.device) -> int:
    """The memory of the device in bytes; unlimited on a CPU."""
    if device.type != "cuda":
        return 1 << 62
    return torch.cuda.get_device_properties(device).total_memory
