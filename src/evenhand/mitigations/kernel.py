"""The calibration of one token: K Adam steps on a hidden state, over a few tokens and the exact rest.

With z = E h + b and pi = softmax(z), every term of the objective has a closed gradient in h:

    lambda R(h) - KL(pi_vanilla || pi),   d(-KL)/dh = E'pi_vanilla - E'pi

so a step needs E'pi and no graph. Only the likeliest tokens are followed one by one; all others are one more
row, whose logit is the logarithm of their mass and whose vector is their mean direction (ADR 20).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from evenhand.core.protocols import Anatomy
from evenhand.mitigations import fused
from evenhand.mitigations.gains import ClassifierGain, EmbeddingGain
from evenhand.mitigations.settings import Settings

_BETA1: Final = 0.9
_BETA2: Final = 0.999
_EPSILON: Final = 1e-8
_REACH: Final = 512
"""Tokens whose mean direction stands for the rest where the whole table is not read."""
_NOTHING: Final = -80.0
_FOLLOW: Final = 0.25
"""How far tokens beyond the reach move with those within it, across the hidden state (ADR 20)."""


class Support(NamedTuple):
    """The tokens that are calibrated, one row each, and the rest of the vocabulary as the last row."""

    vectors: Tensor
    """Rows x (tokens + 1) x width."""
    offsets: Tensor
    """Rows x (tokens + 1): what is added to a product with a vector."""
    tokens: Tensor
    """Rows x tokens, likeliest first."""
    logits: Tensor
    """Rows x tokens: what the model itself says."""
    mass: Tensor
    """The log of the sum of exp(logits) over the vocabulary, one a row."""


class Gain(Protocol):
    """The debias gain D of a mode, for the rows of one step."""

    def slope(self, shift: Tensor, mass: Tensor, mean: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """D of each row, and its gradient in the hidden state.

        Args:
            shift: How far the hidden states have moved, rows x width.
            mass: The log of the sum of exp(logits), one a row.
            mean: E'pi, rows x width.
            hidden: The hidden states, rows x width.
        """
        ...


class Calibrated(NamedTuple):
    """What a step came to."""

    hidden: Tensor
    logits: Tensor
    """Rows x tokens of the support, at the last hidden state."""
    divergence: Tensor
    """KL(vanilla || calibrated) of each row, in nats."""
    gain: Tensor
    """D at the vanilla hidden state."""


def support_of(hidden: Tensor, logits: Tensor, anatomy: Anatomy, *, size: int, exact: bool) -> Support:
    """The ``size`` likeliest tokens and the rest, whose mass is exact.

    The rest moves in its mean direction: with ``exact`` that of every other token, which reads the whole
    table once more; else an estimate from the next likeliest tokens up to 512 and the rest's mean logit.
    """
    reach = min(logits.shape[-1], size if exact else max(size, _REACH))
    values, tokens = logits.topk(reach)
    mass = logits.logsumexp(-1)
    inside = values[:, :size].logsumexp(-1)
    # log(exp(mass) - exp(inside)); a rest of nothing is so small that it drops out of every sum.
    rest = mass + torch.log1p(-(inside - mass).exp().clamp(max=1)).clamp(min=_NOTHING)
    if exact:
        direction = _whole_rest(logits, tokens, rest, anatomy.table)
    else:
        direction = _near_rest(hidden, logits, anatomy.table, Near(values, tokens, mass, size))
    chosen = tokens[:, :size]
    offsets = values[:, :size].new_zeros(chosen.shape)
    offsets = offsets if anatomy.bias is None else anatomy.bias[chosen].float()
    rest_offset = rest - (direction * hidden).sum(-1)
    return Support(
        _rows(anatomy.table, chosen, direction),
        torch.cat([offsets, rest_offset[:, None]], 1),
        chosen,
        values[:, :size],
        mass,
    )


def _rows(table: Tensor, tokens: Tensor, last: Tensor) -> Tensor:
    """The vectors of these tokens, and one more after them."""
    if not _is_fused(table):
        return torch.cat([table[tokens].float(), last[:, None]], 1)
    out = np.empty((len(tokens), tokens.shape[1] + 1, table.shape[1]), np.float32)
    _each_core(fused.gather, len(tokens), table.numpy(), tokens.numpy(), _array(last), out)
    return torch.from_numpy(out)


def _weighed(table: Tensor, tokens: Tensor, weights: Tensor) -> Tensor:
    """The weighted sum of these tokens' vectors, rows x width in float32."""
    if not _is_fused(table):
        return torch.bmm(weights[:, None].to(table.dtype), table[tokens])[:, 0].float()
    out = np.empty((len(tokens), table.shape[1]), np.float32)
    _each_core(fused.weigh, len(tokens), table.numpy(), tokens.contiguous().numpy(), _array(weights), out)
    return torch.from_numpy(out)


def _is_fused(table: Tensor) -> bool:
    """Whether rows are worked on one after the other, each in a core's cache."""
    return table.device.type == "cpu" and table.dtype == torch.float32


def expected_vector(hidden: Tensor, support: Support) -> Tensor:
    """E'pi: the output vector a policy lets expect, rows x width."""
    if _is_fused(support.vectors):
        out = np.empty(hidden.shape, np.float32)
        given = (_array(hidden), _array(support.vectors), _array(support.offsets))
        _each_core(fused.expect, len(hidden), *given, out)
        return torch.from_numpy(out)
    logits = torch.baddbmm(support.offsets[..., None], support.vectors, hidden[..., None])[..., 0]
    return _mean(logits.log_softmax(-1), support.vectors)


def calibrate(
    hidden: Tensor,
    support: Support,
    gain: Gain,
    strength: Tensor,
    settings: Settings,
    action: Tensor | None = None,
) -> Calibrated:
    """The hidden states after K steps of Adam up the objective, and the logits they give.

    Args:
        hidden: The model's own hidden states, rows x width, in float32.
        support: What is calibrated.
        gain: D of the mode.
        strength: Lambda of each row.
        settings: Steps and rate.
        action: The place in the support of each row's vanilla token; None takes the ratio's expectation.
    """
    if action is None and _is_fused(support.vectors) and isinstance(gain, EmbeddingGain | ClassifierGain):
        return _climbed(hidden, support, gain, strength, settings)
    vectors, offsets = support.vectors, support.offsets[..., None]
    now, first, second = hidden.clone(), torch.zeros_like(hidden), torch.zeros_like(hidden)
    rate = settings.rate * hidden.square().mean(-1, keepdim=True).sqrt()
    start = torch.baddbmm(offsets, vectors, hidden[..., None])[..., 0]
    policy = start.log_softmax(-1)
    mean = _mean(policy, vectors)
    vanilla = mean
    logits, gained = start, None
    for step in range(1, settings.steps + 1):
        mass = logits.logsumexp(-1)
        if step > 1:
            mean = _mean(logits - mass[:, None], vectors)
        value, slope = gain.slope(now - hidden, mass, mean, now)
        gained = value if gained is None else gained
        if action is not None:
            slope = _with_ratio(slope, value, mean, logits - mass[:, None], policy, vectors, action)
        upward = torch.addcmul(vanilla - mean, slope, strength[:, None])
        first.lerp_(upward, 1 - _BETA1)
        second.mul_(_BETA2).addcmul_(upward, upward, value=1 - _BETA2)
        size = second.sqrt().mul_((1 - _BETA2**step) ** -0.5).add_(_EPSILON)
        now.addcmul_(first / size, rate, value=1 / (1 - _BETA1**step))
        logits = torch.baddbmm(offsets, vectors, now[..., None])[..., 0]
    # The policy returned is that of the last hidden state: one step older is 2.7e-2 away.
    divergence = (policy.exp() * (policy - logits.log_softmax(-1))).sum(-1)
    assert gained is not None
    return Calibrated(now, logits[:, :-1], divergence, gained)


def _climbed(
    hidden: Tensor,
    support: Support,
    gain: EmbeddingGain | ClassifierGain,
    strength: Tensor,
    settings: Settings,
) -> Calibrated:
    """The same climb, row by row."""
    rows = len(hidden)
    climb = fused.Climb(
        _array(hidden),
        _array(support.vectors),
        _array(support.offsets),
        _array(strength),
        steps=settings.steps,
        rate=settings.rate,
    )
    sizes = (hidden.shape, support.offsets.shape, (rows,), (rows,))
    reached = fused.Reached(*(np.empty(size, np.float32) for size in sizes))
    if isinstance(gain, EmbeddingGain):
        _each_core(fused.climb_by_words, rows, climb, _words(gain, hidden), reached)
    else:
        _each_core(fused.climb_by_head, rows, climb, _head(gain, hidden), reached)
    now, logits, divergence, gained = map(torch.from_numpy, reached)
    return Calibrated(now, logits[:, :-1], divergence, gained)


def _words(gain: EmbeddingGain, hidden: Tensor) -> fused.Words:
    vectors = gain.vectors
    return fused.Words(
        sides=_array(torch.stack([vectors.first, vectors.second])),
        offsets=_array(hidden.new_tensor(vectors.offsets)),
        units=_array(gain.units),
        wanted=_array(gain.earlier - vectors.centre),
        balance=float(gain.balance),
    )


def _head(gain: ClassifierGain, hidden: Tensor) -> fused.Head:
    return fused.Head(
        inner=_array(gain.head.inner),
        outer=_array(gain.head.outer),
        outer_bias=float(gain.head.outer_bias),
        inside=_array(gain.inside),
        share=_array(gain.share),
        weights=_array(gain.weights),
        expected=_array(hidden if gain.expected is None else gain.expected),
        is_natural=gain.expected is not None,
    )


def _array(tensor: Tensor) -> fused.Floats:
    found: fused.Floats = tensor.contiguous().numpy()
    return found


def _each_core(work: Callable[..., None], rows: int, *arguments: object) -> None:
    fused.each_core(work, rows, *arguments, cores=torch.get_num_threads())


def _mean(log_policy: Tensor, vectors: Tensor) -> Tensor:
    return torch.bmm(log_policy.exp()[:, None], vectors)[:, 0]


def _whole_rest(logits: Tensor, tokens: Tensor, rest: Tensor, table: Tensor) -> Tensor:
    weights = (logits - rest[:, None]).exp().scatter(-1, tokens, 0.0)
    weights = weights / weights.sum(-1, keepdim=True).clamp(min=1e-30)
    return (weights.to(table.dtype) @ table).float()


class Near(NamedTuple):
    """The likeliest tokens, of which the first ``size`` are the support."""

    values: Tensor
    tokens: Tensor
    mass: Tensor
    size: int


def _near_rest(hidden: Tensor, logits: Tensor, table: Tensor, near: Near) -> Tensor:
    """The mean direction of the rest, estimated without reading the table.

    The next likeliest tokens give theirs exactly. Of all others the mean logit is known, and so is their part
    along the hidden state; across it they are taken to follow the near ones by a quarter.
    """
    shares = (near.values - near.mass[:, None]).exp()
    close = shares[:, near.size :]
    weight = close.sum(-1).clamp(min=1e-30)
    direction = _weighed(table, near.tokens[:, near.size :], close / weight[:, None])
    policy = (logits - near.mass[:, None]).exp_()
    said: Tensor = torch.linalg.vecdot(policy, logits) - (shares * near.values).sum(-1)
    far = (1 - shares.sum(-1)).clamp(min=1e-9)
    length = hidden.square().sum(-1).clamp(min=1e-30)
    along = (direction * hidden).sum(-1) / length
    across = direction - along[:, None] * hidden
    beyond = (said / far / length)[:, None] * hidden + _FOLLOW * across
    return (weight[:, None] * direction + far[:, None] * beyond) / (weight + far)[:, None]


def _with_ratio(
    slope: Tensor,
    value: Tensor,
    mean: Tensor,
    log_policy: Tensor,
    vanilla: Tensor,
    vectors: Tensor,
    action: Tensor,
) -> Tensor:
    """The gradient of ratio x D at one token, ratio (dD + D d log pi(action)): eq. 4 as sampled."""
    ratio = (log_policy - vanilla).gather(-1, action[:, None]).exp()
    chosen = vectors.gather(1, action[:, None, None].expand(-1, 1, vectors.shape[-1]))[:, 0]
    return ratio * (slope + value[:, None] * (chosen - mean))
