"""A function of tensors captured as a CUDA graph: one launch in place of hundreds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

_WARM_UPS = 2


class Captured:
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
