"""Texts laid end to end are read as padded ones."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.classifiers.tiny_classifier import SHAPE, tiny_network

from evenhand.classifiers.encoder import Encoder, PackedEncoder
from evenhand.tensors.batching import pad_rows

CPU = torch.device("cpu")
ROWS = st.lists(
    st.lists(st.integers(1, SHAPE.vocabulary - 1), min_size=1, max_size=SHAPE.positions),
    min_size=1,
    max_size=8,
)


@given(rows=ROWS)
@settings(max_examples=30)
def test_states_are_those_of_padded_rows(rows: list[list[int]]) -> None:
    encoder = tiny_network().encoder
    with torch.inference_mode():
        expected = encoder(pad_rows(rows, device=CPU))
        found = [state for states in PackedEncoder(encoder)(rows) for state in states]
    assert [len(state) for state in found] == [len(row) for row in rows]
    for state, row, wanted in zip(found, rows, expected, strict=True):
        assert torch.allclose(state, wanted[: len(row)], atol=1e-5)


def test_neighbours_of_equal_length_are_one_part() -> None:
    with torch.inference_mode():
        parts = [tuple(part.shape) for part in PackedEncoder(tiny_network().encoder)([[4], [5], [4, 5], [6]])]
    # Two rows of one token, one of two, and again one of one: order is kept.
    assert parts == [(2, 1, SHAPE.width), (1, 2, SHAPE.width), (1, 1, SHAPE.width)]


@pytest.mark.parametrize("embedding", [SHAPE.embedding, SHAPE.width])
def test_words_may_be_as_wide_as_the_layers(embedding: int) -> None:
    torch.manual_seed(0)
    encoder = Encoder(replace(SHAPE, embedding=embedding)).eval()
    with torch.inference_mode():
        (found,) = PackedEncoder(encoder)([[4, 5, 6]])
        assert torch.allclose(found, encoder(torch.tensor([[4, 5, 6]])), atol=1e-5)
