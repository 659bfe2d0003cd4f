"""The Triton kernels of a calibration against torch's own, on a GPU or by Triton's interpreter."""

from __future__ import annotations

import pytest
import torch
from tests.generation.kernels import DEVICE, needs_kernels
from tests.mitigations.test_token_calibration import head_of, model, plain, vectors

from evenhand.mitigations import calibration_steering, gpu_backend
from evenhand.mitigations.calibration import CalibrationConfig
from evenhand.mitigations.calibration_steering import calibrate, expected_vector, find_support
from evenhand.mitigations.objective import ClassifierGain, EmbeddingGain, Gain

pytestmark = needs_kernels


def rows_of(*, tokens: int) -> tuple[torch.Tensor, torch.Tensor]:
    table, hidden = model(2, tokens=tokens, width=24, rows=5)
    return table.to(DEVICE), hidden.to(DEVICE)


def use_kernels(patch: pytest.MonkeyPatch, *, fast: bool) -> None:
    """By our kernels or by torch's, also where tables on a CPU have loops of their own."""
    patch.setattr(calibration_steering, "_is_fused", lambda table: False)
    patch.setattr(gpu_backend, "supports_table", lambda table: fast)


def test_masses_and_means_are_torchs() -> None:
    table, hidden = rows_of(tokens=5000)
    logits = hidden @ table.T
    logits[1, 7] = -torch.inf
    mass, said = gpu_backend.log_masses(logits)
    policy = logits.softmax(-1)
    assert torch.allclose(mass, logits.logsumexp(-1), atol=1e-4)
    assert torch.allclose(said, (policy * logits.clamp(min=-1e4)).sum(-1), atol=1e-3)


def test_the_rest_is_torchs(monkeypatch: pytest.MonkeyPatch) -> None:
    table, hidden = rows_of(tokens=2000)
    both = []
    for fast in (True, False):
        use_kernels(monkeypatch, fast=fast)
        both.append(find_support(hidden, hidden @ table.T, plain(table), size=50, exact=False))
    for one, other in zip(*both, strict=True):
        assert torch.allclose(one, other, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("guide", ["words", "written", "hidden"])
def test_the_optimization_is_torchs(guide: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table, hidden = rows_of(tokens=300)
    chosen, strength = CalibrationConfig(rate=0.003), torch.linspace(0.1, 0.6, 5, device=DEVICE)
    use_kernels(monkeypatch, fast=False)
    support = find_support(hidden, hidden @ table.T, plain(table), size=50, exact=False)

    def optimized() -> tuple[torch.Tensor, ...]:
        gain: Gain
        if guide == "words":
            earlier = torch.full_like(strength, 0.2)
            gain = EmbeddingGain.of(vectors(table), hidden, support.mass, chosen, earlier)
        else:
            layer = torch.linspace(-1, 1, 5 * 3 * 8, device=DEVICE).reshape(5, 3, 8)
            before = expected_vector(hidden, support) if guide == "written" else None
            share, weights = torch.full_like(strength, 0.5), torch.full((5, 3), 0.3, device=DEVICE)
            gain = ClassifierGain(head_of(1, 24).to(DEVICE), layer, share, weights, before)
        return tuple(calibrate(hidden, support, gain, strength, chosen))

    slow = optimized()
    use_kernels(monkeypatch, fast=True)
    for one, other in zip(optimized(), slow, strict=True):
        assert torch.allclose(one, other, rtol=1e-3, atol=1e-3)
