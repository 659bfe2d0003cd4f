"""The debias gains of the two modes, with their gradients in the hidden state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch
import torch.nn.functional as F
from torch import Tensor

from evenhand.mitigations.calibration import CalibrationConfig
from evenhand.mitigations.calibrator import Calibrator
from evenhand.mitigations.word_lists import WordListVectors

DISCOUNT: Final = 0.99
"""What a token's distances count less for each later one in what has accumulated."""


@dataclass(frozen=True, slots=True, eq=False)
class EmbeddingGain:
    """Eq. 5: far from the words of both sides, and equally far.

    D = (L/l)^2 + (C/c)^2 - balance |G + L - C - m|. L and C are the mean distances -log pi(w) to the words of
    the two sides in nats, l and c those of the vanilla policy (1 with scale ``nats``), and m is how far L and
    C usually are apart in this model's text. G is what has accumulated of L - C - m at the tokens so far, as
    the model itself had it, each discounted by its age: one token says little of which way a text leans.
    """

    vectors: WordListVectors
    units: Tensor
    """2 x rows: what a distance is divided by before it is squared."""
    balance: float
    earlier: Tensor
    """Rows: G."""

    @classmethod
    def of(
        cls,
        vectors: WordListVectors,
        hidden: Tensor,
        mass: Tensor,
        settings: CalibrationConfig,
        earlier: Tensor,
    ) -> EmbeddingGain:
        """The gain for rows whose vanilla hidden states and log-masses these are."""
        distances = torch.stack(_distances(vectors, hidden, mass))
        units = distances if settings.scale == "relative" else torch.ones_like(distances)
        return cls(vectors, units, settings.balance, earlier)

    def accumulate(self, hidden: Tensor) -> Tensor:
        """G of the next token, from the vanilla hidden states of this one."""
        # The mass cancels out of a difference.
        one, two = _distances(self.vectors, hidden, hidden.new_zeros(len(hidden)))
        return DISCOUNT * (self.earlier + one - two - self.vectors.centre)

    def value_and_gradient(
        self, shift: Tensor, mass: Tensor, mean: Tensor, hidden: Tensor
    ) -> tuple[Tensor, Tensor]:
        """D of each row, and its gradient."""
        one, two = _distances(self.vectors, hidden, mass)
        gap = self.earlier + one - two - self.vectors.centre
        lean = self.balance * torch.sign(gap)
        value = (one / self.units[0]).square() + (two / self.units[1]).square() - lean * gap
        to_one = 2 * one / self.units[0].square() - lean
        to_two = 2 * two / self.units[1].square() + lean
        slope = (to_one + to_two)[:, None] * mean
        return value, slope.addmm_(
            torch.stack([to_one, to_two], 1), torch.stack([self.vectors.first, self.vectors.second]), alpha=-1
        )


def typical_gap(vectors: WordListVectors, states: Tensor) -> float:
    """The median of L - C over hidden states of everyday text: two lists are never equally common."""
    one, two = _distances(vectors, states, states.new_zeros(len(states)))
    return float((one - two).median())


def _distances(vectors: WordListVectors, hidden: Tensor, mass: Tensor) -> tuple[Tensor, Tensor]:
    return (
        mass - hidden @ vectors.first - vectors.offsets[0],
        mass - hidden @ vectors.second - vectors.offsets[1],
    )


@dataclass(frozen=True, slots=True, eq=False)
class ClassifierGain:
    """Eq. 7 and 8: a classifier of the text so far that cannot decide.

    D = 1/(window + 1) sum over the window of gamma^age (-log of the likelier side's probability), each
    between 0 and log 2. The classifier reads what has accumulated, a discounted mean, of which the token to
    come is a part: ``share``. What stands for that token is E'pi, the vector that is to be expected, or with
    a head of hidden states the hidden state itself.

    In the first case the slope is the natural gradient: E'pi moves by F dh, F being the policy's Fisher
    matrix, and the steepest way up for a given divergence is F^-1 F = 1 times the classifier's own gradient.
    """

    head: Calibrator
    inside: Tensor
    """Rows x window x inner width: the inner layer of what had accumulated, before tanh."""
    share: Tensor
    """Rows: how much of what has accumulated is the token to come."""
    weights: Tensor
    """Rows x window: gamma^age / (window + 1), 0 where the text is younger than the window."""
    expected: Tensor | None
    """Rows x width: E'pi of the vanilla policy; None with a head of hidden states."""

    def value_and_gradient(
        self, shift: Tensor, mass: Tensor, mean: Tensor, hidden: Tensor
    ) -> tuple[Tensor, Tensor]:
        """D of each row, and its gradient."""
        movement = (shift if self.expected is None else mean - self.expected) * self.share[:, None]
        active = torch.tanh(self.inside + (movement @ self.head.inner.T)[:, None])
        odds = active @ self.head.outer + self.head.outer_bias
        value = (self.weights * F.softplus(-odds.abs())).sum(-1)
        pull = -self.weights * torch.sign(odds) * torch.sigmoid(-odds.abs())
        back = (pull[..., None] * (1 - active.square())).sum(1) * self.head.outer
        return value, (back * self.share[:, None]) @ self.head.inner
