"""Train one of the two language models.

`python -m tools.assets.train_language_model causal --data DIR --out DIR --budget SECONDS`, or `masked`.
"""

from __future__ import annotations

import argparse
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import torch
from torch import Tensor

from tools.assets import token_shards, train_tokenizer
from tools.assets.export_weights import save_folder
from tools.assets.language_models import CausalModel, CausalShape, MaskedModel, MaskedShape, compile_parts
from tools.assets.training_loop import Progress, Recipe, Trainer, create_optimisers
from tools.assets.training_windows import Windows

_LOG = logging.getLogger(__name__)

SHAPES: Final = {"causal": CausalShape(), "masked": MaskedShape()}
ROWS: Final = {"causal": 512, "masked": 1024}
"""Windows in a batch."""
CAUSAL_RATE: Final = 2e-3
MASKED_RATE: Final = 1.5e-3
"""AdamW's learning rates for embeddings and vectors."""
TARGET_SHARE: Final = 0.2
MANY_SHARE: Final = 0.5
"""Share of tokens to predict in most steps, and in every eighth, so that many masks can be filled too."""
SHORT_EVERY: Final = 4
MANY_EVERY: Final = 8
SHORTENING: Final = 4


@dataclass(frozen=True, slots=True)
class Job:
    """One call of the command."""

    data: Path
    """Folder of training shards (*.u16.xz, read in the order of their names) and `tokenizer.json`."""
    out: Path
    """Folder for the checkpoint and the exported model."""
    budget: float
    """Seconds of training in all."""
    seconds: float
    """Seconds of training in this call."""
    rows: int
    """Windows in a batch."""
    device: str
    seed: int

    @property
    def dtype(self) -> torch.dtype:
        """Return the type activations have: bfloat16 on a GPU, float32 on a CPU."""
        return torch.bfloat16 if self.device == "cuda" else torch.float32


class Batch(NamedTuple):
    """The shape of one step's batch of a masked model."""

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


def train(job: Job, shape: CausalShape | MaskedShape) -> Progress:
    """Return where training stands after the job, which goes on from its checkpoint and exports the model."""
    torch.manual_seed(job.seed)
    model = CausalModel(shape) if isinstance(shape, CausalShape) else MaskedModel(shape)
    rate = CAUSAL_RATE if isinstance(shape, CausalShape) else MASKED_RATE
    job.out.mkdir(parents=True, exist_ok=True)
    on_gpu = job.device == "cuda"
    torch.nn.Module.to(model, job.device)
    recipe = Recipe(seconds=job.budget, other_rate=rate)
    optimisers = create_optimisers(model, recipe, fused=on_gpu)
    trainer = Trainer(model, recipe, optimisers, checkpoint=job.out / "checkpoint.safetensors")
    if on_gpu:
        compile_parts(model)
    windows = open_windows(job, salt=trainer.step)

    def loss_of(step: int) -> Tensor:
        if isinstance(model, CausalModel):
            return model.loss(windows.causal(job.rows, shape.context), dtype=job.dtype)
        batch = windows.masked(*batch_of(step, rows=job.rows, length=shape.context))
        return model.loss(batch.inputs, batch.positions, batch.targets, dtype=job.dtype)

    progress = trainer.run(loss_of, seconds=job.seconds)
    _LOG.info("%d steps, %.1f s, loss %.4f", *progress)
    save_folder(model, job.out, tokenizer_file=job.data / "tokenizer.json")
    return progress


def open_windows(job: Job, *, salt: int) -> Windows:
    """Return the training windows on the job's device.

    `salt` is the step reached, so that a restart draws other windows than the first call did.
    """
    tables = train_tokenizer.sentence_tables(train_tokenizer.load(job.data / "tokenizer.json"))
    tokens = token_shards.read(sorted(job.data.glob(f"*{token_shards.SUFFIX}")))
    _LOG.info("%d tokens", len(tokens))
    return Windows(tokens, tables, device=job.device, seed=job.seed + salt)


def main(argv: list[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=list(SHAPES))
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--budget", type=float, required=True, help="seconds of training over all calls")
    parser.add_argument("--seconds", type=float, help="seconds in this call (default: the whole budget)")
    parser.add_argument("--rows", type=int, help="windows in a batch (default 512, or 1024 if masked)")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    seconds = args.budget if args.seconds is None else args.seconds
    rows = args.rows or ROWS[args.model]
    job = Job(args.data, args.out, args.budget, seconds, rows, args.device, args.seed)
    train(job, SHAPES[args.model])


if __name__ == "__main__":
    main()
