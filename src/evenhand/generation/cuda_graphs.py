"""CUDA graphs: a step over static tensors is captured once and replayed with one launch, not hundreds.

On a CPU nothing is captured and the step is called directly, so that everything except the capture itself can
be tested there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

import torch
from torch import Tensor

from evenhand.tensors.batching import is_out_of_memory

R = TypeVar("R")
_WARM_UPS: Final = 2


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
