"""Make probabilities mean what they say: a scale and a shift for the logits, learned on texts kept for it."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from evenhand.classifiers.encoder import HEADS, Head
from tools.assets.multitask import loss


class ProbabilityCalibration(NamedTuple):
    """What logits are multiplied by and what is added to them, one number a label."""

    scale: Tensor
    shift: Tensor


def calibrate(
    logits: Tensor, targets: Tensor, heads: tuple[Head, ...] = HEADS, *, pull: float = 0.1
) -> ProbabilityCalibration:
    """The scales and shifts of least cross-entropy: Platt's for every label of an ``each`` head.

    A ``one-of`` head has one scale (a temperature; Guo et al. 2017) and a shift a label. ``targets`` is NaN
    where nobody said. ``pull`` draws towards no change, as that many texts would; it matters for rare labels.
    """
    groups = _groups(heads)
    log_scale = torch.zeros(int(groups.max()) + 1, dtype=torch.float64, requires_grad=True)
    shift = torch.zeros(logits.shape[1], dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([log_scale, shift], max_iter=200, line_search_fn="strong_wolfe")
    values, known = logits.double(), targets.double()

    def closure() -> Tensor:
        optimiser.zero_grad()
        moved = values * log_scale.exp()[groups] + shift
        total = loss(moved, known, heads, per=1.0) + pull * (log_scale.square().sum() + shift.square().sum())
        total.backward()  # type: ignore[no-untyped-call]
        return total

    optimiser.step(closure)  # type: ignore[no-untyped-call]
    return ProbabilityCalibration(log_scale.detach().exp()[groups].float(), shift.detach().float())


def _groups(heads: tuple[Head, ...]) -> Tensor:
    """The number of the scale each label has: one a ``one-of`` head, one a label elsewhere."""
    found: list[int] = []
    for head in heads:
        first = found[-1] + 1 if found else 0
        found += [first if head.kind == "one-of" else first + place for place in range(len(head.labels))]
    return torch.tensor(found)
