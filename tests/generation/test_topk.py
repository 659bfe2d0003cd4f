"""The largest values of each row in two rounds."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.generation.kernels import DEVICE, needs_kernels

from evenhand.generation.decode_attention import (
    group_max,
    group_max_triton,
    group_width,
    topk,
    topk_in_two_passes,
)


@given(
    columns=st.integers(8, 400), count=st.integers(1, 20), kinds=st.integers(2, 1000), seed=st.integers(0, 99)
)
def test_two_rounds_find_what_one_finds(columns: int, count: int, kinds: int, seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    values = torch.randint(0, kinds, (3, columns), generator=random).float()
    width = 2
    count = min(count, columns // width)
    found, places = topk_in_two_passes(values, count, width)
    assert torch.equal(found, values.topk(count).values)
    assert torch.equal(values.gather(-1, places), found)
    assert all(len(set(row)) == count for row in places.tolist())


@pytest.mark.parametrize(
    ("columns", "count", "width"),
    # The root of columns / count, as a power of two: 35.4, 9.9, 1.4 and 1.
    [(50257, 40, 32), (50257, 512, 8), (300, 150, 1), (40, 40, 1)],
)
def test_groups_are_as_wide_as_both_rounds_need(columns: int, count: int, width: int) -> None:
    assert group_width(columns, count) == width


def test_what_is_no_number_stays_visible() -> None:
    values = torch.arange(64.0)[None].clone()
    values[0, 5] = torch.nan
    found, places = topk_in_two_passes(values, 3, 4)
    assert found.isnan().tolist() == [[True, False, False]]
    assert places.tolist() == [[5, 63, 62]]
    assert topk(values, 3)[1].tolist() == [[5, 63, 62]]


@needs_kernels
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("columns", "width"), [(50257, 32), (1003, 8), (7, 2)])
def test_the_kernel_finds_the_largest_of_each_group(kind: torch.dtype, columns: int, width: int) -> None:
    random = torch.Generator().manual_seed(columns)
    wide = torch.randn(3, columns + 9, generator=random).to(DEVICE, kind)
    # Rows of a padded product: they do not follow one another in memory.
    values = wide[:, :columns]
    values[1, 5], values[2, :4] = torch.nan, -torch.inf
    groups = columns // width
    wanted = values[:, : groups * width].reshape(3, groups, width).amax(-1)
    found = group_max_triton(values, groups, width)
    assert found.dtype == kind
    assert torch.equal(found.nan_to_num(nan=1e4), wanted.nan_to_num(nan=1e4))
    assert found.isnan().nonzero().tolist() == [[1, 5 // width]]
    assert torch.equal(group_max(values, groups, width).isnan(), found.isnan())
