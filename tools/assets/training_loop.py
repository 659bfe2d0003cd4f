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
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from tools.assets.optimizers import Muon, adamw, divide, time_cosine

_LOG = logging.getLogger(__name__)
_EVERY: Final = 20
"""Steps between looks at the clock: the host may run this far ahead of the device."""
CHECKPOINT_EVERY: Final = 30.0
"""Seconds of training between two checkpoints, where a loop writes several."""


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


class Clock(NamedTuple):
    """How far a training is."""

    step: int
    elapsed: float
    """Seconds of training."""


class Trainer:
    """A model, its two optimisers and the clock."""

    def __init__(self, model: nn.Module, recipe: Recipe, *, fused: bool) -> None:
        """Divide the model's parameters between Muon and AdamW; `fused` asks for the GPU form of both."""
        matrices, others = divide(model)
        self.model = model
        self.recipe = recipe
        self.muon = Muon(matrices, lr=recipe.matrix_rate, weight_decay=recipe.weight_decay)
        self.adamw = adamw(others, lr=recipe.other_rate, weight_decay=recipe.weight_decay, fused=fused)
        self.step = 0
        self.elapsed = 0.0
        if fused:
            self.muon.compile()

    def run(
        self, loss_of: Callable[[int], Tensor], *, seconds: float, checkpoint: Path | None = None
    ) -> Progress:
        """Train for `seconds` of this call or to the end of the budget; return where it stands.

        `loss_of(step)` draws a batch and returns its loss. A checkpoint, if asked for, is written at the end.
        """
        started, before = time.monotonic(), self.elapsed
        losses: list[Tensor] = []
        mean = float("nan")
        while self.elapsed < self.recipe.seconds and self.elapsed - before < seconds:
            losses.append(self._advance(loss_of(self.step)))
            self.step += 1
            if self.step % _EVERY == 0 or self.step < _EVERY:
                mean = float(torch.stack(losses).mean())
                losses.clear()
                self.elapsed = before + time.monotonic() - started
                if self.step % (_EVERY * 10) == 0:
                    _LOG.info("step %d, %.0f s, loss %.4f", self.step, self.elapsed, mean)
        if checkpoint is not None:
            self.save(checkpoint)
        return Progress(self.step, self.elapsed, mean)

    def save(self, path: Path) -> None:
        """Write model, optimiser states, step and clock as one safetensors file, named only when whole."""
        save_state(path, self.model, self._optimisers(), Clock(self.step, self.elapsed))

    def load(self, path: Path) -> None:
        """Go on from a checkpoint of the same model and recipe."""
        self.step, self.elapsed = load_state(path, self.model, self._optimisers())

    def _optimisers(self) -> dict[str, torch.optim.Optimizer]:
        return {"muon": self.muon, "adamw": self.adamw}

    def _advance(self, loss: Tensor) -> Tensor:
        """Take one step and return its loss, detached."""
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.clip)
        factor = time_cosine(self.elapsed, self.recipe.seconds, step=self.step, warmup=self.recipe.warmup)
        for optimiser, rate in ((self.muon, self.recipe.matrix_rate), (self.adamw, self.recipe.other_rate)):
            for group in optimiser.param_groups:
                group["lr"] = rate * factor
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
        return loss.detach()


def save_state(
    path: Path, model: nn.Module, optimisers: Mapping[str, torch.optim.Optimizer], clock: Clock
) -> None:
    """Write a training's state as one safetensors file, which has its name only when it is whole."""
    tensors = {f"model/{name}": value.detach() for name, value in model.state_dict().items()}
    for label, optimiser in optimisers.items():
        for index, state in optimiser.state_dict()["state"].items():
            tensors |= {f"{label}/{index}/{key}": torch.as_tensor(value) for key, value in state.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    about = {"clock": json.dumps(clock._asdict())}
    save_file({name: value.contiguous() for name, value in tensors.items()}, partial, metadata=about)
    partial.replace(path)


def load_state(path: Path, model: nn.Module, optimisers: Mapping[str, torch.optim.Optimizer]) -> Clock:
    """How far a training was; its model and optimisers are what they were then."""
    with safe_open(path, framework="pt") as file:
        clock = json.loads(file.metadata()["clock"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    model.load_state_dict({n.removeprefix("model/"): t for n, t in tensors.items() if n.startswith("model/")})
    for label, optimiser in optimisers.items():
        states: dict[int, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            if name.startswith(f"{label}/"):
                _, index, key = name.split("/")
                states.setdefault(int(index), {})[key] = tensor
        optimiser.load_state_dict({**optimiser.state_dict(), "state": states})
    return Clock(**clock)
