"""A cache for the graph decoder of a sampling loop, kept between runs."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Final

import torch

from evenhand.core.protocols import Steering
from evenhand.core.records import GenerationSpec
from evenhand.generation.cuda_graphs import capture_for
from evenhand.generation.decoders import Decoder
from evenhand.generation.engine import Engine, StaticCacheEngine
from evenhand.generation.graph_decoder import DecoderSize, GraphDecoder
from evenhand.tensors.devices import is_current_gpu

_SHARE: Final = 16
"""A decoder is kept between runs if it takes at most one part in this many of the device memory."""
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class GraphCache:
    """Holds at most one decoder; a run takes it out while decoding, so that two runs never share it."""

    can_capture: bool | None = None
    """Whether to capture steps; None captures them on a GPU."""
    _decoders: list[GraphDecoder] = field(default_factory=list)

    def acquire(
        self, engine: Engine, steering: Steering | None, spec: GenerationSpec, size: DecoderSize, *, keep: int
    ) -> Decoder | None:
        """A decoder for this size; None if steps are not captured."""
        device = engine.device
        if not (is_current_gpu(device) if self.can_capture is None else self.can_capture):
            return None
        kept_decoder = self._decoders.pop() if self._decoders else None
        if kept_decoder is not None and kept_decoder.can_serve(steering, spec, size):
            return kept_decoder
        # Freed before new tensors are allocated.
        del kept_decoder
        batch = (
            engine.create_static_cache(size.slots, size.length)
            if isinstance(engine, StaticCacheEngine)
            else None
        )
        if batch is None:
            return None
        return GraphDecoder(batch, steering, spec, size, keep=keep, device=device, record=capture_for(device))

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
