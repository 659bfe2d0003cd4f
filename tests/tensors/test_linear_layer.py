from __future__ import annotations

import pytest
import torch
from tests.generation.kernels import DEVICE

from evenhand.tensors import linear_layer
from evenhand.tensors.linear_layer import PackedLinear


@pytest.mark.parametrize("rows", [1, 5, 32, 40])
def test_a_packed_product_is_the_plain_one(rows: int) -> None:
    generator = torch.Generator().manual_seed(0)
    weight, bias, x = (torch.randn(*size, generator=generator) for size in ((7, 6), (7,), (rows, 2, 6)))
    expected = x @ weight.T + bias
    assert torch.allclose(PackedLinear(weight, bias)(x), expected, atol=1e-5)


def test_without_the_operators_the_plain_product_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_layer, "_pack", lambda weight: None)
    # (1, 2) times ((1, 0), (0, 1), (1, 1)) transposed is (1, 2, 3).
    weight = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    assert PackedLinear(weight)(torch.tensor([[1.0, 2.0]])).tolist() == [[1.0, 2.0, 3.0]]


def test_half_precision_stays_plain() -> None:
    assert linear_layer._pack(torch.zeros(2, 2, dtype=torch.bfloat16)) is None


@pytest.mark.parametrize("packs", [True, False])
def test_the_gelu_of_a_product_is_that_of_the_product(packs: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not packs:
        monkeypatch.setattr(linear_layer, "_pack", lambda weight: None)
    generator = torch.Generator().manual_seed(0)
    weight, bias, x = (torch.randn(*size, generator=generator) for size in ((7, 6), (7,), (5, 6)))
    product = PackedLinear(weight, bias)
    # x times the normal distribution's share below x.
    below = torch.distributions.Normal(0.0, 1.0).cdf(product(x))  # type: ignore[no-untyped-call]
    assert torch.allclose(product.gelu(x), product(x) * below, atol=1e-6)


@pytest.mark.parametrize("fuses", [True, False])
def test_the_approximate_gelu_is_torchs(fuses: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_layer, "fuses_gelu", lambda weight: fuses)
    generator = torch.Generator().manual_seed(0)
    weight, bias, x = (torch.randn(*size, generator=generator) for size in ((16, 8), (16,), (5, 2, 8)))
    product = PackedLinear(weight.to(DEVICE, torch.bfloat16), bias.to(DEVICE, torch.bfloat16))
    found = product.tanh_gelu(x.to(DEVICE, torch.bfloat16)).float().cpu()
    near = torch.nn.functional.gelu(x @ weight.T + bias, approximate="tanh")
    # Half precision has three digits; a CPU's product with GELU is the exact one, 5e-4 away at most.
    assert torch.allclose(found, near, rtol=2e-2, atol=3e-2)


def test_on_a_cpu_and_in_float32_product_and_gelu_stay_two() -> None:
    assert not linear_layer.fuses_gelu(torch.zeros(2, 2, dtype=torch.bfloat16))
    assert not linear_layer.fuses_gelu(torch.zeros(2, 2, device=DEVICE))
