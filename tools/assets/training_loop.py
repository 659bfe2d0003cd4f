"""The loop the trainings share: a time budget, a cosine over it, checkpoints, and two optimisers.

Muon trains the matrices inside blocks, AdamW embeddings and vectors.
"""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from evenhand.training.finetuning import descend, load_checkpoint, read_about, save_checkpoint

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


# Quintic whose iteration drives every singular value into about [0.7, 1.2] (Jordan et al. 2024, Muon).
_A, _B, _C = 3.4445, -4.7750, 2.0315
_STEPS: Final = 5


def orthogonalise(stack: Tensor) -> Tensor:
    """Return each matrix of a (n, rows, columns) stack with its singular values pushed near 1, in bf16.

    Five Newton-Schulz steps; rows must not exceed columns (transpose first), so the products stay small.
    """
    x: Tensor = stack.bfloat16()
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(_STEPS):
        gram = x @ x.mT
        x = _A * x + (_B * gram + _C * gram @ gram) @ x
    return x


class Muon(torch.optim.Optimizer):
    """Momentum, orthogonalised: each matrix moves by a near-orthogonal step, whatever its gradient's scale.

    Matrices of one shape are handled as one stack. A parameter with `muon_parts` n is n matrices side by side
    (query, key and value in one), orthogonalised apart.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        *,
        lr: float = 0.02,
        momentum: float = 0.95,
        weight_decay: float = 0.1,
    ) -> None:
        """Take the matrices to train; `lr` is the size of a step's singular values for a square matrix."""
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})
        self._orthogonalise = orthogonalise

    def compile(self) -> None:
        """Compile the orthogonalisation (worth it on a GPU)."""
        self._orthogonalise = torch.compile(orthogonalise, dynamic=False)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Move every matrix that has a gradient."""
        for group in self.param_groups:
            parameters = [p for p in group["params"] if p.grad is not None]
            momenta = self._momenta(parameters, group["momentum"])
            torch._foreach_mul_(parameters, 1 - group["lr"] * group["weight_decay"])
            self._move(parameters, momenta, lr=group["lr"])

    def _momenta(self, parameters: Sequence[nn.Parameter], beta: float) -> list[Tensor]:
        """Return the Nesterov momentum of each parameter, updating its buffer."""
        for parameter in parameters:
            if "momentum" not in self.state[parameter]:
                self.state[parameter]["momentum"] = torch.zeros_like(parameter)
        gradients = [p.grad for p in parameters if p.grad is not None]
        buffers = [self.state[p]["momentum"] for p in parameters]
        torch._foreach_lerp_(buffers, gradients, 1 - beta)
        return list(torch._foreach_lerp(gradients, buffers, beta))

    def _move(self, parameters: Sequence[nn.Parameter], momenta: Sequence[Tensor], *, lr: float) -> None:
        stacks: dict[tuple[int, int], list[tuple[Tensor, Tensor]]] = {}
        for parameter, momentum in zip(parameters, momenta, strict=True):
            for view, part in zip(_parts(parameter, parameter), _parts(parameter, momentum), strict=True):
                stacks.setdefault((part.shape[0], part.shape[1]), []).append((view, part))
        for (rows, columns), pairs in stacks.items():
            steps = self._orthogonalise(torch.stack([part for _, part in pairs]))
            # Equal root mean square, 1 / sqrt(rows), for every shape: long matrices move as far as square.
            scale = -lr * math.sqrt(columns / rows)
            torch._foreach_add_([view for view, _ in pairs], list(steps.float().unbind()), alpha=scale)


def _parts(parameter: nn.Parameter, value: Tensor) -> list[Tensor]:
    """Return the matrices inside one parameter as views, each with no more rows than columns."""
    count = getattr(parameter, "muon_parts", 1)
    longest = 0 if value.shape[0] > value.shape[1] else 1
    return [part if part.shape[0] <= part.shape[1] else part.mT for part in value.chunk(count, dim=longest)]


def adamw(
    parameters: Iterable[nn.Parameter], *, lr: float, weight_decay: float, fused: bool
) -> torch.optim.AdamW:
    """Return AdamW with the betas (0.9, 0.95) small language models are usually trained with."""
    return torch.optim.AdamW(parameters, lr=lr, betas=(0.9, 0.95), weight_decay=weight_decay, fused=fused)


def divide(model: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Return (matrices inside blocks, everything else): blocks are what the model lists in `blocks()`."""
    blocks: Iterable[nn.Module] = model.blocks()  # type: ignore[operator]
    matrices = [p for block in blocks for p in block.parameters() if p.ndim == 2]
    taken = {id(p) for p in matrices}
    return matrices, [p for p in model.parameters() if id(p) not in taken]


def time_cosine(elapsed: float, budget: float, *, step: int, warmup: int) -> float:
    """Return the factor on the learning rates: a warm-up in steps times a cosine to 0 over the budget."""
    progress = min(max(elapsed / budget, 0.0), 1.0)
    return min(1.0, (step + 1) / warmup) * 0.5 * (1 + math.cos(math.pi * progress))
