"""The compiled search for the likeliest tokens against torch's, and the functions both loops rest on."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.core.protocols import LMHead
from evenhand.mitigations import cpu_kernels
from evenhand.mitigations.calibration_steering import find_support


def drawn(seed: int, tokens: int, rows: int = 3, width: int = 8) -> tuple[LMHead, torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(seed)
    table = torch.randn(tokens, width, generator=random)
    hidden = torch.randn(rows, width, generator=random)
    return LMHead(table, None, lambda texts: []), hidden, hidden @ table.T


@given(st.integers(0, 1000), st.sampled_from([5, 130, 700, 5000]), st.sampled_from([1, 20, 128]))
@settings(max_examples=25, deadline=None)
def test_what_is_found_is_what_torch_finds(seed: int, tokens: int, size: int) -> None:
    anatomy, hidden, logits = drawn(seed, tokens)
    fast = find_support(hidden, logits, anatomy, size=size, exact=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evenhand.mitigations.calibration_steering._is_fused", lambda table: False)
        slow = find_support(hidden, logits, anatomy, size=size, exact=False)
    assert torch.equal(fast.tokens, slow.tokens)
    assert torch.equal(fast.logits, slow.logits)
    assert torch.allclose(fast.mass, slow.mass, atol=1e-5)
    # The rest counts by its share: that of two tokens in a hundred million has no direction to speak of.
    share = 1 - (slow.logits.double() - slow.mass[:, None]).exp().sum(-1, keepdim=True).clamp(max=1)
    assert torch.allclose(share * fast.last, share * slow.last, rtol=1e-3, atol=1e-4)
    ends = (share[:, 0] * found.offsets[:, -1] for found in (fast, slow))
    assert torch.allclose(*ends, rtol=1e-3, atol=1e-3)


def test_of_equal_logits_the_lower_token_comes_first_and_all_are_found() -> None:
    anatomy, hidden, _ = drawn(0, 9000)
    # Every bound guessed from a sample leaves 0 or 9,000 tokens.
    found = find_support(hidden, torch.zeros(3, 9000), anatomy, size=128, exact=False)
    assert found.tokens.tolist() == [list(range(128))] * 3
    # log(9000) = 9.105
    assert found.mass.tolist() == pytest.approx([9.105] * 3, abs=1e-3)


def test_likely_tokens_that_no_sample_sees_are_found() -> None:
    anatomy, hidden, _ = drawn(0, 9000)
    logits = torch.full((3, 9000), -5.0)
    # Every fourth token is looked at, 9000 // 2048 = 4: these are none of them.
    logits[:, 1:2049:4] = 3.0
    found = find_support(hidden, logits, anatomy, size=128, exact=False)
    assert found.tokens.tolist() == [list(range(1, 513, 4))] * 3


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_a_row_that_is_no_policy_stays_visible_and_alone(value: float) -> None:
    anatomy, hidden, logits = drawn(1, 3000)
    logits[1, 7] = value
    found = find_support(hidden, logits, anatomy, size=20, exact=False)
    assert found.mass.isfinite().tolist() == [True, False, True]


def test_a_token_that_is_ruled_out_does_no_harm() -> None:
    anatomy, hidden, logits = drawn(1, 3000)
    logits[:, 7] = -torch.inf
    found = find_support(hidden, logits, anatomy, size=20, exact=False)
    assert found.last.isfinite().all()
    assert torch.allclose(found.mass, logits.logsumexp(-1), atol=1e-5)


def test_exponential_and_tangent_are_numpys() -> None:
    numbers = np.linspace(-86, 88, 3001, dtype=np.float32)
    found = np.array([cpu_kernels.exp(number) for number in numbers])
    assert np.abs(found / np.exp(numbers.astype(np.float64)) - 1).max() < 1e-6
    bent = np.array([cpu_kernels.tanh(number) for number in numbers])
    assert np.abs(bent - np.tanh(numbers)).max() < 1e-6
    # exp(-87) = 1.6e-38 is the least; more than float32 holds is infinite, and NaN stays NaN.
    assert cpu_kernels.exp(np.float32(-1000)) == pytest.approx(1.6e-38, rel=0.1)
    assert cpu_kernels.exp(np.float32(1000)) == np.inf
    assert np.isnan(cpu_kernels.exp(np.float32(np.nan)))
