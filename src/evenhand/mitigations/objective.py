"""What a calibration optimises: a policy, and the debias gains of the two modes with their gradients.

A policy lists the most likely tokens individually; all others count as one, the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from evenhand.mitigations.calibration import CalibrationConfig
from evenhand.mitigations.calibrator import Calibrator
from evenhand.mitigations.word_lists import WordListVectors

DISCOUNT: Final = 0.99
"""The discount of a token's distances for each later token in the accumulated gap."""


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


@dataclass(frozen=True, slots=True, eq=False)
class EmbeddingGain:
    """Eq. 5: distant from the words of both sides, and equally distant.

    D = (L/l)^2 + (C/c)^2 - balance |G + L - C - m|. L and C are the mean distances -log pi(w) to the words of
    the two sides in nats, l and c those of the vanilla policy (1 with scale ``nats``), and m is the typical
    value of L - C in this model's text. G is the sum of L - C - m over the tokens so far under the vanilla
    policy, each discounted by age: a single token says little about the lean of a text.
    """

    vectors: WordListVectors
    units: Tensor
    """2 x rows: the divisors of the distances before squaring."""
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
        """The gain for rows with these vanilla hidden states and log-masses."""
        distances = torch.stack(_distances(vectors, hidden, mass))
        units = distances if settings.scale == "relative" else torch.ones_like(distances)
        return cls(vectors, units, settings.balance, earlier)

    def accumulate(self, hidden: Tensor) -> Tensor:
        """G of the next token, from the vanilla hidden states of this one."""
        # The mass cancels in the difference.
        one, two = _distances(self.vectors, hidden, hidden.new_zeros(len(hidden)))
        return DISCOUNT * (self.earlier + one - two - self.vectors.centre)

    def value_and_gradient(
        self, shift: Tensor, mass: Tensor, mean: Tensor, hidden: Tensor
    ) -> tuple[Tensor, Tensor]:
        """D of each row, and its gradient with respect to the hidden state.

        Args:
            shift: How far the hidden states have moved, rows x width.
            mass: The log of the sum of exp(logits), one per row.
            mean: E'pi, rows x width.
            hidden: The hidden states, rows x width.
        """
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
    """The median of L - C over hidden states of everyday text: lists differ in frequency."""
    one, two = _distances(vectors, states, states.new_zeros(len(states)))
    return float((one - two).median())


def _distances(vectors: WordListVectors, hidden: Tensor, mass: Tensor) -> tuple[Tensor, Tensor]:
    return (
        mass - hidden @ vectors.first - vectors.offsets[0],
        mass - hidden @ vectors.second - vectors.offsets[1],
    )


@dataclass(frozen=True, slots=True, eq=False)
class ClassifierGain:
    """Eq. 7 and 8: keeps a classifier of the text so far undecided.

    D = 1/(window + 1) sum over the window of gamma^age (-log of the more likely side's probability), each
    between 0 and log 2. The classifier reads the accumulated state, a discounted mean in which the next token
    has the weight ``share``. That token is represented by E'pi, its expected vector, or for a head on hidden
    states by the hidden state itself.

    In the first case the ascent direction is the natural gradient: E'pi moves by F dh, with the policy's
    Fisher matrix F, and steepest ascent per divergence is F^-1 F = 1 times the classifier's own gradient.
    """

    head: Calibrator
    inside: Tensor
    """Rows x window x inner width: the inner layer of the accumulated states, before tanh."""
    share: Tensor
    """Rows: the weight of the next token in the accumulated state."""
    weights: Tensor
    """Rows x window: gamma^age / (window + 1), 0 where the text is shorter than the window."""
    expected: Tensor | None
    """Rows x width: E'pi of the vanilla policy; None for a head on hidden states."""

    def value_and_gradient(
        self, shift: Tensor, mass: Tensor, mean: Tensor, hidden: Tensor
    ) -> tuple[Tensor, Tensor]:
        """D of each row, and its gradient, as in `EmbeddingGain`."""
        movement = (shift if self.expected is None else mean - self.expected) * self.share[:, None]
        active = torch.tanh(self.inside + (movement @ self.head.inner.T)[:, None])
        odds = active @ self.head.outer + self.head.outer_bias
        value = (self.weights * F.softplus(-odds.abs())).sum(-1)
        pull = -self.weights * torch.sign(odds) * torch.sigmoid(-odds.abs())
        back = (pull[..., None] * (1 - active.square())).sum(1) * self.head.outer
        return value, (back * self.share[:, None]) @ self.head.inner


Gain: TypeAlias = EmbeddingGain | ClassifierGain
"""The debias gain D of a mode, for the rows of one step."""
