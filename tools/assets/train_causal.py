"""Train the causal language model.

`python -m tools.assets.train_causal --data DIR --out DIR --budget SECONDS`
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch
from torch import Tensor

from tools.assets import training_command
from tools.assets.language_models import CausalModel, CausalShape
from tools.assets.training_loop import Progress, Recipe
from tools.assets.training_windows import Windows

ROWS: Final = 512
OTHER_RATE: Final = 2e-3
"""AdamW's learning rate for embeddings and vectors."""


def train(job: training_command.Job, shape: CausalShape) -> Progress:
    """Return where training a model of this shape stands after the job."""
    torch.manual_seed(job.seed)
    model = CausalModel(shape)

    def loss_of(windows: Windows) -> Callable[[int], Tensor]:
        return lambda _: model.loss(windows.causal(job.rows, shape.context), dtype=job.dtype)

    return training_command.train(model, Recipe(seconds=job.budget, other_rate=OTHER_RATE), job, loss_of)


def main(argv: list[str] | None = None) -> None:
    """Run the command."""
    train(training_command.parse(argv, rows=ROWS), CausalShape())


if __name__ == "__main__":
    main()
