"""Muon, the division of parameters, the schedule."""

from __future__ import annotations

import math

import pytest
import torch
from tools.assets.language_models import CausalModel, CausalShape
from tools.assets.training_loop import Muon, divide, orthogonalise, time_cosine
from torch import nn


def test_orthogonalise_pushes_singular_values_near_one_and_keeps_directions() -> None:
    generator = torch.Generator().manual_seed(0)
    stack = torch.randn(3, 8, 24, generator=generator)
    result = orthogonalise(stack).float()
    values = torch.linalg.svdvals(result)
    assert values.min() > 0.5
    assert values.max() < 1.4
    left, _, right = torch.linalg.svd(stack, full_matrices=False)
    # The nearest orthogonal matrix is U V'; the inner product with it is the sum of singular values.
    overlap = (result * (left @ right)).sum(dim=(1, 2)) / 8
    assert (overlap > 0.7).all()


def test_a_step_has_the_stated_size_whatever_the_gradient() -> None:
    for scale in (1e-4, 1e4):
        weight = nn.Parameter(torch.zeros(16, 64))
        weight.grad = torch.randn(16, 64, generator=torch.Generator().manual_seed(1)) * scale
        Muon([weight], lr=0.1, weight_decay=0.0).step()
        # 16 singular values near 1, times lr, times sqrt(64 / 16) = 2: norm near 0.1 * 2 * sqrt(16) = 0.8.
        assert float(weight.detach().norm()) == pytest.approx(0.8, rel=0.25)


def test_parts_of_one_matrix_are_orthogonalised_apart() -> None:
    joint = nn.Parameter(torch.zeros(8, 24))
    joint.muon_parts = 3  # type: ignore[attr-defined]
    joint.grad = torch.randn(8, 24, generator=torch.Generator().manual_seed(2))
    apart = [nn.Parameter(torch.zeros(8, 8)) for _ in range(3)]
    for part, gradient in zip(apart, joint.grad.chunk(3, dim=1), strict=True):
        part.grad = gradient.clone()
    Muon([joint]).step()
    Muon(apart).step()
    assert torch.equal(joint.detach(), torch.cat([part.detach() for part in apart], dim=1))


def test_muon_has_the_matrices_of_blocks_and_adamw_the_rest() -> None:
    model = CausalModel(CausalShape(vocabulary=50, context=8, layers=2, width=8, heads=2))
    matrices, others = divide(model)
    assert len(matrices) == 2 * 4
    assert all(parameter.ndim == 2 for parameter in matrices)
    # wte, wpe, final norm (2), and per block two norms (4) and four biases.
    assert len(others) == 2 + 2 + 2 * 8
    assert sum(p.numel() for p in matrices + others) == sum(p.numel() for p in model.parameters())


def test_the_schedule_warms_up_in_steps_and_cools_down_in_time() -> None:
    assert time_cosine(0.0, 100.0, step=0, warmup=10) == pytest.approx(0.1)
    assert time_cosine(0.0, 100.0, step=50, warmup=10) == 1.0
    assert time_cosine(50.0, 100.0, step=50, warmup=10) == pytest.approx(0.5)
    assert time_cosine(25.0, 100.0, step=50, warmup=10) == pytest.approx(0.5 * (1 + math.sqrt(0.5)))
    assert time_cosine(101.0, 100.0, step=50, warmup=10) == pytest.approx(0.0)
