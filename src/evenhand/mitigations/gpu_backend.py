"""Calibration on a GPU with the kernels of `triton_optimizer`; the whole step is captured as one graph."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeAlias

import torch
from torch import Tensor

from evenhand.mitigations.calibration import BETA1, BETA2, FOLLOW, NOTHING, CalibrationConfig
from evenhand.mitigations.objective import CalibrationResult, ClassifierGain, EmbeddingGain, Gain, Support
from evenhand.mitigations.word_lists import WordListVectors
from evenhand.tensors.devices import is_current_gpu, triton_available

_PARTS: Final = 8
"""Number of blocks among which the tokens of a row are split."""
_TILE: Final = 4
"""Vectors per tile of a block."""
_COLUMNS: Final = 4096
"""Logits per tile of a block."""
_WARPS: Final = 4
_WIDEST: Final = 8192
# Triton has no type stubs: its kernels stay inside this file.
_Kernels: TypeAlias = Any


@cache
def is_available() -> bool:
    """Whether our kernels work, tested once on two small rows; otherwise torch's own are used."""
    return triton_available(_run_trial, instead="calibration uses torch's own kernels")


def _run_trial() -> None:
    """Optimise two rows of a small matrix."""
    states, tokens = torch.ones(2, 16, device="cuda"), torch.arange(4, device="cuda").repeat(2, 1)
    flat, mass = states.new_zeros(2, 5), torch.full((2,), 16.0, device="cuda").log()
    support = Support(torch.eye(16, device="cuda"), tokens, torch.zeros_like(states), flat, flat[:, :4], mass)
    vectors, settings = WordListVectors(states[0], states[1], (0.0, 0.0), 0), CalibrationConfig(steps=1)
    gain = EmbeddingGain.of(vectors, states, mass, settings, states.new_zeros(2))
    optimize(states, support, gain, states.new_ones(2), settings)
    torch.cuda.synchronize()


def supports_table(table: Tensor) -> bool:
    """Whether this output matrix is supported."""
    fits = is_current_gpu(table.device) and table.is_contiguous() and table.shape[1] <= _WIDEST
    return fits and is_available()


def log_masses(logits: Tensor) -> tuple[Tensor, Tensor]:
    """The log of each row's mass, and the mean of its logits under its own policy."""
    from evenhand.mitigations import triton_optimizer

    mass, mean_logit = logits.new_empty(len(logits)), logits.new_empty(len(logits))
    rows = logits if logits.stride(1) == 1 else logits.contiguous()
    triton_optimizer.log_masses[len(rows),](
        rows, mass, mean_logit, rows.shape[1], rows.stride(0), TILE=_COLUMNS, num_warps=_WARPS
    )
    return mass, mean_logit


def estimate_rest(
    hidden: Tensor,
    table: Tensor,
    tokens: Tensor,
    values: Tensor,
    mass: Tensor,
    mean_logit: Tensor,
    size: int,
) -> tuple[Tensor, Tensor]:
    """The mean direction of the rest (ADR 20), and the offset of its product with the hidden state."""
    from evenhand.mitigations import triton_optimizer

    rows, width = hidden.shape
    reach = values.shape[1]
    sums, last = hidden.new_empty(rows, _PARTS, width), torch.empty_like(hidden)
    offset, values = hidden.new_empty(rows), values.contiguous()
    sizes = {"W": _power_of_two(width), "PARTS": _PARTS, "num_warps": _WARPS}
    seen = (table, tokens.contiguous(), values, mass, sums)
    triton_optimizer.weigh_rest[rows, _PARTS](*seen, size, reach, width, TILE=_TILE, **sizes)
    inputs = (sums, values, mass, mean_logit, hidden.contiguous(), last, offset)
    triton_optimizer.rest_direction[rows,](
        *inputs, FOLLOW, NOTHING, size, reach, width, R=_power_of_two(reach), **sizes
    )
    return last, offset


def optimize(
    hidden: Tensor,
    support: Support,
    gain: Gain,
    strength: Tensor,
    settings: CalibrationConfig,
) -> CalibrationResult:
    """The GPU version of `calibration_steering.calibrate`."""
    opt = _OptimizerBuffers(hidden.contiguous(), support, strength.contiguous(), settings)
    start = opt.evaluate_policy()
    step = _by_words(opt, gain) if isinstance(gain, EmbeddingGain) else _by_head(opt, gain)
    logits = start
    for number in range(1, settings.steps + 1):
        step(number)
        logits = opt.evaluate_policy()
    policy = start.log_softmax(-1)
    divergence = (policy.exp() * (policy - logits.log_softmax(-1))).sum(-1)
    return CalibrationResult(opt.now, logits[:, :-1], divergence, opt.gain)


def expected_vector(hidden: Tensor, support: Support) -> Tensor:
    """The GPU version of `calibration_steering.expected_vector`."""
    opt = _OptimizerBuffers(hidden.contiguous(), support, support.mass, CalibrationConfig())
    opt.evaluate_policy()
    return opt.means.sum(1) / opt.totals.sum(1, keepdim=True)


class _OptimizerBuffers:
    """The state of the rows during optimisation, with all kernel outputs."""

    def __init__(
        self, hidden: Tensor, support: Support, strength: Tensor, settings: CalibrationConfig
    ) -> None:
        from evenhand.mitigations import triton_optimizer

        self.kernels: _Kernels = triton_optimizer
        rows, self.width = hidden.shape
        self.wide = _power_of_two(self.width)
        self.hidden, self.strength, self.now = hidden, strength, hidden.clone()
        self._tokens, self._last = support.tokens.contiguous(), support.last.contiguous()
        self._table, self._offsets = support.table, support.offsets.contiguous()
        self.near, self.rates = support.mass.clone(), settings.rate * hidden.square().mean(-1).sqrt()
        self.first, self.second = torch.zeros_like(hidden), torch.zeros_like(hidden)
        self.vanilla, self.gain = torch.empty_like(hidden), hidden.new_empty(rows)
        self.totals = hidden.new_empty(rows, _PARTS)
        self.means = hidden.new_empty(rows, _PARTS, self.width)

    def evaluate_policy(self) -> Tensor:
        """The logits at the current states, with the rest as the last column."""
        logits = torch.empty_like(self._offsets)
        inputs = (self._table, self._tokens, self._last, self._offsets, self.now, self.near)
        sizes = {"W": self.wide, "PARTS": _PARTS, "TILE": _TILE, "num_warps": _WARPS}
        self.kernels.evaluate_policy[len(self.now), _PARTS](
            *inputs, logits, self.totals, self.means, self._tokens.shape[1], self.width, **sizes
        )
        return logits


def _by_words(opt: _OptimizerBuffers, gain: EmbeddingGain) -> Callable[[int], None]:
    """A function for one ascent step with word lists."""
    vectors, rows = gain.vectors, len(opt.now)
    sides = torch.stack([vectors.first, vectors.second]).float()
    units, target = gain.units.contiguous(), gain.earlier - vectors.centre
    words = (sides, units, target, *(float(offset) for offset in vectors.offsets), float(gain.balance))
    state = (opt.totals, opt.means, opt.near, opt.now, opt.first, opt.second, opt.vanilla)
    inputs = (*state, opt.rates, opt.strength, opt.gain, *words)
    sizes = {"W": opt.wide, "PARTS": _PARTS, "num_warps": _WARPS}

    def step(number: int) -> None:
        opt.kernels.step_by_words[rows,](*inputs, *_adam(number), rows, opt.width, FIRST=number == 1, **sizes)

    return step


def _by_head(opt: _OptimizerBuffers, gain: ClassifierGain) -> Callable[[int], None]:
    """A function for one ascent step with a head; its two products cover all rows."""
    head, rows, units = gain.head, len(opt.now), len(gain.head.outer)
    layer, weights, share = gain.inside.contiguous(), gain.weights.contiguous(), gain.share.contiguous()
    shift, back = opt.now.new_empty(rows, units), opt.now.new_empty(rows, units)
    mean, moved, slope = (torch.empty_like(opt.now) for _ in range(3))

    def step(number: int) -> None:
        is_first = number == 1
        sizes = {"FIRST": is_first, "num_warps": _WARPS}
        parts = (opt.totals, opt.means, opt.near, opt.now, opt.hidden, opt.vanilla, mean, moved, share)
        natural = gain.expected is not None
        opt.kernels.expected_vector[rows,](
            *parts, opt.width, NATURAL=natural, W=opt.wide, PARTS=_PARTS, **sizes
        )
        if not is_first:
            torch.mm(moved, head.inner.T, out=shift)
        seen = (layer, shift, weights, head.outer, head.outer_bias, share, opt.strength, back, opt.gain)
        opt.kernels.head_gain_gradient[rows,](*seen, weights.shape[1], units, U=_power_of_two(units), **sizes)
        torch.mm(back, head.inner, out=slope)
        state = (slope, mean, opt.vanilla, opt.first, opt.second, opt.now, opt.rates)
        opt.kernels.step_by_head[rows,](*state, *_adam(number), opt.width, W=opt.wide, num_warps=_WARPS)

    return step


def _adam(number: int) -> tuple[float, float]:
    """The factors of the first moment and of the root of the second at a step."""
    return 1 / (1 - BETA1**number), (1 - BETA2**number) ** -0.5


def _power_of_two(number: int) -> int:
    """The smallest power of two that is not below a number."""
    return 1 << (number - 1).bit_length()
