"""Fine-tune an encoder with several heads at once: from labels, another classifier's answers, or both."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from evenhand.classifiers.encoder import HEADS, ClassifierNetwork, Head
from tools.assets.token_rows import Batch, Rows, autocast
from tools.assets.training_loop import Recipe, Trainer, adamw

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


def tune(
    network: ClassifierNetwork,
    data: Labelled,
    spec: TuneSpec,
    *,
    teacher: Tensor | None = None,
    checkpoint: Path | None = None,
) -> int:
    """The steps taken; the network is changed in place.

    ``teacher`` holds another classifier's probabilities for every text and label, also where no label is.
    With a checkpoint the training goes on from it where it exists, and writes it every half minute.
    """
    fused = data.rows.tokens.device.type == "cuda"
    tops = [network.queries, network.weight, network.bias]
    optimiser = adamw(network.encoder.parameters(), lr=spec.rate, weight_decay=spec.weight_decay, fused=fused)
    optimiser.add_param_group({"params": tops, "lr": spec.head_rate, "weight_decay": 0.0})
    recipe = Recipe(spec.seconds, warmup=spec.warmup)
    trainer = Trainer(network, recipe, {"adamw": optimiser}, checkpoint=checkpoint)
    torch.manual_seed(spec.seed + trainer.step)
    batches = data.rows.endless(spec.seed + trainer.step, tokens=spec.tokens, places=data.epoch())
    network.train()
    trainer.run(lambda _: _step_loss(network, data, next(batches), teacher, spec))
    network.eval()
    return trainer.step


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
