"""A policy as a calibration sees it: the likeliest tokens one by one, all others as one."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Support(NamedTuple):
    """The tokens that are calibrated, one row each, and the rest of the vocabulary as the last row."""

    table: Tensor
    """The output table, vocabulary x width."""
    tokens: Tensor
    """Rows x tokens, likeliest first."""
    last: Tensor
    """Rows x width: the direction of the rest."""
    offsets: Tensor
    """Rows x (tokens + 1): what is added to a product with a vector."""
    logits: Tensor
    """Rows x tokens: what the model itself says."""
    mass: Tensor
    """The log of the sum of exp(logits) over the vocabulary, one a row."""

    @property
    def vectors(self) -> Tensor:
        """Rows x (tokens + 1) x width, gathered anew in float32."""
        return torch.cat([self.table[self.tokens].float(), self.last[:, None]], 1)


class CalibrationResult(NamedTuple):
    """What a step came to."""

    hidden: Tensor
    logits: Tensor
    """Rows x tokens of the support, at the last hidden state."""
    divergence: Tensor
    """KL(vanilla || calibrated) of each row, in nats."""
    gain: Tensor
    """D at the vanilla hidden state."""


class TopKTokens(NamedTuple):
    """The likeliest tokens, of which the first ``size`` are the support."""

    values: Tensor
    tokens: Tensor
    mass: Tensor
    size: int


class RestConfig(NamedTuple):
    """How the rest is summed up where the whole table is not read (ADR 20)."""

    reach: int = 512
    """Tokens whose mean direction stands for the rest."""
    follow: float = 0.25
    """How far tokens beyond the reach move with those within it, across the hidden state."""
    nothing: float = -80.0
    """The log of a share so small that it drops out of every sum."""
