"""Fine-tune any network that reads token ids and returns one logit per label.

The loop: AdamW, linear warm-up and linear decay, bfloat16 on a GPU, a checkpoint after every epoch.
Each epoch derives its order and dropout from (seed, epoch), so that an interrupted and resumed run ends
with the same weights as an uninterrupted one (bit for bit on a CPU).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.optim import Optimizer

from evenhand.core.errors import ModelError
from evenhand.tensors.batching import map_by_length, pad_rows
from evenhand.training.options import EpochLosses, FineTuningConfig


def descend(
    loss: Tensor,
    *optimisers: Optimizer,
    factor: float = 1.0,
    clipped: nn.Module | None = None,
    clip: float = 1.0,
) -> Tensor:
    """Take one step on a loss, each optimiser at its initial learning rate times ``factor``; return the loss.

    The gradient norm of the network ``clipped`` is clipped to ``clip``.
    """
    loss.backward()  # type: ignore[no-untyped-call]
    if clipped is not None:
        nn.utils.clip_grad_norm_(clipped.parameters(), clip)
    for optimiser in optimisers:
        for group in optimiser.param_groups:
            group["lr"] = group.setdefault("initial_lr", group["lr"]) * factor
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
    return loss.detach()


def save_checkpoint(
    path: Path,
    network: nn.Module,
    optimisers: Mapping[str, Optimizer],
    *,
    about: Mapping[str, str],
    more: Mapping[str, Tensor] | None = None,
) -> None:
    """Write a network, its optimisers and ``more`` tensors as one safetensors file."""
    tensors = {f"model/{name}": value for name, value in network.state_dict().items()} | dict(more or {})
    for label, optimiser in optimisers.items():
        for index, state in optimiser.state_dict()["state"].items():
            tensors |= {f"{label}/{index}/{key}": torch.as_tensor(value) for key, value in state.items()}
    write_whole(path, tensors, about=about)


def load_checkpoint(
    path: Path, network: nn.Module, optimisers: Mapping[str, Optimizer]
) -> dict[str, dict[str, Tensor]]:
    """Restore a network and its optimisers; return the other tensors, by the part before the slash."""
    parts: dict[str, dict[str, Tensor]] = {}
    with safe_open(path, framework="pt") as file:
        for name in file.keys():  # noqa: SIM118 (not a mapping)
            part, _, rest = name.partition("/")
            parts.setdefault(part, {})[rest] = file.get_tensor(name)
    network.load_state_dict(parts.pop("model"))
    for label, optimiser in optimisers.items():
        states: dict[int, dict[str, Tensor]] = {}
        for name, tensor in parts.pop(label, {}).items():
            index, _, key = name.partition("/")
            states.setdefault(int(index), {})[key] = tensor
        optimiser.load_state_dict({**optimiser.state_dict(), "state": states})
    return parts


def read_about(path: Path) -> Mapping[str, str]:
    """The metadata of a checkpoint."""
    with safe_open(path, framework="pt") as file:
        return dict(file.metadata())


def write_whole(path: Path, tensors: Mapping[str, Tensor], *, about: Mapping[str, str] | None = None) -> None:
    """Write tensors to a safetensors file atomically."""
    # Not `store.atomic_writes`: it needs Polars, which may be missing on a GPU machine.
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".partial")
    # Tied weights share memory, which safetensors rejects: each gets its own copy.
    copies = {name: value.detach().cpu().clone().contiguous() for name, value in tensors.items()}
    save_file(copies, unfinished, metadata=None if about is None else dict(about))
    unfinished.replace(path)


_POOL: Final = 16
"""Batches drawn together and sorted by length, to minimise padding."""


class EncodedTexts(NamedTuple):
    """Texts as token ids, and their labels."""

    rows: Sequence[Sequence[int]]
    labels: NDArray[np.int64] | NDArray[np.float32]
    """The number of each text's label, or for multi-label data a 0 or 1 for each label."""


class Padding(NamedTuple):
    """How the rows of a batch are padded to equal length."""

    token: int
    left: bool = False


class FineTuner:
    """A network on its device, its optimiser, and its progress."""

    def __init__(
        self, network: nn.Module, recipe: FineTuningConfig, *, padding: Padding, device: torch.device | str
    ) -> None:
        self.network, self.recipe, self.padding = network, recipe, padding
        self.device = torch.device(device)
        network.to(self.device)
        matrices = [p for p in network.parameters() if p.ndim >= 2]
        vectors = [p for p in network.parameters() if p.ndim < 2]
        # Vectors are biases and norms: weight decay only hurts them.
        decays = ((matrices, recipe.weight_decay), (vectors, 0.0))
        groups = [{"params": params, "weight_decay": decay} for params, decay in decays if params]
        self.optimiser = torch.optim.AdamW(groups, lr=recipe.rate)
        self._epochs: list[EpochLosses] = []
        self._best: dict[str, Tensor] | None = None

    def run(
        self,
        data: EncodedTexts,
        held_out: EncodedTexts,
        *,
        checkpoint: Path | None = None,
        on_step: Callable[[int], None] = lambda done: None,
    ) -> list[EpochLosses]:
        """Train to the end, from the checkpoint if there is one; returns the losses of each epoch.

        ``on_step`` gets the number of steps just done. The network is left in its final state: the last
        epoch's, or with ``patience`` that of the lowest held-out loss.
        """
        per_epoch, optimisers = math.ceil(len(data.rows) / self.recipe.batch), {"adamw": self.optimiser}
        if checkpoint is not None and checkpoint.exists():
            self._epochs = [EpochLosses(*epoch) for epoch in json.loads(read_about(checkpoint)["epochs"])]
            self._best = load_checkpoint(checkpoint, self.network, optimisers).get("best")
            on_step(per_epoch * len(self._epochs))
        while len(self._epochs) < self.recipe.epochs and not self._is_over():
            self._epoch(data, held_out, per_epoch, on_step)
            if checkpoint is not None:
                best = {f"best/{name}": value for name, value in (self._best or {}).items()}
                about = {"epochs": json.dumps(self._epochs)}
                save_checkpoint(checkpoint, self.network, optimisers, about=about, more=best)
        if self._best is not None:
            self.network.load_state_dict(self._best)
        self.network.eval()
        return list(self._epochs)

    @torch.no_grad()
    def logits(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """The logits of every row, in order, on the CPU."""
        self.network.eval()
        answers = map_by_length(
            rows, lambda batch: list(self._read(batch).float().cpu()), rows=self.recipe.batch
        )
        return torch.stack(answers)

    def _epoch(
        self, data: EncodedTexts, held_out: EncodedTexts, per_epoch: int, on_step: Callable[[int], None]
    ) -> None:
        number, recipe = len(self._epochs), self.recipe
        total = per_epoch * recipe.epochs
        losses: list[float] = []
        with torch.random.fork_rng():
            torch.manual_seed(recipe.seed * 1000 + number)
            self.network.train()
            for step, places in enumerate(self._batches(data, number), start=per_epoch * number):
                answers = self._read([data.rows[place] for place in places])
                truth = torch.from_numpy(data.labels[places]).to(self.device)
                factor = learning_rate_factor(step, total, recipe.warmup, is_constant=recipe.is_constant)
                loss = cross_entropy(answers.float(), truth)
                loss = descend(loss, self.optimiser, factor=factor, clipped=self.network, clip=recipe.clip)
                losses.append(float(loss))
                on_step(1)
        epoch = EpochLosses(float(np.mean(losses)), self.loss(held_out))
        if not all(map(math.isfinite, epoch)):
            raise ModelError(
                f"the loss of epoch {number + 1} is not a number",
                expected="a learning rate at which training converges",
                fix="train again with a lower --learning-rate",
            )
        earlier = [other.held_out_loss for other in self._epochs]
        if recipe.patience is not None and epoch.held_out_loss < min(earlier, default=math.inf):
            weights = self.network.state_dict().items()
            self._best = {name: value.detach().clone() for name, value in weights}
        self._epochs.append(epoch)

    def loss(self, data: EncodedTexts) -> float:
        """Mean cross-entropy, in nats."""
        return float(cross_entropy(self.logits(data.rows), torch.from_numpy(data.labels)))

    def _read(self, rows: Sequence[Sequence[int]]) -> Tensor:
        pad = partial(pad_rows, device=self.device, left=self.padding.left)
        ids, mask = pad(rows, filler=self.padding.token), pad([[1] * len(row) for row in rows])
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.device.type == "cuda"):
            answers: Tensor = self.network(ids, mask)
        return answers

    def _batches(self, data: EncodedTexts, epoch: int) -> Iterator[NDArray[np.int64]]:
        """The indices of each batch: drawn at random, then sorted by length within a pool of batches."""
        rng = np.random.default_rng([self.recipe.seed, epoch])
        order = rng.permutation(len(data.rows))
        lengths = np.array([len(row) for row in data.rows])
        size = self.recipe.batch
        for start in range(0, len(order), size * _POOL):
            pool = order[start : start + size * _POOL]
            pool = pool[np.argsort(lengths[pool], kind="stable")]
            cuts = range(0, len(pool), size)
            for number in rng.permutation(len(cuts)):
                yield pool[cuts[number] : cuts[number] + size]

    def _is_over(self) -> bool:
        losses = [epoch.held_out_loss for epoch in self._epochs]
        if self.recipe.patience is None or not losses:
            return False
        return len(losses) - 1 - losses.index(min(losses)) >= self.recipe.patience


def cross_entropy(logits: Tensor, truth: Tensor) -> Tensor:
    """Mean cross-entropy of one label per row, or binary cross-entropy per label if ``truth`` is a table."""
    if truth.ndim == 2:
        return F.binary_cross_entropy_with_logits(logits, truth)
    return F.cross_entropy(logits, truth)


def learning_rate_factor(step: int, total: int, warmup: float, *, is_constant: bool = False) -> float:
    """The learning-rate factor: rises linearly over the warm-up's share of steps, then falls linearly to 0.

    A constant rate stays at 1 after the warm-up.

    >>> [round(learning_rate_factor(step, 10, 0.2), 3) for step in (0, 1, 2, 9)]
    [0.5, 1.0, 1.0, 0.125]
    """
    rising = max(1, round(total * warmup))
    if step < rising:
        return (step + 1) / rising
    if is_constant:
        return 1.0
    return (total - step) / max(1, total - rising)
