from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import (
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from evenhand.core.records import GenerationSpec
from evenhand.generation import sampling
from evenhand.generation.sampling import apply_repetition_penalty, choose_tokens

PLAIN = GenerationSpec(temperature=1.0, top_k=0, top_p=1.0)
LOG_SHARES = torch.tensor([[0.1, 0.2, 0.3, 0.4]]).log()


def draw(spec: GenerationSpec, uniform: float, logits: torch.Tensor = LOG_SHARES) -> int:
    return int(choose_tokens(logits, torch.tensor([uniform], dtype=torch.float64), spec))


def test_the_uniform_number_falls_into_the_cumulative_distribution() -> None:
    # Cumulative: 0.1, 0.3, 0.6, 1.
    assert [draw(PLAIN, uniform) for uniform in (0.0, 0.09, 0.11, 0.29, 0.31, 0.59, 0.61, 0.999)] == [
        *[0, 0, 1, 1],
        *[2, 2, 3, 3],
    ]


def test_top_k_sorts_and_renormalises() -> None:
    # The two likeliest are 3 (0.4) and 2 (0.3): 4/7 = 0.571.
    spec = GenerationSpec(temperature=1.0, top_k=2, top_p=1.0)
    assert [draw(spec, uniform) for uniform in (0.0, 0.57, 0.58, 0.999)] == [3, 3, 2, 2]


def test_top_p_keeps_the_token_that_crosses_it() -> None:
    # 0.4 + 0.3 = 0.7 >= 0.65, so 3 and 2 stay; 0.1 keeps the likeliest alone.
    spec = GenerationSpec(temperature=1.0, top_k=0, top_p=0.65)
    assert [draw(spec, uniform) for uniform in (0.0, 0.57, 0.58, 0.999)] == [3, 3, 2, 2]
    assert draw(GenerationSpec(temperature=1.0, top_k=0, top_p=0.1), 0.999) == 3


def test_temperature_sharpens() -> None:
    # At 0.5 the shares are squared: 1, 4, 9, 16 of 30; 0.4 falls below (1 + 4 + 9)/30 = 0.467, so on token 2.
    spec = GenerationSpec(temperature=0.5, top_k=0, top_p=1.0)
    assert [draw(spec, uniform) for uniform in (0.03, 0.04, 0.46, 0.47)] == [0, 1, 2, 3]


def test_temperature_0_takes_the_likeliest() -> None:
    assert draw(GenerationSpec(temperature=0, top_k=1, top_p=0.5), 0.0) == 3


def test_the_largest_uniform_number_never_leaves_the_vocabulary() -> None:
    below_one = float(np.nextafter(1.0, 0.0))
    logits = torch.tensor([[0.0, 1.0, -torch.inf]])
    assert draw(PLAIN, below_one, logits) == 1
    assert draw(GenerationSpec(top_k=3, top_p=0.99), below_one, logits) in (0, 1)


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p"),
    [
        (1.0, 0, 1.0),
        (0.7, 0, 1.0),
        (1.0, 5, 1.0),
        (1.0, 0, 0.8),
        (1.3, 12, 0.9),
        (1.0, 1000, 0.5),
        (1.0, 0, 1e-9),
    ],
)
def test_the_distribution_is_that_of_transformers(temperature: float, top_k: int, top_p: float) -> None:
    generator = torch.Generator().manual_seed(3)
    logits = torch.randn(1, 40, generator=generator) * 2
    expected = TemperatureLogitsWarper(temperature)(None, logits)
    if top_k:
        expected = TopKLogitsWarper(top_k)(None, expected)
    if top_p < 1:
        expected = TopPLogitsWarper(top_p)(None, expected)
    # A grid of uniform numbers draws each token in proportion to its probability, up to one cell.
    cells = 4000
    grid = (torch.arange(cells, dtype=torch.float64) + 0.5) / cells
    spec = GenerationSpec(temperature=temperature, top_k=top_k, top_p=top_p)
    drawn = choose_tokens(logits.expand(cells, -1), grid, spec)
    shares = torch.bincount(drawn, minlength=40) / cells
    assert torch.allclose(shares, expected.softmax(-1)[0], atol=1.01 / cells)


def test_a_wide_nucleus_is_sorted_and_a_narrow_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(5)
    logits = torch.randn(64, 50, generator=generator)
    logits[::2] *= 6
    uniforms = torch.rand(64, generator=generator, dtype=torch.float64)
    spec = GenerationSpec(top_k=0, top_p=0.9)
    whole = choose_tokens(logits, uniforms, spec)
    monkeypatch.setattr(sampling, "_NUCLEUS", 8)
    assert torch.equal(choose_tokens(logits, uniforms, spec), whole)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.sampled_from([(0, 1.0), (7, 1.0), (0, 0.7), (9, 0.6)]))
def test_rows_do_not_see_each_other(seed: int, cuts: tuple[int, float]) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(6, 30, generator=generator) * 3
    uniforms = torch.rand(6, generator=generator, dtype=torch.float64)
    spec = GenerationSpec(top_k=cuts[0], top_p=cuts[1])
    together = choose_tokens(logits, uniforms, spec).tolist()
    alone = [int(choose_tokens(logits[row : row + 1], uniforms[row : row + 1], spec)) for row in range(6)]
    assert together == alone


def test_penalties_are_those_of_transformers() -> None:
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(2, 20, generator=generator) * 3
    histories = [[1, 2, 3, 2, 2], [7, 7]]
    found = apply_repetition_penalty(logits, histories, 1.3)
    processor = RepetitionPenaltyLogitsProcessor(1.3)
    for row, history in enumerate(histories):
        expected = processor(torch.tensor([history]), logits[row : row + 1].clone())
        assert torch.equal(found[row : row + 1], expected)


def test_a_penalty_divides_what_is_positive_and_multiplies_what_is_not() -> None:
    logits = torch.tensor([[2.0, -2.0, 1.0]])
    assert apply_repetition_penalty(logits, [[0, 1, 0]], 2.0).tolist() == [[1.0, -4.0, 1.0]]


@pytest.mark.parametrize(
    "spec",
    [
        GenerationSpec(temperature=0),
        GenerationSpec(top_k=9, top_p=0.9),
        PLAIN,
        GenerationSpec(top_k=0, top_p=0.5),
    ],
    ids=["greedy", "top-k", "all", "nucleus"],
)
def test_logits_in_half_precision_are_drawn_from_as_wide_ones(spec: GenerationSpec) -> None:
    random = torch.Generator().manual_seed(0)
    # Sixteenths up to 12.5 have eight bits at most: no two of a row are rounded to the same number.
    wide = torch.stack([torch.randperm(200, generator=random) / 16 for _ in range(16)])
    uniforms = torch.rand(16, generator=random, dtype=torch.float64)
    assert torch.equal(choose_tokens(wide.bfloat16(), uniforms, spec), choose_tokens(wide, uniforms, spec))
