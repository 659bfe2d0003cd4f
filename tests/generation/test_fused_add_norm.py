"""The kernels of a recorded step against torch's own: sum and norm, and a whole step of a small GPT-2."""

from __future__ import annotations

import pytest
import torch
from tests.generation.kernels import DEVICE, needs_kernels
from tests.models import tiny

from evenhand.generation.decode_attention import add_norm, fused_add_norm
from evenhand.generation.engine import DecoderOutput
from evenhand.generation.gpt2 import Gpt2, Gpt2Shape
from evenhand.tensors.linear_layer import LayerNormWeights


def drawn(*size: int, seed: int) -> torch.Tensor:
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed)).to(DEVICE)


def test_a_sum_is_normalised() -> None:
    norm = LayerNormWeights(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 0.5]), 0.0)
    # 1 + 2 and 4 + 3 are 3 and 7: mean 5, deviation 2, so -1 and 1; times 1 and 2, plus 0 and 0.5.
    total, found = add_norm(torch.tensor([[1.0, 4.0]]), torch.tensor([[2.0, 3.0]]), norm)
    assert total.tolist() == [[3.0, 7.0]]
    assert found.tolist() == [[-1.0, 2.5]]


@needs_kernels
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("width", [1, 48, 1024])
def test_the_kernel_adds_and_normalises_as_torch_does(kind: torch.dtype, width: int) -> None:
    x, more = (drawn(3, 1, width, seed=seed).to(kind) for seed in (0, 1))
    norm = LayerNormWeights(drawn(width, seed=2).to(kind), drawn(width, seed=3).to(kind), 1e-5)
    (total, found), (sums, wanted) = fused_add_norm(x, more, norm), add_norm(x, more, norm)
    # The interpreter cuts bits off where a GPU rounds.
    near = {"rtol": 1e-5, "atol": 1e-5} if kind == torch.float32 else {"rtol": 1e-2, "atol": 1e-2}
    assert torch.allclose(total.float(), sums.float(), **near)
    assert torch.allclose(found.float(), wanted.float(), **near)


@needs_kernels
def test_a_step_by_kernels_is_a_plain_one(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny.gpt2()
    shape = Gpt2Shape.of(model.config.to_dict())
    assert shape is not None
    engine = Gpt2(shape, model.state_dict(), device=DEVICE)
    prompts = [[3, 4, 5, 6], [7], [8, 9]]
    said: list[DecoderOutput] = []
    for fused in (False, True):
        name = "evenhand.generation.gpt2.supports_decode_attention"
        monkeypatch.setattr(name, lambda tables, fused=fused: fused)
        batch = engine.create_cache(3, 16)
        batch.fill([0, 1, 2], engine.prefill(prompts))
        for token in (1, 2):
            positions = torch.tensor([len(prompt) + token - 1 for prompt in prompts], device=DEVICE)
            said.append(batch.advance(torch.full_like(positions, token), positions, longest=16))
    for one, other in zip(said[:2], said[2:], strict=True):
        assert torch.allclose(one.hidden, other.hidden, rtol=1e-4, atol=1e-5)
        assert torch.allclose(one.logits.float(), other.logits.float(), rtol=1e-4, atol=1e-4)
