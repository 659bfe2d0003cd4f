"""What the two training commands share: arguments, data folders, logging, the call on the device."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from tools.assets import token_shards, train_tokenizer
from tools.assets.export_weights import save_folder
from tools.assets.language_models import CausalModel, MaskedModel, compile_parts
from tools.assets.training_loop import Progress, Recipe, Trainer, create_optimisers
from tools.assets.training_windows import Windows

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Job:
    """One call of a training command."""

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


def parse(argv: list[str] | None, *, rows: int) -> Job:
    """Return the job that command-line arguments describe."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--budget", type=float, required=True, help="seconds of training over all calls")
    parser.add_argument(
        "--seconds", type=float, help="seconds in this call (default: to the end of the budget)"
    )
    parser.add_argument("--rows", type=int, default=rows)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    seconds = args.budget if args.seconds is None else args.seconds
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    return Job(args.data, args.out, args.budget, seconds, args.rows, args.device, args.seed)


def open_windows(job: Job, *, salt: int) -> Windows:
    """Return the training windows on the job's device.

    `salt` is the step reached, so that a restart draws other windows than the first call did.
    """
    tables = train_tokenizer.sentence_tables(train_tokenizer.load(job.data / "tokenizer.json"))
    tokens = token_shards.read(sorted(job.data.glob(f"*{token_shards.SUFFIX}")))
    _LOG.info("%d tokens", len(tokens))
    return Windows(tokens, tables, device=job.device, seed=job.seed + salt)


def train(
    model: CausalModel | MaskedModel,
    recipe: Recipe,
    job: Job,
    loss_of: Callable[[Windows], Callable[[int], Tensor]],
) -> Progress:
    """Return where training stands after the job, which goes on from its checkpoint and exports the model.

    `loss_of(windows)` returns the function that draws a step's batch and returns its loss.
    """
    job.out.mkdir(parents=True, exist_ok=True)
    on_gpu = job.device == "cuda"
    model.to(job.device)
    optimisers = create_optimisers(model, recipe, fused=on_gpu)
    trainer = Trainer(model, recipe, optimisers, checkpoint=job.out / "checkpoint.safetensors")
    if on_gpu:
        compile_parts(model)
    windows = open_windows(job, salt=trainer.step)
    progress = trainer.run(loss_of(windows), seconds=job.seconds)
    _LOG.info("%d steps, %.1f s, loss %.4f", *progress)
    save_folder(model, job.out, tokenizer_file=job.data / "tokenizer.json")
    return progress
