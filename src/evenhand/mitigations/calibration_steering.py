"""Calibration as steering: the state of each text, and one step for all rows of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from evenhand.core.protocols import Candidates, LMHead, Step
from evenhand.mitigations.calibration import LEAST, MOST, CalibrationConfig
from evenhand.mitigations.calibrator import Calibrator
from evenhand.mitigations.debias_gains import ClassifierGain, DebiasGain, EmbeddingGain
from evenhand.mitigations.policy import CalibrationResult, Support
from evenhand.mitigations.token_calibration import calibrate, expected_vector, find_support
from evenhand.mitigations.word_lists import WordListVectors


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

    def _gain(
        self, states: Tensor, support: Support, memory: SteeringMemory
    ) -> tuple[DebiasGain, SteeringMemory]:
        if self.head is None:
            assert self.vectors is not None
            gain = EmbeddingGain.of(self.vectors, states, support.mass, self.settings, memory.total[:, 0])
            return gain, memory._replace(total=gain.accumulate(states)[:, None])
        if self.head.states == "hidden":
            return _classifier_gain(self.head, states, None, memory, self.settings)
        return _classifier_gain(self.head, states, expected_vector(states, support), memory, self.settings)

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
) -> tuple[DebiasGain, SteeringMemory]:
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
