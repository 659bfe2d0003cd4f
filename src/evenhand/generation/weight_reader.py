"""Reads weights by the Hub's names and checks them against the configured sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from evenhand.core.errors import ModelError
from evenhand.tensors.checkpoints import require_finite


class LayerNormWeights(NamedTuple):
    """Layer normalisation with its gain and bias."""

    weight: Tensor
    bias: Tensor
    epsilon: float

    def __call__(self, x: Tensor) -> Tensor:
        """The normalised rows."""
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.epsilon)


@dataclass(frozen=True, slots=True)
class WeightReader:
    """Finds weights by name, with or without ``prefix``, and moves them to the device."""

    tensors: Mapping[str, Tensor]
    prefix: str
    device: torch.device
    dtype: torch.dtype
    epsilon: float

    def tensor(self, name: str) -> Tensor:
        """The weights of this name."""
        for candidate in self.spellings(name):
            stored = self.tensors.get(candidate, self.tensors.get(self.prefix + candidate))
            if stored is not None:
                weights = stored.to(self.device, self.dtype)
                require_finite({candidate: weights}, "the model")
                return weights
        raise ModelError(
            f"the weights have no {name!r}",
            expected="a complete checkpoint with its language-model head",
            fix="save or download the model again",
        )

    def spellings(self, name: str) -> tuple[str, ...]:
        """The names of these weights in checkpoints."""
        return (name,)

    def table(self, name: str, entries: int, width: int) -> Tensor:
        """A matrix of vectors; an error if its size differs."""
        table = self.tensor(name)
        if table.shape != (entries, width):
            raise ModelError(
                f"{name!r} is {' x '.join(map(str, table.shape))}, not {entries} x {width}",
                expected="weights with the sizes in config.json",
                fix="save or download the model again",
            )
        return table

    def norm(self, name: str) -> LayerNormWeights:
        """A layer normalisation."""
        return LayerNormWeights(self.tensor(f"{name}.weight"), self.tensor(f"{name}.bias"), self.epsilon)
