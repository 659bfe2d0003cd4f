"""Reinforced calibration the plain way: autograd over the whole vocabulary, torch's Adam, one text at a time.

Written from the paper's section 4 and ADR 20, with nothing shared with the package but the settings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from evenhand.mitigations.calibration import CalibrationConfig


@dataclass
class Text:
    """What is remembered of one text: the vanilla state of each of its tokens."""

    strength: float
    states: list[Tensor] = field(default_factory=list)


def embedding_gain(
    hidden: Tensor,
    vanilla: Tensor,
    table: Tensor,
    words: tuple[Sequence[Sequence[int]], Sequence[Sequence[int]]],
    settings: CalibrationConfig,
    centre: float = 0.0,
    earlier: Sequence[Tensor] = (),
) -> Tensor:
    """Eq. 5 with dist(w) = -log pi(w), averaged over a word's tokens and over a side's words.

    ``earlier`` are the vanilla states of the tokens so far: their differences count too, each 0.99^age.
    """
    log_policy = (table @ hidden).log_softmax(-1)
    before = (table @ vanilla).log_softmax(-1)
    sides = [_distance(log_policy, side) for side in words]
    units = [_distance(before, side) for side in words]
    if settings.scale == "nats":
        units = [torch.ones_like(unit) for unit in units]
    far = (sides[0] / units[0]) ** 2 + (sides[1] / units[1]) ** 2
    gap = sides[0] - sides[1] - centre
    for age, state in enumerate(reversed(earlier), start=1):
        before = (table @ state).log_softmax(-1)
        gap = gap + 0.99**age * (_distance(before, words[0]) - _distance(before, words[1]) - centre)
    return far - settings.balance * gap.abs()


def _distance(log_policy: Tensor, side: Sequence[Sequence[int]]) -> Tensor:
    tokens = torch.tensor([token for word in side for token in word], device=log_policy.device)
    shares = torch.tensor(
        [1 / len(word) / len(side) for word in side for _ in word], device=log_policy.device
    )
    return -(shares * log_policy[tokens]).sum()


def accumulate(newest: Tensor, earlier: Sequence[Tensor], discount: float) -> Tensor:
    """The mean of what was about to be written, now and at earlier tokens, each discounted by its age."""
    parts = [newest] + [discount**age * part for age, part in enumerate(reversed(earlier), start=1)]
    return torch.stack(parts).sum(0) / sum(discount**age for age in range(len(parts)))


def classifier_gain(
    hidden: Tensor,
    text: Text,
    head: Callable[[Tensor], Tensor],
    settings: CalibrationConfig,
    table: Tensor | None = None,
    discount: float = 0.99,
) -> Tensor:
    """Eq. 7 and 8; ``text.states`` end with the state of the token to come, ``head`` gives two logits.

    With a ``table`` what stands for a token is the E'pi of its vanilla state, and for the token to come its
    gradient is that of the hidden state itself (the natural gradient); without one it is the hidden state.
    """

    def coming(state: Tensor) -> Tensor:
        if table is None:
            return state
        expected = ((table @ state).softmax(-1) @ table).detach()
        return expected + state - state.detach()

    last = len(text.states) - 1
    share = 1 / sum(discount**age for age in range(last + 1))
    moved = share * (coming(hidden) - coming(text.states[-1]))
    about = [coming(state).detach() for state in text.states]
    gain = torch.zeros(())
    for place in range(max(0, last - settings.window), last + 1):
        before = accumulate(about[place], about[:place], discount)
        probability = head(before + moved).softmax(-1)[1]
        label = float(probability > 0.5)
        reward = -(label * probability.log() + (1 - label) * (1 - probability).log())
        gain = gain + settings.gamma ** (last - place) * reward
    return gain / (settings.window + 1)


def calibrated(
    vanilla: Tensor,
    table: Tensor,
    gain: Callable[[Tensor], Tensor],
    strength: float,
    settings: CalibrationConfig,
    action: int | None = None,
) -> tuple[Tensor, float]:
    """The hidden state after K Adam steps, and KL(vanilla || calibrated)."""
    before = (table @ vanilla).log_softmax(-1)
    hidden = vanilla.clone().requires_grad_(True)
    rate = settings.rate * float(vanilla.square().mean().sqrt())
    adam = torch.optim.Adam([hidden], lr=rate)
    for _ in range(settings.steps):
        log_policy = (table @ hidden).log_softmax(-1)
        reward = gain(hidden)
        if action is not None:
            reward = (log_policy[action] - before[action]).exp() * reward
        divergence = (before.exp() * (before - log_policy)).sum()
        adam.zero_grad()
        (divergence - strength * reward).backward()
        adam.step()
    after = (table @ hidden.detach()).log_softmax(-1)
    return hidden.detach(), float((before.exp() * (before - after)).sum())


def next_strength(strength: float, divergence: float, sigma: float) -> float:
    """Algorithm 1: halve from 2 sigma on, double up to sigma / 2."""
    if divergence >= 2 * sigma:
        return strength / 2
    return strength * 2 if divergence <= sigma / 2 else strength


def total_variation(one: Tensor, other: Tensor) -> float:
    """Half of the sum of absolute differences of two distributions."""
    return float((one - other).abs().sum() / 2)
