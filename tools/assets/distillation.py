"""Teach a small encoder to answer, token by token, what a larger one answers (knowledge distillation)."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from evenhand.classifiers.encoder import PAD, Encoder
from tools.assets.token_rows import Rows, autocast
from tools.assets.training_loop import Progress, Recipe, Trainer, create_optimisers


def mean_state(states: Tensor, mask: Tensor) -> Tensor:
    """The mean state of each row without padding: MiniLM's sentence vector before normalisation."""
    weights = mask[..., None].to(states.dtype)
    return (states * weights).sum(1) / weights.sum(1)


@dataclass(frozen=True, slots=True)
class DistilSpec:
    """How a student is taught."""

    recipe: Recipe = field(
        default_factory=lambda: Recipe(120, warmup=100, matrix_rate=0.005, other_rate=5e-4, weight_decay=0.01)
    )
    pairs: tuple[tuple[int, int], ...] = ((0, 0), (2, 3), (4, 6))
    """(student state, teacher state) to be matched; state 0 is the embedding."""
    weights: tuple[float, ...] = (0.3, 0.3, 1.0)
    sentence: float = 1.0
    """Weight of 1 - cosine between the mean states."""
    tokens: int = 32_768
    """Token ids a batch."""
    seed: int = 0


def distil(
    student: Encoder, teacher: Encoder, rows: Rows, spec: DistilSpec, *, checkpoint: Path | None = None
) -> Progress:
    """Where the training ended; the student is changed in place, over a cosine of the recipe's seconds.

    With a checkpoint the training goes on from it where it exists, and writes it every half minute.
    """
    teacher.eval()
    student.train()
    optimisers = create_optimisers(student, spec.recipe, fused=False)
    trainer = Trainer(student, spec.recipe, optimisers, checkpoint=checkpoint)
    batches = rows.endless(spec.seed + trainer.step, tokens=spec.tokens)
    return trainer.run(lambda _: distance(student, teacher, next(batches).ids, spec))


def distance(student: Encoder, teacher: Encoder, ids: Tensor, spec: DistilSpec) -> Tensor:
    """The loss: relative squared errors of matched states, weighted, and 1 - cosine of sentence vectors."""
    mask = ids != PAD
    with autocast(ids.device):
        with torch.no_grad():
            theirs = teacher.states(ids)
        ours = student.states(ids)
    errors = [
        weight * relative_error(ours[mine], theirs[other], mask)
        for (mine, other), weight in zip(spec.pairs, spec.weights, strict=True)
    ]
    cosine = F.cosine_similarity(mean_state(ours[-1].float(), mask), mean_state(theirs[-1].float(), mask))
    return torch.stack(errors).sum() + spec.sentence * (1 - cosine).mean()


def relative_error(ours: Tensor, theirs: Tensor, mask: Tensor) -> Tensor:
    """Squared error as a share of the teacher's variance over tokens, so that every state weighs alike."""
    kept = mask[..., None] / mask.sum()
    theirs = theirs.float()
    centre = (theirs * kept).sum((0, 1))
    variance = ((theirs - centre).square() * kept).sum()
    return ((ours.float() - theirs).square() * kept).sum() / variance


@torch.no_grad()
def fidelity(student: Encoder, teacher: Encoder, rows: Rows, *, tokens: int = 32_768) -> tuple[float, float]:
    """(mean cosine of sentence vectors, mean over batches of the last state's relative squared error)."""
    student.eval()
    teacher.eval()
    cosines, errors = [], []
    for batch in rows.batches(None, tokens=tokens):
        mask = batch.ids != PAD
        with autocast(batch.ids.device):
            ours, theirs = student(batch.ids).float(), teacher(batch.ids).float()
        cosines.append(F.cosine_similarity(mean_state(ours, mask), mean_state(theirs, mask)))
        errors.append(relative_error(ours, theirs, mask))
    return float(torch.cat(cosines).mean()), float(torch.stack(errors).mean())
