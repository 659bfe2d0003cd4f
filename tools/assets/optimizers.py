"""Two optimisers for one model: Muon for the matrices inside blocks, AdamW for embeddings and vectors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

import torch
from torch import Tensor, nn

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
