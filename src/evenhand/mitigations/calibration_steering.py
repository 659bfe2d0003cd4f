"""Calibration as steering: the state of each text, and K Adam steps on a hidden state for each token.

With z = E h + b and pi = softmax(z), every term of the objective has a closed gradient in h:

    lambda R(h) - KL(pi_vanilla || pi),   d(-KL)/dh = E'pi_vanilla - E'pi

so a step needs E'pi and no autograd. Only the most likely tokens are tracked individually; all others form
one more row, whose logit is the log of their mass and whose vector is their mean direction (ADR 20).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from evenhand.core.protocols import Candidates, LMHead, Step
from evenhand.generation.decode_attention import topk
from evenhand.mitigations import gpu_backend
from evenhand.mitigations.calibration import BETA1, BETA2, EPSILON, FOLLOW, NOTHING, REACH, CalibrationConfig
from evenhand.mitigations.calibrator import Calibrator
from evenhand.mitigations.objective import CalibrationResult, ClassifierGain, EmbeddingGain, Gain, Support
from evenhand.mitigations.word_lists import WordListVectors

LEAST, MOST = 2.0**-20, 2.0**20
"""Bounds of the strength: repeated halving or doubling would end at 0 or infinity."""


class SteeringMemory(NamedTuple):
    """The steering state of a batch, one row per text."""

    strength: Tensor
    """Lambda."""
    divergence: Tensor
    """KL(vanilla || calibrated) of the last token, in nats."""
    total: Tensor
    """The discounted sum over the tokens so far of the vanilla policy's expected vector (classifier: rows x
    width), or of the excess gap between the sides (embedding: rows x 1)."""
    seen: Tensor
    """The sum of the discounts."""
    inside: Tensor
    """Rows x window x inner width: the inner layer of the accumulated state at each recent token."""
    valid: Tensor
    """Rows x window: 1 if the text is long enough to have that token."""


@dataclass(frozen=True, slots=True)
class CalibrationSteering:
    """Reinforced calibration of a model, guided by word vectors or a classifier head."""

    lm_head: LMHead
    settings: CalibrationConfig
    vectors: WordListVectors | None = None
    head: Calibrator | None = None

    def begin(self, *, keep: int) -> CalibrationProcessor:
        """A processor for new texts; it returns the policy on the support only if sampling needs no more."""
        whole = not 0 < keep <= self.settings.support
        return CalibrationProcessor(self, whole)

    def advance(
        self, hidden: Tensor, logits: Tensor, uniforms: Tensor, memory: SteeringMemory, *, whole: bool
    ) -> tuple[Candidates, SteeringMemory]:
        """One step of Algorithm 1 for all rows; the result depends only on the arguments.

        With ``whole`` it is the policy over the whole vocabulary, else over the support.
        """
        states, settings = hidden.float(), self.settings
        support = find_support(states, logits, self.lm_head, size=settings.support, exact=whole)
        gain, after = self._gain(states, support, memory)
        action = _sampled_place(support, uniforms) if settings.ratio == "sampled" else None
        result = calibrate(states, support, gain, memory.strength, settings, action)
        strength = adapt_strength(memory.strength, result.divergence, settings)
        updated = _update_memory(memory, after._replace(strength=strength, divergence=result.divergence))
        calibrated = self._keep_finite(logits, support, result, whole=whole)
        return Candidates(calibrated, None if whole else support.tokens), updated

    def fresh(self, rows: int, *, start: float, device: torch.device) -> SteeringMemory:
        """The initial state of new texts."""
        inner, width = (0, 1) if self.head is None else self.head.inner.shape
        window = self.settings.window + 1

        def zeros(*size: int) -> Tensor:
            return torch.zeros(rows, *size, device=device)

        strength = torch.full((rows,), start, device=device)
        return SteeringMemory(strength, zeros(), zeros(width), zeros(), zeros(window, inner), zeros(window))

    def _gain(self, states: Tensor, support: Support, memory: SteeringMemory) -> tuple[Gain, SteeringMemory]:
        if self.head is None:
            assert self.vectors is not None
            gain = EmbeddingGain.of(self.vectors, states, support.mass, self.settings, memory.total[:, 0])
            return gain, memory._replace(total=gain.accumulate(states)[:, None])
        expected = None if self.head.states == "hidden" else expected_vector(states, support)
        return _classifier_gain(self.head, states, expected, memory, self.settings)

    def _keep_finite(
        self, logits: Tensor, support: Support, result: CalibrationResult, *, whole: bool
    ) -> Tensor:
        """The calibrated logits; rows that overflowed keep the model's own."""
        calibrated, plain = result.logits, support.logits
        if whole:
            table, bias = self.lm_head.table, self.lm_head.bias
            calibrated, plain = (result.hidden.to(table.dtype) @ table.T).float(), logits
            calibrated = calibrated if bias is None else calibrated + bias.float()
        finite = calibrated.isfinite().all(-1, keepdim=True) & result.hidden.isfinite().all(-1, keepdim=True)
        return torch.where(finite, calibrated, plain)


@dataclass(slots=True)
class CalibrationProcessor:
    """Calibrates the rows of one batch, token by token; also a ``CapturableProcessor``."""

    steering: CalibrationSteering
    whole: bool
    """Whether to return the policy over the whole vocabulary."""
    memory: SteeringMemory | None = None
    _rows: list[int] = field(default_factory=list)

    @torch.no_grad()
    def __call__(self, step: Step) -> Candidates:
        """The next candidates after K ascent steps on the objective."""
        if self.steering.settings.strength == 0:
            return Candidates(step.logits)
        memory = self._gather_memory(list(step.rows), step.hidden.device)
        candidates, self.memory = self.steering.advance(
            step.hidden, step.logits, step.uniforms, memory, whole=self.whole
        )
        return candidates

    def flow(self) -> CalibrationProcessor | None:
        """The same step on tensors; None if texts start with the final strength of earlier ones."""
        return None if self.steering.settings.carry else self

    def fresh(self, rows: int, device: torch.device) -> Sequence[Tensor]:
        """The initial state of new texts; empty if nothing is steered."""
        start = self.steering.settings.strength
        return self.steering.fresh(rows, start=start, device=device) if start else ()

    def advance(
        self, hidden: Tensor, logits: Tensor, uniforms: Tensor, memory: Sequence[Tensor]
    ) -> tuple[Candidates, Sequence[Tensor]]:
        """The next candidates, and the updated state."""
        if not memory:
            return Candidates(logits), ()
        return self.steering.advance(hidden, logits, uniforms, SteeringMemory(*memory), whole=self.whole)

    def _gather_memory(self, rows: list[int], device: torch.device) -> SteeringMemory:
        """The state in the order of these rows; new texts get an initial state."""
        if self.memory is not None and rows == self._rows:
            return self.memory
        fresh = self.steering.fresh(len(rows), start=self._start(), device=device)
        known = {row: place for place, row in enumerate(self._rows)}
        pairs = [(new, known[row]) for new, row in enumerate(rows) if row in known]
        self._rows = rows
        if self.memory is None or not pairs:
            return fresh
        new, old = (torch.tensor(places, device=device) for places in zip(*pairs, strict=True))
        for mine, theirs in zip(fresh, self.memory, strict=True):
            mine[new] = theirs[old]
        return fresh

    def _start(self) -> float:
        settings = self.steering.settings
        if settings.carry and self.memory is not None:
            return float(self.memory.strength.log().mean().exp())
        return settings.strength


def adapt_strength(strength: Tensor, divergence: Tensor, settings: CalibrationConfig) -> Tensor:
    """The strengths of the next token: halved from 2 sigma, doubled up to sigma / 2 (Algorithm 1)."""
    sigma = settings.sigma
    halved = torch.where(divergence >= 2 * sigma, strength / 2, strength)
    return torch.where(divergence <= sigma / 2, strength * 2, halved).clamp(LEAST, MOST)


def _update_memory(before: SteeringMemory, after: SteeringMemory) -> SteeringMemory:
    """The state after a token; a row that overflowed ignores that token and continues with the next.

    Its strength is still adapted: an infinite divergence halves it.
    """
    sound = (after.total.sum(-1) + after.divergence).isfinite()
    parts = [
        torch.where(sound.reshape(-1, *(1 for _ in new.shape[1:])), new, old)
        for new, old in zip(after, before, strict=True)
    ]
    return SteeringMemory(*parts)._replace(strength=after.strength)


def _sampled_place(support: Support, uniforms: Tensor) -> Tensor:
    """The index of the token that the vanilla policy samples with the same number; the rest is one token."""
    shares = (support.logits - support.mass[:, None]).double().exp()
    return torch.searchsorted(shares.cumsum(-1), uniforms.double()[:, None], right=True)[:, 0]


def _classifier_gain(
    head: Calibrator,
    states: Tensor,
    expected: Tensor | None,
    memory: SteeringMemory,
    settings: CalibrationConfig,
) -> tuple[Gain, SteeringMemory]:
    """The gain of rows and their new state; ``expected`` is None for a head on hidden states.

    The state accumulates the model's own expected vector, not the sampled tokens: sampling noise exceeds the
    lean many times, and steered states would hide the lean that must still be countered (ADR 20).
    """
    about = states if expected is None else expected
    total, discounts = head.discount * memory.total + about, head.discount * memory.seen + 1
    share = 1 / discounts
    newest = total * share[:, None]
    inside = torch.cat([memory.inside[:, 1:], (newest @ head.inner.T + head.inner_bias)[:, None]], 1)
    valid = torch.cat([memory.valid[:, 1:], torch.ones_like(memory.valid[:, :1])], 1)
    ages = torch.arange(settings.window, -1, -1, device=states.device)
    weights = valid * settings.gamma**ages / (settings.window + 1)
    updated = memory._replace(total=total, seen=discounts, inside=inside, valid=valid)
    return ClassifierGain(head, inside, share, weights, expected), updated


def find_support(hidden: Tensor, logits: Tensor, lm_head: LMHead, *, size: int, exact: bool) -> Support:
    """The ``size`` most likely tokens and the rest, whose mass is exact.

    The rest moves in its mean direction: with ``exact`` that of all other tokens, which reads the whole
    matrix again; else an estimate from the next most likely tokens up to 512 and the rest's mean logit.
    """
    if _is_fused(lm_head.table) and not exact:
        from evenhand.mitigations import cpu_backend

        return cpu_backend.find_support(hidden, logits, lm_head, size=size)
    table = lm_head.table
    values, tokens = topk(logits, min(logits.shape[-1], size if exact else max(size, REACH)))
    if not exact and gpu_backend.supports_table(table):
        mass, mean_logit = gpu_backend.log_masses(logits)
        last, rest_offset = gpu_backend.estimate_rest(hidden, table, tokens, values, mass, mean_logit, size)
    else:
        mass, inside = logits.logsumexp(-1), values[:, :size].logsumexp(-1)
        # log(exp(mass) - exp(inside)); an empty rest is negligible in every sum.
        rest = mass + torch.log1p(-(inside - mass).exp().clamp(max=1)).clamp(min=NOTHING)
        if exact:
            last = _whole_rest(logits, tokens, rest, table)
        else:
            last = _near_rest(hidden, logits, table, tokens, values, mass, size)
        rest_offset = rest - (last * hidden).sum(-1)
    tokens, likeliest = tokens[:, :size], values[:, :size]
    offsets = torch.zeros_like(likeliest) if lm_head.bias is None else lm_head.bias[tokens].float()
    return Support(table, tokens, last, torch.cat([offsets, rest_offset[:, None]], 1), likeliest, mass)


def _is_fused(table: Tensor) -> bool:
    """Whether rows are processed one by one, each in a core's cache."""
    return table.device.type == "cpu" and table.dtype == torch.float32


def expected_vector(hidden: Tensor, support: Support) -> Tensor:
    """E'pi: the expected output vector of a policy, rows x width."""
    if _is_fused(support.table):
        from evenhand.mitigations import cpu_backend

        return cpu_backend.expected_vector(hidden, support)
    if gpu_backend.supports_table(support.table):
        return gpu_backend.expected_vector(hidden, support)
    vectors = support.vectors
    logits = torch.baddbmm(support.offsets[..., None], vectors, hidden[..., None])[..., 0]
    return _mean(logits.log_softmax(-1), vectors)


def calibrate(
    hidden: Tensor,
    support: Support,
    gain: Gain,
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
        if gpu_backend.supports_table(support.table):
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


def _near_rest(
    hidden: Tensor, logits: Tensor, table: Tensor, tokens: Tensor, values: Tensor, mass: Tensor, size: int
) -> Tensor:
    """The mean direction of the rest, estimated without reading the matrix.

    The next most likely tokens contribute exactly. For all others the mean logit gives the component along
    the hidden state; orthogonally they are assumed to follow the near ones by a quarter.
    """
    shares = (values - mass[:, None]).exp()
    close = shares[:, size:]
    weight = close.sum(-1).clamp(min=1e-30)
    weights = (close / weight[:, None]).to(table.dtype)
    direction = torch.bmm(weights[:, None], table[tokens[:, size:]])[:, 0].float()
    # The mean logit under the policy, without the part of the near tokens.
    policy = (logits - mass[:, None]).exp_()
    mean_logit: Tensor = torch.linalg.vecdot(policy, logits)
    mean_logit = mean_logit - (shares * values).sum(-1)
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
