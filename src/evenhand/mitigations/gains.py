"""The debias gains of the two modes, with their gradients in the hidden state."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from evenhand.mitigations.calibrator import Calibrator
from evenhand.mitigations.settings import Settings
from evenhand.mitigations.sides import SideVectors


@dataclass(frozen=True, slots=True, eq=False)
class EmbeddingGain:
    """Eq. 5: far from the words of both sides, and equally far.

    D = (L/l)^2 + (C/c)^2 - balance |L - C|, L and C being the mean distances -log pi(w) to the words of the
    two sides in nats, and l and c those of the vanilla policy (1 with scale ``mean``).
    """

    vectors: SideVectors
    units: Tensor
    """2 x rows: what a distance is divided by before it is squared."""
    balance: float

    @classmethod
    def of(cls, vectors: SideVectors, hidden: Tensor, mass: Tensor, settings: Settings) -> EmbeddingGain:
        """The gain for rows whose vanilla hidden states and log-masses these are."""
        distances = torch.stack(_distances(vectors, hidden, mass))
        units = distances if settings.scale == "relative" else torch.ones_like(distances)
        return cls(vectors, units, settings.balance)

    def slope(self, shift: Tensor, mass: Tensor, mean: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """D of each row, and its gradient."""
        one, two = _distances(self.vectors, hidden, mass)
        lean = self.balance * torch.sign(one - two)
        value = (one / self.units[0]).square() + (two / self.units[1]).square() - lean * (one - two)
        to_one = 2 * one / self.units[0].square() - lean
        to_two = 2 * two / self.units[1].square() + lean
        slope = (to_one + to_two)[:, None] * mean
        return value, slope.addmm_(
            torch.stack([to_one, to_two], 1), torch.stack([self.vectors.first, self.vectors.second]), alpha=-1
        )


def _distances(vectors: SideVectors, hidden: Tensor, mass: Tensor) -> tuple[Tensor, Tensor]:
    return (
        mass - hidden @ vectors.first - vectors.offsets[0],
        mass - hidden @ vectors.second - vectors.offsets[1],
    )


@dataclass(frozen=True, slots=True, eq=False)
class ClassifierGain:
    """Eq. 7 and 8: a classifier of the text so far that cannot decide.

    D = 1/(window + 1) sum over the window of gamma^age (-log of the likelier side's probability), each
    between 0 and log 2. The classifier reads what has accumulated, a discounted mean, of which the hidden
    state of the token to come is a part: ``share``.
    """

    head: Calibrator
    inside: Tensor
    """Rows x window x inner width: the inner layer of each accumulated state, before tanh."""
    share: Tensor
    """Rows: how much of the accumulated state is the hidden state."""
    weights: Tensor
    """Rows x window: gamma^age / (window + 1), 0 where the text is younger than the window."""

    def slope(self, shift: Tensor, mass: Tensor, mean: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """D of each row, and its gradient."""
        moved = (shift * self.share[:, None]) @ self.head.inner.T
        active = torch.tanh(self.inside + moved[:, None])
        odds = active @ self.head.outer + self.head.outer_bias
        value = (self.weights * F.softplus(-odds.abs())).sum(-1)
        pull = -self.weights * torch.sign(odds) * torch.sigmoid(-odds.abs())
        back = (pull[..., None] * (1 - active.square())).sum(1) * self.head.outer
        return value, (back * self.share[:, None]) @ self.head.inner
