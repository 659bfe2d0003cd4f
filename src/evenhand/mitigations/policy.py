"""A policy as used in calibration: the most likely tokens individually, all others as one."""

from __future__ import annotations

from typing import Final, NamedTuple

import torch
from torch import Tensor

REACH: Final = 512
"""Number of tokens whose mean direction represents the rest if the whole matrix is not read (ADR 20)."""
FOLLOW: Final = 0.25
"""How far tokens beyond the reach follow those within it, orthogonally to the hidden state."""
NOTHING: Final = -80.0
"""The log of a share that is negligible in every sum."""


class Support(NamedTuple):
    """The calibrated tokens, one row each, and the rest of the vocabulary as the last row."""

    table: Tensor
    """The output matrix, vocabulary x width."""
    tokens: Tensor
    """Rows x tokens, most likely first."""
    last: Tensor
    """Rows x width: the direction of the rest."""
    offsets: Tensor
    """Rows x (tokens + 1): the biases added to products with the vectors."""
    logits: Tensor
    """Rows x tokens: the model's own logits."""
    mass: Tensor
    """The log of the sum of exp(logits) over the vocabulary, one per row."""

    @property
    def vectors(self) -> Tensor:
        """Rows x (tokens + 1) x width, gathered anew in float32."""
        return torch.cat([self.table[self.tokens].float(), self.last[:, None]], 1)


class CalibrationResult(NamedTuple):
    """The result of a calibration."""

    hidden: Tensor
    logits: Tensor
    """Rows x tokens of the support, at the last hidden state."""
    divergence: Tensor
    """KL(vanilla || calibrated) of each row, in nats."""
    gain: Tensor
    """D at the vanilla hidden state."""


class TopKTokens(NamedTuple):
    """The most likely tokens; the first ``size`` are the support."""

    values: Tensor
    tokens: Tensor
    mass: Tensor
    size: int
