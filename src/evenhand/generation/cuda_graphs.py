"""A step over static tensors, captured once and then replayed: one launch instead of hundreds.

On a CPU nothing is captured and the step is called as it is, so that everything but the capture itself is the
same there, and tested there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol, TypeVar

import torch
from torch import Tensor

from evenhand.tensors.batching import is_out_of_memory

R = TypeVar("R")
_WARM_UPS: Final = 2


class GraphCaptureError(Exception):
    """A step that a graph cannot hold; the caller goes on without."""


class GraphCapture(Protocol):
    """Turns a step into something that repeats it."""

    def __call__(self, step: Callable[[], R], state: Sequence[Tensor]) -> Callable[[], R]:
        """What repeats the step, whose results stay in one place; ``state`` is what a step changes."""
        ...


def capture_for(device: torch.device) -> GraphCapture:
    """The way to capture a step on a device."""
    return CudaGraphCapture() if device.type == "cuda" else run_eagerly


def run_eagerly(step: Callable[[], R], state: Sequence[Tensor]) -> Callable[[], R]:
    """The step itself."""
    return step


class CudaGraphCapture:
    """Captures CUDA graphs that share one memory pool: each ends before another is replayed."""

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, step: Callable[[], R], state: Sequence[Tensor]) -> Callable[[], R]:
        """A function that replays the step; an error if a graph cannot hold it or memory does not suffice."""
        before, stream = [cells.clone() for cells in state], torch.cuda.current_stream()
        try:
            _warm_up(step)
            graph = torch.cuda.CUDAGraph()
            # Other threads may use the device at the same time.
            with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
                outputs = step()
        except Exception as error:
            # A capture that fails may leave its own stream behind.
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
    """Brings tokens from a device while it works on; those of the last two steps can be read."""

    def __init__(self, most: int, device: torch.device) -> None:
        # Only memory that is pinned can be written to while this process goes on.
        self._is_cuda = device.type == "cuda"
        self._cells = deque(torch.zeros(most, dtype=torch.long, pin_memory=self._is_cuda) for _ in range(2))

    def __call__(self, tokens: Tensor) -> Callable[[], list[int]]:
        """What waits for these tokens, and for nothing ordered after them, and reads them."""
        self._cells.rotate()
        cells = self._cells[0][: len(tokens)]
        cells.copy_(tokens, non_blocking=True)
        if not self._is_cuda:
            return cells.tolist
        arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
        arrived.record()

        def read() -> list[int]:
            arrived.synchronize()
            tokens: list[int] = cells.tolist()
            return tokens

        return read


def _warm_up(step: Callable[[], object]) -> None:
    """Let libraries choose and compile what they need, which a capture does not allow."""
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    try:
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UPS):
                step()
    finally:
        # After an error too: its tables are given away while the stream may still write to them.
        torch.cuda.current_stream().wait_stream(stream)


def _chain(error: BaseException | None) -> Iterator[Exception]:
    """An error and those behind it."""
    while error is not None:
        if isinstance(error, Exception):
            yield error
        error = error.__cause__ or error.__context__


class CapturedFunction:
    """Calls a function through a graph captured for the most rows met so far; fewer rows are padded.

    Every argument and every result has one row a text in its first dimension, and no row may look at another.
    """

    def __init__(self, function: Callable[..., tuple[Tensor, ...]]) -> None:
        self._function = function
        self._rows = 0

    def __call__(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """What the function returns, copied out of the graph's own memory."""
        rows = len(inputs[0])
        if rows > self._rows:
            self._capture(inputs)
        for place, given in zip(self._inputs, inputs, strict=True):
            place[:rows].copy_(given)
        self._graph.replay()
        return tuple(result[:rows].clone() for result in self._results)

    def _capture(self, inputs: Sequence[Tensor]) -> None:
        self._rows = len(inputs[0])
        self._inputs = [given.clone() for given in inputs]
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UPS):
                self._function(*self._inputs)
        torch.cuda.current_stream().wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._results = self._function(*self._inputs)
