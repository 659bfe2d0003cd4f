"""How a classifier is fine-tuned, and what an epoch came to; here, since neither needs torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a classifier is fine-tuned."""

    epochs: int = 5
    batch: int = 32
    rate: float = 2e-5
    warmup: float = 0.1
    """Share of all steps in which the learning rate rises."""
    is_constant: bool = False
    """Keep the learning rate after the warm-up, as plain Adam does, instead of letting it fall."""
    weight_decay: float = 0.01
    clip: float = 1.0
    patience: int | None = None
    """Epochs without a lower held-out loss after which training stops; the best epoch is kept. None: all."""
    seed: int = 0


class Epoch(NamedTuple):
    """What one epoch came to: mean losses in nats."""

    loss: float
    held_out_loss: float
