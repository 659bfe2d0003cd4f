"""Fine-tune an encoder with several heads at once: from labels, another classifier's answers, or both."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from evenhand.neural.encoder import ClassifierNetwork
from evenhand.neural.heads import HEADS, Head
from evenhand.training.optim import adamw, time_cosine
from evenhand.training.rows import Batch, Rows, autocast

_TYPICAL_LENGTH = 32
"""Token ids of a usual text: tells how many texts a batch holds, for the scale of the loss alone."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """Texts and their targets."""

    rows: Rows
    targets: Tensor
    """(texts, labels of all heads) in [0, 1], on the rows' device; NaN where nobody said."""
    repeats: NDArray[np.int64]
    """How often each text is met in one epoch: small data sets count more than once."""

    def epoch(self) -> NDArray[np.int64]:
        """The places of one epoch."""
        return np.repeat(np.arange(len(self.rows)), self.repeats)


@dataclass(frozen=True, slots=True)
class TuneSpec:
    """How a classifier is fine-tuned."""

    seconds: float = 30.0
    tokens: int = 8_192
    rate: float = 1e-4
    head_rate: float = 1e-3
    weight_decay: float = 0.01
    warmup: int = 100
    soft: float = 0.0
    """Weight of the teacher's answers; the labels weigh the rest."""
    seed: int = 0


def tune(network: ClassifierNetwork, data: Labelled, spec: TuneSpec, *, teacher: Tensor | None = None) -> int:
    """The steps taken; the network is changed in place.

    ``teacher`` holds another classifier's probabilities for every text and label, also where no label is.
    """
    torch.manual_seed(spec.seed)
    device = data.rows.tokens.device
    trunk = list(network.encoder.parameters())
    tops = [network.queries, network.weight, network.bias]
    optimiser = adamw(trunk, lr=spec.rate, weight_decay=spec.weight_decay, fused=device.type == "cuda")
    optimiser.add_param_group({"params": tops, "lr": spec.head_rate, "weight_decay": 0.0})
    bases = [group["lr"] for group in optimiser.param_groups]
    network.train()
    start, step = time.monotonic(), 0
    for batch in data.rows.endless(spec.seed, tokens=spec.tokens, places=data.epoch()):
        elapsed = time.monotonic() - start
        if elapsed > spec.seconds:
            break
        factor = time_cosine(elapsed, spec.seconds, step=step, warmup=spec.warmup)
        for group, base in zip(optimiser.param_groups, bases, strict=True):
            group["lr"] = base * factor
        loss = _step_loss(network, data, batch, teacher, spec)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        step += 1
    network.eval()
    return step


@torch.no_grad()
def logits(network: ClassifierNetwork, rows: Rows, *, tokens: int = 65_536) -> Tensor:
    """The logits of every row, in the rows' order."""
    network.eval()
    found = torch.empty(len(rows), network.weight.shape[0], device=rows.tokens.device)
    for batch in rows.batches(None, tokens=tokens):
        with autocast(rows.tokens.device):
            found[batch.places] = network(batch.ids)
    return found


def loss(
    values: Tensor, targets: Tensor, heads: tuple[Head, ...] = HEADS, *, per: float | None = None
) -> Tensor:
    """Cross-entropy over the targets that are known, summed over heads.

    Each head counts its mean over texts, or, with ``per``, its sum over texts divided by that number, so that
    a text weighs the same in every batch.
    """
    sizes = [len(head.labels) for head in heads]
    total = values.sum() * 0.0
    parts = zip(heads, torch.split(values, sizes, -1), torch.split(targets, sizes, -1), strict=True)
    for head, mine, truth in parts:
        known = ~truth.isnan()
        if head.kind == "one-of":
            known = known.all(-1)
            entropy = -(truth.nan_to_num() * mine.log_softmax(-1)).sum(-1)
        else:
            entropy = F.binary_cross_entropy_with_logits(mine, truth.nan_to_num(), reduction="none")
        count = known.sum().clamp(min=1) if per is None else per
        total = total + (entropy * known).sum() / count
    return total


def _step_loss(
    network: ClassifierNetwork, data: Labelled, batch: Batch, teacher: Tensor | None, spec: TuneSpec
) -> Tensor:
    with autocast(batch.ids.device):
        values = network(batch.ids)
    per = spec.tokens / _TYPICAL_LENGTH
    hard = loss(values, data.targets[batch.places], network.heads, per=per)
    if teacher is None:
        return hard
    return (1 - spec.soft) * hard + spec.soft * loss(values, teacher[batch.places], network.heads, per=per)
