"""The Triton kernels against torch's own, where there is a GPU."""

from __future__ import annotations

import pytest
import torch
from tests.mitigations.test_token_calibration import head_of, model, plain, vectors

from evenhand.mitigations import gpu_backend
from evenhand.mitigations.calibration import CalibrationConfig
from evenhand.mitigations.debias_gains import ClassifierGain, EmbeddingGain
from evenhand.mitigations.token_calibration import DebiasGain, calibrate, expected_vector, find_support

pytestmark = pytest.mark.skipif(
    not (torch.cuda.is_available() and gpu_backend.is_available()), reason="needs a GPU and Triton"
)


def test_masses_and_means_are_torchs() -> None:
    table, hidden = (tensor.cuda() for tensor in model(2, tokens=5000, width=24, rows=5))
    logits = hidden @ table.T
    logits[1, 7] = -torch.inf
    mass, said = gpu_backend.log_masses(logits)
    policy = logits.softmax(-1)
    assert torch.allclose(mass, logits.logsumexp(-1), atol=1e-4)
    assert torch.allclose(said, (policy * logits.clamp(min=-1e4)).sum(-1), atol=1e-3)


def test_the_rest_is_torchs() -> None:
    table, hidden = (tensor.cuda() for tensor in model(2, tokens=2000, width=24, rows=5))
    both = []
    for fast in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            if not fast:
                patch.setattr(gpu_backend, "supports_table", lambda table: False)
            both.append(find_support(hidden, hidden @ table.T, plain(table), size=50, exact=False))
    for one, other in zip(*both, strict=True):
        assert torch.allclose(one, other, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("guide", ["words", "written", "hidden"])
def test_the_climb_is_torchs(guide: str) -> None:
    table, hidden = (tensor.cuda() for tensor in model(2, tokens=300, width=24, rows=5))
    chosen, strength = CalibrationConfig(rate=0.003), torch.linspace(0.1, 0.6, 5).cuda()
    support = find_support(hidden, hidden @ table.T, plain(table), size=50, exact=False)

    def climbed() -> tuple[torch.Tensor, ...]:
        gain: DebiasGain
        if guide == "words":
            gain = EmbeddingGain.of(
                vectors(table), hidden, support.mass, chosen, torch.full_like(strength, 0.2)
            )
        else:
            layer = torch.linspace(-1, 1, 5 * 3 * 8).reshape(5, 3, 8).cuda()
            before = expected_vector(hidden, support) if guide == "written" else None
            head = head_of(1, 24).to(table.device)
            share, weights = torch.full_like(strength, 0.5), torch.full((5, 3), 0.3).cuda()
            gain = ClassifierGain(head, layer, share, weights, before)
        return tuple(calibrate(hidden, support, gain, strength, chosen))

    fast = climbed()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpu_backend, "supports_rows", lambda support: False)
        slow = climbed()
    for one, other in zip(fast, slow, strict=True):
        assert torch.allclose(one, other, rtol=1e-3, atol=1e-3)
