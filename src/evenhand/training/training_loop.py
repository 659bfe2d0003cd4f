"""What every training shares: one step of its optimisers, and one way to write and read a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.optim import Optimizer

_NONE: Final[Mapping[str, Tensor]] = MappingProxyType({})


def descend(
    loss: Tensor,
    *optimisers: Optimizer,
    factor: float = 1.0,
    clipped: nn.Module | None = None,
    clip: float = 1.0,
) -> Tensor:
    """Take one step against a loss, and return the loss.

    Args:
        loss: What was computed from the parameters.
        optimisers: Whose parameters move, each at its first learning rate times ``factor``.
        factor: The point of the schedule.
        clipped: The network whose gradient is cut to the norm ``clip``; None for no cut.
        clip: The largest norm.
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
    more: Mapping[str, Tensor] = _NONE,
) -> None:
    """Write a network, its optimisers and ``more`` tensors as one safetensors file."""
    tensors = {f"model/{name}": value for name, value in network.state_dict().items()} | dict(more)
    for label, optimiser in optimisers.items():
        for index, state in optimiser.state_dict()["state"].items():
            tensors |= {f"{label}/{index}/{key}": torch.as_tensor(value) for key, value in state.items()}
    write_whole(path, tensors, about=about)


def load_checkpoint(
    path: Path, network: nn.Module, optimisers: Mapping[str, Optimizer]
) -> dict[str, dict[str, Tensor]]:
    """Restore a network and its optimisers; what else the file holds, by the part before the slash."""
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
    """What a checkpoint says of itself."""
    with safe_open(path, framework="pt") as file:
        return dict(file.metadata())


def write_whole(path: Path, tensors: Mapping[str, Tensor], *, about: Mapping[str, str] | None = None) -> None:
    """Write tensors as a safetensors file that has its name only when it is whole."""
    # Not `store.atomic_writes`: it needs Polars, which a GPU machine may lack.
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    # Tied weights share memory, which safetensors refuses: each gets a copy of its own.
    whole = {name: value.detach().cpu().clone().contiguous() for name, value in tensors.items()}
    save_file(whole, partial, metadata=None if about is None else dict(about))
    partial.replace(path)
