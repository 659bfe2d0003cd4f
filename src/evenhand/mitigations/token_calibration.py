"""Calibration of one token: K Adam steps on a hidden state, over a few tokens and the exact rest.

With z = E h + b and pi = softmax(z), every term of the objective has a closed gradient in h:

    lambda R(h) - KL(pi_vanilla || pi),   d(-KL)/dh = E'pi_vanilla - E'pi

so a step needs E'pi and no autograd. Only the most likely tokens are tracked individually; all others form
one more row, whose logit is the log of their mass and whose vector is their mean direction (ADR 20).
"""

from __future__ import annotations

import torch
from torch import Tensor

from evenhand.core.protocols import LMHead
from evenhand.generation.decode_attention import topk
from evenhand.mitigations import gpu_backend
from evenhand.mitigations.calibration import BETA1, BETA2, EPSILON, CalibrationConfig
from evenhand.mitigations.debias_gains import DebiasGain
from evenhand.mitigations.policy import FOLLOW, NOTHING, REACH, CalibrationResult, Support, TopKTokens


def find_support(hidden: Tensor, logits: Tensor, lm_head: LMHead, *, size: int, exact: bool) -> Support:
    """The ``size`` most likely tokens and the rest, whose mass is exact.

    The rest moves in its mean direction: with ``exact`` that of all other tokens, which reads the whole
    matrix again; else an estimate from the next most likely tokens up to 512 and the rest's mean logit.
    """
    if _is_fused(lm_head.table) and not exact:
        from evenhand.mitigations import cpu_backend

        return cpu_backend.find_support(hidden, logits, lm_head, size=size)
    reach = min(logits.shape[-1], size if exact else max(size, REACH))
    values, tokens = topk(logits, reach)
    mass, mean_logit = _masses(logits, lm_head.table, exact=exact)
    near = TopKTokens(values, tokens, mass, size)
    if not exact and gpu_backend.supports_table(lm_head.table):
        last, rest_offset = gpu_backend.estimate_rest(hidden, lm_head.table, near, mean_logit)
    else:
        last, rest_offset = _estimate_rest(hidden, logits, lm_head.table, near, None if exact else mean_logit)
    support_tokens = tokens[:, :size]
    likeliest = values[:, :size]
    offsets = torch.zeros_like(likeliest) if lm_head.bias is None else lm_head.bias[support_tokens].float()
    return Support(
        lm_head.table, support_tokens, last, torch.cat([offsets, rest_offset[:, None]], 1), likeliest, mass
    )


def _estimate_rest(
    hidden: Tensor, logits: Tensor, table: Tensor, near: TopKTokens, mean_logit: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The direction of the rest, and the bias added to its product with the hidden state.

    ``mean_logit`` is the mean under the policy; without it all tokens of the rest are read.
    """
    inside = near.values[:, : near.size].logsumexp(-1)
    # log(exp(mass) - exp(inside)); an empty rest is negligible in every sum.
    rest = near.mass + torch.log1p(-(inside - near.mass).exp().clamp(max=1)).clamp(min=NOTHING)
    if mean_logit is None:
        last = _whole_rest(logits, near.tokens, rest, table)
    else:
        last = _near_rest(hidden, mean_logit, table, near)
    return last, rest - (last * hidden).sum(-1)


def _is_fused(table: Tensor) -> bool:
    """Whether rows are processed one by one, each in a core's cache."""
    return table.device.type == "cpu" and table.dtype == torch.float32


def expected_vector(hidden: Tensor, support: Support) -> Tensor:
    """E'pi: the expected output vector of a policy, rows x width."""
    if _is_fused(support.table):
        from evenhand.mitigations import cpu_backend

        return cpu_backend.expected_vector(hidden, support)
    if gpu_backend.supports_rows(support):
        return gpu_backend.expected_vector(hidden, support)
    vectors = support.vectors
    logits = torch.baddbmm(support.offsets[..., None], vectors, hidden[..., None])[..., 0]
    return _mean(logits.log_softmax(-1), vectors)


def calibrate(
    hidden: Tensor,
    support: Support,
    gain: DebiasGain,
    strength: Tensor,
    settings: CalibrationConfig,
    action: Tensor | None = None,
) -> CalibrationResult:
    """The hidden states after K ascent steps of Adam on the objective, and their logits.

    Args:
        hidden: The model's own hidden states, rows x width, in float32.
        support: The calibrated tokens.
        gain: D of the mode.
        strength: Lambda of each row.
        settings: Steps and learning rate.
        action: The index in the support of each row's vanilla token; None uses the expected ratio.
    """
    if action is None:
        if _is_fused(support.table):
            from evenhand.mitigations import cpu_backend

            return cpu_backend.optimize(hidden, support, gain, strength, settings)
        if gpu_backend.supports_rows(support):
            return gpu_backend.optimize(hidden, support, gain, strength, settings)
    vectors, offsets = support.vectors, support.offsets[..., None]
    now, first, second = hidden.clone(), torch.zeros_like(hidden), torch.zeros_like(hidden)
    rate = settings.rate * hidden.square().mean(-1, keepdim=True).sqrt()
    start = torch.baddbmm(offsets, vectors, hidden[..., None])[..., 0]
    policy = start.log_softmax(-1)
    mean = _mean(policy, vectors)
    vanilla = mean
    logits, first_gain = start, None
    for step in range(1, settings.steps + 1):
        mass = logits.logsumexp(-1)
        if step > 1:
            mean = _mean(logits - mass[:, None], vectors)
        value, slope = gain.value_and_gradient(now - hidden, mass, mean, now)
        first_gain = value if first_gain is None else first_gain
        if action is not None:
            slope = _with_ratio(slope, value, mean, logits - mass[:, None], policy, vectors, action)
        upward = torch.addcmul(vanilla - mean, slope, strength[:, None])
        first.lerp_(upward, 1 - BETA1)
        second.mul_(BETA2).addcmul_(upward, upward, value=1 - BETA2)
        size = second.sqrt().mul_((1 - BETA2**step) ** -0.5).add_(EPSILON)
        now.addcmul_(first / size, rate, value=1 / (1 - BETA1**step))
        logits = torch.baddbmm(offsets, vectors, now[..., None])[..., 0]
    # Return the policy of the last hidden state: that of one step earlier differs by 2.7e-2.
    divergence = (policy.exp() * (policy - logits.log_softmax(-1))).sum(-1)
    assert first_gain is not None
    return CalibrationResult(now, logits[:, :-1], divergence, first_gain)


def _mean(log_policy: Tensor, vectors: Tensor) -> Tensor:
    return torch.bmm(log_policy.exp()[:, None], vectors)[:, 0]


def _whole_rest(logits: Tensor, tokens: Tensor, rest: Tensor, table: Tensor) -> Tensor:
    weights = (logits - rest[:, None]).exp().scatter(-1, tokens, 0.0)
    weights = weights / weights.sum(-1, keepdim=True).clamp(min=1e-30)
    return (weights.to(table.dtype) @ table).float()


def _masses(logits: Tensor, table: Tensor, *, exact: bool) -> tuple[Tensor, Tensor]:
    """The log of each row's mass, and the mean of its logits under its policy (0 if not needed)."""
    if not exact and gpu_backend.supports_table(table):
        return gpu_backend.log_masses(logits)
    mass = logits.logsumexp(-1)
    if exact:
        return mass, torch.zeros_like(mass)
    policy = (logits - mass[:, None]).exp_()
    return mass, torch.linalg.vecdot(policy, logits)


def _near_rest(hidden: Tensor, mean_logit: Tensor, table: Tensor, near: TopKTokens) -> Tensor:
    """The mean direction of the rest, estimated without reading the matrix.

    The next most likely tokens contribute exactly. For all others the mean logit gives the component along
    the hidden state; orthogonally they are assumed to follow the near ones by a quarter.
    """
    shares = (near.values - near.mass[:, None]).exp()
    close = shares[:, near.size :]
    weight = close.sum(-1).clamp(min=1e-30)
    weights = (close / weight[:, None]).to(table.dtype)
    direction = torch.bmm(weights[:, None], table[near.tokens[:, near.size :]])[:, 0].float()
    mean_logit = mean_logit - (shares * near.values).sum(-1)
    far = (1 - shares.sum(-1)).clamp(min=1e-9)
    length = hidden.square().sum(-1).clamp(min=1e-30)
    along = (direction * hidden).sum(-1) / length
    across = direction - along[:, None] * hidden
    beyond = (mean_logit / far / length)[:, None] * hidden + FOLLOW * across
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
    """The gradient of ratio x D at one token, ratio (dD + D d log pi(action)): sampled eq. 4."""
    ratio = (log_policy - vanilla).gather(-1, action[:, None]).exp()
    vector = vectors.gather(1, action[:, None, None].expand(-1, 1, vectors.shape[-1]))[:, 0]
    return ratio * (slope + value[:, None] * (vector - mean))
