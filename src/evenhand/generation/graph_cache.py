"""Where a loop finds its recorded pen: whether it may record, and what an earlier run left behind."""

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
"""Tables of up to this part of a device's memory stay between two runs; larger ones are given back."""
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class GraphCache:
    """One pen at most lies here; it is taken while somebody writes, so that two runs never share it."""

    can_capture: bool | None = None
    """Whether steps are recorded; None does so on a GPU."""
    _decoders: list[GraphDecoder] = field(default_factory=list)

    def acquire(
        self, engine: Engine, steering: Steering | None, spec: GenerationSpec, size: DecoderSize, *, keep: int
    ) -> Decoder | None:
        """A pen for texts of that size; None where steps are not recorded."""
        device = engine.device
        if not (is_current_gpu(device) if self.can_capture is None else self.can_capture):
            return None
        lying = self._decoders.pop() if self._decoders else None
        if lying is not None and lying.can_serve(steering, spec, size):
            return lying
        # Before new tables are made.
        del lying
        batch = (
            engine.create_static_cache(size.slots, size.length)
            if isinstance(engine, StaticCacheEngine)
            else None
        )
        if batch is None:
            return None
        return GraphDecoder(batch, steering, spec, size, keep=keep, device=device, record=capture_for(device))

    def release(self, pen: Decoder) -> None:
        """Keep a recorded pen for the next run, unless it holds much memory."""
        if isinstance(pen, GraphDecoder) and pen.bytes * _SHARE <= _device_memory(pen.device):
            pen.clear()
            self._decoders[:] = [pen]

    def disable(self, reason: str) -> None:
        """Record no more with this model."""
        self.can_capture = False
        _log.warning("steps are not recorded, which is slower: %s", reason)


def _device_memory(device: torch.device) -> int:
    """The memory of the device in bytes; unlimited on a CPU."""
    if device.type != "cuda":
        return 1 << 62
    return torch.cuda.get_device_properties(device).total_memory
