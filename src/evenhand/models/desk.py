"""Where a loop finds its recorded pen: whether it may record, and what an earlier run left behind."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Final

import torch

from evenhand.core.protocols import Steering
from evenhand.core.records import GenerationSpec
from evenhand.models.pens import Pen
from evenhand.models.recorded import RecordedPen, Size
from evenhand.neural.devices import is_current
from evenhand.neural.engine import Engine, FixedEngine
from evenhand.neural.recording import recorder_of

_SHARE: Final = 16
"""Tables of up to this part of a device's memory stay between two runs; larger ones are given back."""
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Desk:
    """One pen at most lies here; it is taken while somebody writes, so that two runs never share it."""

    records: bool | None = None
    """Whether steps are recorded; None does so on a GPU."""
    _lying: list[RecordedPen] = field(default_factory=list)

    def open(
        self, engine: Engine, steering: Steering | None, spec: GenerationSpec, size: Size, *, keep: int
    ) -> Pen | None:
        """A pen for texts of that size; None where steps are not recorded."""
        device = engine.device
        if not (is_current(device) if self.records is None else self.records):
            return None
        lying = self._lying.pop() if self._lying else None
        if lying is not None and lying.can_serve(steering, spec, size):
            return lying
        # Before new tables are made.
        del lying
        batch = engine.fixed_batch(size.places, size.length) if isinstance(engine, FixedEngine) else None
        if batch is None:
            return None
        return RecordedPen(batch, steering, spec, size, keep=keep, device=device, record=recorder_of(device))

    def close(self, pen: Pen) -> None:
        """Keep a recorded pen for the next run, unless it holds much memory."""
        if isinstance(pen, RecordedPen) and pen.bytes * _SHARE <= _memory(pen.device):
            pen.clear()
            self._lying[:] = [pen]

    def give_up(self, reason: str) -> None:
        """Record no more with this model."""
        self.records = False
        _log.warning("steps are not recorded, which is slower: %s", reason)


def _memory(device: torch.device) -> int:
    """The device's memory in bytes; so much that it does not count on a CPU."""
    if device.type != "cuda":
        return 1 << 62
    return torch.cuda.get_device_properties(device).total_memory
