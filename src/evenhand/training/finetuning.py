"""Fine-tune any network that reads token ids and answers with one logit a label.

The loop: AdamW, a linear warm-up and a linear way down, bfloat16 on a GPU, a checkpoint after every epoch.
Each epoch draws its order and its dropout from (seed, epoch), so that a run that was stopped and goes on ends
with the same weights as one that was not (on a CPU bit by bit).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from evenhand.core.errors import ModelError
from evenhand.training.presets import EpochLosses, FineTuningConfig

_POOL: Final = 16
"""Batches drawn together and sorted by length, so that little is spent on padding."""


class EncodedTexts(NamedTuple):
    """Texts as token ids, and their labels."""

    rows: Sequence[Sequence[int]]
    labels: NDArray[np.int64] | NDArray[np.float32]
    """The number of each text's one label, or for labels that do not exclude each other a 0 or 1 for each."""


class Padding(NamedTuple):
    """How rows of a batch are made equally long."""

    token: int
    left: bool = False


@dataclass(slots=True)
class _State:
    epochs: list[EpochLosses] = field(default_factory=list)
    best: dict[str, Tensor] | None = None


def _ignore_progress(done: int) -> None:
    return None


class FineTuner:
    """A network on its device, its optimiser, and how far it is."""

    def __init__(
        self, network: nn.Module, recipe: FineTuningConfig, *, padding: Padding, device: torch.device | str
    ) -> None:
        self.network, self.recipe, self.padding = network, recipe, padding
        self.device = torch.device(device)
        network.to(self.device)
        plain = [p for p in network.parameters() if p.ndim < 2]
        matrices = [p for p in network.parameters() if p.ndim >= 2]
        # Vectors are biases and norms: decaying them towards 0 only hurts.
        groups = [
            {"params": matrices, "weight_decay": recipe.weight_decay},
            {"params": plain, "weight_decay": 0.0},
        ]
        self.optimiser = torch.optim.AdamW([g for g in groups if g["params"]], lr=recipe.rate)
        self._state = _State()

    def run(
        self,
        data: EncodedTexts,
        held_out: EncodedTexts,
        *,
        checkpoint: Path | None = None,
        on_step: Callable[[int], None] = _ignore_progress,
    ) -> list[EpochLosses]:
        """Train to the end, from the checkpoint where there is one; what each epoch came to.

        ``on_step`` is told the number of steps just done. The network is left in its final state: the last
        epoch's, or with ``patience`` that of the lowest held-out loss.
        """
        per_epoch = math.ceil(len(data.rows) / self.recipe.batch)
        if checkpoint is not None and checkpoint.exists():
            self.load(checkpoint)
            on_step(per_epoch * len(self._state.epochs))
        while len(self._state.epochs) < self.recipe.epochs and not self._is_over():
            self._epoch(data, held_out, per_epoch, on_step)
            if checkpoint is not None:
                self.save(checkpoint)
        if self._state.best is not None:
            self.network.load_state_dict(self._state.best)
        self.network.eval()
        return list(self._state.epochs)

    @torch.no_grad()
    def logits(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """The logits of every row, in the rows' order, on the CPU."""
        self.network.eval()
        order = sorted(range(len(rows)), key=lambda place: -len(rows[place]))
        found: list[tuple[int, Tensor]] = []
        for start in range(0, len(order), self.recipe.batch):
            places = order[start : start + self.recipe.batch]
            answers = self._read([rows[place] for place in places]).float().cpu()
            found += zip(places, answers, strict=True)
        return torch.stack([answer for _, answer in sorted(found, key=lambda pair: pair[0])])

    def save(self, path: Path) -> None:
        """Write network, optimiser and history as one safetensors file, named only when whole."""
        tensors = {f"model/{name}": value for name, value in self.network.state_dict().items()}
        tensors |= {f"best/{name}": value for name, value in (self._state.best or {}).items()}
        for index, state in self.optimiser.state_dict()["state"].items():
            tensors |= {f"adamw/{index}/{key}": torch.as_tensor(value) for key, value in state.items()}
        # Tied weights share memory, which safetensors refuses: each gets a copy of its own.
        whole = {name: value.detach().cpu().clone().contiguous() for name, value in tensors.items()}
        partial = path.with_suffix(".partial")
        save_file(whole, partial, metadata={"epochs": json.dumps(self._state.epochs)})
        partial.replace(path)

    def load(self, path: Path) -> None:
        """Go on from a checkpoint of the same network and recipe."""
        parts: dict[str, dict[str, Tensor]] = {"model": {}, "best": {}, "adamw": {}}
        with safe_open(path, framework="pt") as file:
            self._state.epochs = [EpochLosses(*epoch) for epoch in json.loads(file.metadata()["epochs"])]
            for name in file.keys():  # noqa: SIM118 (not a mapping)
                part, _, rest = name.partition("/")
                parts[part][rest] = file.get_tensor(name)
        self.network.load_state_dict(parts["model"])
        self._state.best = parts["best"] or None
        states: dict[int, dict[str, Tensor]] = {}
        for name, tensor in parts["adamw"].items():
            index, _, key = name.partition("/")
            states.setdefault(int(index), {})[key] = tensor
        self.optimiser.load_state_dict({**self.optimiser.state_dict(), "state": states})

    def _epoch(
        self, data: EncodedTexts, held_out: EncodedTexts, per_epoch: int, on_step: Callable[[int], None]
    ) -> None:
        number = len(self._state.epochs)
        total = per_epoch * self.recipe.epochs
        losses: list[float] = []
        with torch.random.fork_rng():
            torch.manual_seed(self.recipe.seed * 1000 + number)
            self.network.train()
            for step, places in enumerate(self._batches(data, number), start=per_epoch * number):
                losses.append(
                    self._step(
                        data,
                        places,
                        learning_rate_factor(
                            step, total, self.recipe.warmup, is_constant=self.recipe.is_constant
                        ),
                    )
                )
                on_step(1)
        epoch = EpochLosses(float(np.mean(losses)), self.loss(held_out))
        if not all(map(math.isfinite, epoch)):
            raise ModelError(
                f"the loss of epoch {number + 1} is not a number",
                expected="a learning rate the network can follow",
                fix="train again with a lower --learning-rate",
            )
        self._keep_best(epoch)
        self._state.epochs.append(epoch)

    def loss(self, data: EncodedTexts) -> float:
        """Mean cross-entropy, in nats."""
        return float(cross_entropy(self.logits(data.rows), torch.from_numpy(data.labels)))

    def _step(self, data: EncodedTexts, places: NDArray[np.int64], share: float) -> float:
        for group in self.optimiser.param_groups:
            group["lr"] = self.recipe.rate * share
        answers = self._read([data.rows[place] for place in places])
        truth = torch.from_numpy(data.labels[places]).to(self.device)
        loss = cross_entropy(answers.float(), truth)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.network.parameters(), self.recipe.clip)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        return float(loss.detach())

    def _read(self, rows: Sequence[Sequence[int]]) -> Tensor:
        ids, mask = pad_rows(rows, self.padding)
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.device.type == "cuda"):
            answers: Tensor = self.network(ids.to(self.device), mask.to(self.device))
        return answers

    def _batches(self, data: EncodedTexts, epoch: int) -> Iterator[NDArray[np.int64]]:
        """The places of each batch: drawn at random, then sorted by length within a pool of batches."""
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

    def _keep_best(self, epoch: EpochLosses) -> None:
        earlier = [other.held_out_loss for other in self._state.epochs]
        if self.recipe.patience is not None and epoch.held_out_loss < min(earlier, default=math.inf):
            weights = self.network.state_dict().items()
            self._state.best = {name: value.detach().clone() for name, value in weights}

    def _is_over(self) -> bool:
        losses = [epoch.held_out_loss for epoch in self._state.epochs]
        if self.recipe.patience is None or not losses:
            return False
        return len(losses) - 1 - losses.index(min(losses)) >= self.recipe.patience


def cross_entropy(logits: Tensor, truth: Tensor) -> Tensor:
    """Mean cross-entropy of one label a row, or of a yes or no to each label where ``truth`` is a table."""
    if truth.ndim == 2:
        return F.binary_cross_entropy_with_logits(logits, truth)
    return F.cross_entropy(logits, truth)


def learning_rate_factor(step: int, total: int, warmup: float, *, is_constant: bool = False) -> float:
    """The factor on the learning rate: up in a line over the warm-up's share of steps, then down to 0.

    A constant rate stays at 1 after the warm-up.

    >>> [round(factor(step, 10, 0.2), 3) for step in (0, 1, 2, 9)]
    [0.5, 1.0, 1.0, 0.125]
    """
    rising = max(1, round(total * warmup))
    if step < rising:
        return (step + 1) / rising
    if is_constant:
        return 1.0
    return (total - step) / max(1, total - rising)


def pad_rows(rows: Sequence[Sequence[int]], padding: Padding) -> tuple[Tensor, Tensor]:
    """The rows as one (rows, length) tensor of ids, and a mask of that shape: 1 at tokens, 0 elsewhere."""
    length = max(map(len, rows))
    ids = torch.full((len(rows), length), padding.token, dtype=torch.long)
    mask = torch.zeros((len(rows), length), dtype=torch.long)
    for place, row in enumerate(rows):
        where = slice(length - len(row), length) if padding.left else slice(0, len(row))
        ids[place, where] = torch.tensor(row, dtype=torch.long)
        mask[place, where] = 1
    return ids, mask
