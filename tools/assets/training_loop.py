"""The loop the language models and the distillation share: a time budget, a cosine over it, checkpoints."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from evenhand.training.finetuning import descend, load_checkpoint, read_about, save_checkpoint
from tools.assets.optimizers import Muon, adamw, divide, time_cosine

_LOG = logging.getLogger(__name__)
_EVERY: Final = 20
"""Steps between looks at the clock: the host may run this far ahead of the device."""
CHECKPOINT_EVERY: Final = 30.0
"""Seconds of training between two checkpoints."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to train; `seconds` is the whole budget, over all calls."""

    seconds: float
    warmup: int = 250
    matrix_rate: float = 0.02
    other_rate: float = 2e-3
    weight_decay: float = 0.1
    clip: float = 1.0


class Progress(NamedTuple):
    """Where a training stands."""

    step: int
    elapsed: float
    """Seconds of training so far, compiling included, reading data and evaluation not."""
    loss: float
    """Mean loss of the last steps, in nats."""


class Trainer:
    """A model, its optimisers and the clock."""

    def __init__(
        self,
        model: nn.Module,
        recipe: Recipe,
        optimisers: Mapping[str, Optimizer],
        *,
        checkpoint: Path | None = None,
    ) -> None:
        """Begin, or go on from the checkpoint where there is one; it is written every half minute."""
        self.model, self.recipe, self.optimisers, self.checkpoint = model, recipe, optimisers, checkpoint
        self.step, self.elapsed = 0, 0.0
        if checkpoint is not None and checkpoint.exists():
            self.load(checkpoint)

    def run(self, loss_of: Callable[[int], Tensor], *, seconds: float | None = None) -> Progress:
        """Train for `seconds` of this call or to the end of the budget; return where it stands.

        `loss_of(step)` draws a batch and returns its loss.
        """
        progress = Progress(self.step, self.elapsed, float("nan"))
        ends = self.recipe.seconds if seconds is None else self.elapsed + seconds
        while self.elapsed < min(self.recipe.seconds, ends):
            progress = self._run_until(min(ends, self.elapsed + CHECKPOINT_EVERY), loss_of)
            if self.checkpoint is not None:
                self.save(self.checkpoint)
        return progress

    def advance(self, loss: Tensor) -> Tensor:
        """Take one step and return its loss, detached."""
        factor = time_cosine(self.elapsed, self.recipe.seconds, step=self.step, warmup=self.recipe.warmup)
        self.step += 1
        optimisers = self.optimisers.values()
        return descend(loss, *optimisers, factor=factor, clipped=self.model, clip=self.recipe.clip)

    def save(self, path: Path) -> None:
        """Write model, optimiser states, step and clock."""
        about = {"clock": json.dumps({"step": self.step, "elapsed": self.elapsed})}
        save_checkpoint(path, self.model, self.optimisers, about=about)

    def load(self, path: Path) -> None:
        """Go on from a checkpoint of the same model and recipe."""
        clock = json.loads(read_about(path)["clock"])
        self.step, self.elapsed = clock["step"], clock["elapsed"]
        load_checkpoint(path, self.model, self.optimisers)

    def _run_until(self, ends: float, loss_of: Callable[[int], Tensor]) -> Progress:
        started, before = time.monotonic(), self.elapsed
        losses: list[Tensor] = []
        mean = float("nan")
        while self.elapsed < min(self.recipe.seconds, ends):
            losses.append(self.advance(loss_of(self.step)))
            if self.step % _EVERY == 0 or self.step < _EVERY:
                mean = float(torch.stack(losses).mean())
                losses.clear()
                self.elapsed = before + time.monotonic() - started
                if self.step % (_EVERY * 10) == 0:
                    _LOG.info("step %d, %.0f s, loss %.4f", self.step, self.elapsed, mean)
        return Progress(self.step, self.elapsed, mean)


def create_optimisers(model: nn.Module, recipe: Recipe, *, fused: bool) -> dict[str, Optimizer]:
    """Return Muon for the matrices inside blocks and AdamW for the rest; `fused` asks for the GPU forms."""
    matrices, others = divide(model)
    muon = Muon(matrices, lr=recipe.matrix_rate, weight_decay=recipe.weight_decay)
    if fused:
        muon.compile()
    return {
        "muon": muon,
        "adamw": adamw(others, lr=recipe.other_rate, weight_decay=recipe.weight_decay, fused=fused),
    }
