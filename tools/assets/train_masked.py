"""Train the masked language model.

`python -m tools.assets.train_masked --data DIR --out DIR --budget SECONDS`
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import torch
from torch import Tensor

from tools.assets import training_command
from tools.assets.language_models import MaskedModel, MaskedShape
from tools.assets.training_loop import Progress, Recipe
from tools.assets.training_windows import Windows

ROWS: Final = 1024
OTHER_RATE: Final = 1.5e-3
"""AdamW's learning rate for embeddings and vectors."""
TARGET_SHARE: Final = 0.2
MANY_SHARE: Final = 0.5
"""Share of tokens to predict in most steps, and in every eighth, so that many masks can be filled too."""
SHORT_EVERY: Final = 4
MANY_EVERY: Final = 8
SHORTENING: Final = 4


class Batch(NamedTuple):
    """The shape of one step's batch."""

    rows: int
    length: int
    targets: int


def batch_of(step: int, *, rows: int, length: int) -> Batch:
    """Return the batch of a step: every fourth has windows a quarter as long, every eighth many masks.

    The two never fall together, so three shapes occur and each is compiled once.
    """
    if step % SHORT_EVERY == 1:
        rows, length = rows * SHORTENING, length // SHORTENING
    share = MANY_SHARE if step % MANY_EVERY == 0 else TARGET_SHARE
    return Batch(rows, length, max(1, round(share * (length - 2))))


def train(job: training_command.Job, shape: MaskedShape) -> Progress:
    """Return where training a model of this shape stands after the job."""
    torch.manual_seed(job.seed)
    model = MaskedModel(shape)

    def loss_of(windows: Windows) -> Callable[[int], Tensor]:
        def loss(step: int) -> Tensor:
            batch = windows.masked(*batch_of(step, rows=job.rows, length=shape.context))
            return model.loss(batch.inputs, batch.positions, batch.targets, dtype=job.dtype)

        return loss

    return training_command.train(model, Recipe(seconds=job.budget, other_rate=OTHER_RATE), job, loss_of)


def main(argv: list[str] | None = None) -> None:
    """Run the command."""
    train(training_command.parse(argv, rows=ROWS), MaskedShape())


if __name__ == "__main__":
    main()
