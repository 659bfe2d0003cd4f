"""Rows of tokens as one matrix."""

from __future__ import annotations

import pytest
import torch

from evenhand.tensors.batching import pad_rows

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("left", "expected"),
    [(False, [[5, 6, 7], [8, 0, 0], [0, 0, 0]]), (True, [[5, 6, 7], [0, 0, 8], [0, 0, 0]])],
)
def test_rows_are_filled_with_zeros_on_one_side(left: bool, expected: list[list[int]]) -> None:
    found = pad_rows([[5, 6, 7], [8], []], device=CPU, left=left)
    assert found.dtype == torch.long
    assert found.tolist() == expected


def test_rows_without_tokens_have_no_columns() -> None:
    assert pad_rows([[], []], device=CPU).shape == (2, 0)
