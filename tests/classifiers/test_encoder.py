"""The encoder and its heads."""

from __future__ import annotations

import pytest
import torch
from tests.classifiers.tiny_classifier import tiny_network

from evenhand.classifiers.encoder import (
    HEADS,
    PAD,
    ClassifierNetwork,
    Encoder,
    EncoderShape,
    Head,
    count_logits,
    head_columns,
    pool_states,
    to_probabilities,
)


def test_padding_changes_no_answer() -> None:
    network = tiny_network()
    alone = network(torch.tensor([[2, 4, 5, 3]]))
    padded = network(torch.tensor([[2, 4, 5, 3, PAD, PAD], [2, 6, 7, 8, 9, 3]]))[:1]
    assert torch.allclose(alone, padded, atol=1e-6)


def test_a_query_of_zeros_is_the_mean() -> None:
    states = torch.tensor([[[1.0, 2.0], [3.0, 6.0], [100.0, 100.0]]])
    mask = torch.tensor([[True, True, False]])
    # (1 + 3) / 2 = 2 and (2 + 6) / 2 = 4; the padded state is left out.
    assert pool_states(states, torch.zeros(1, 2), mask).tolist() == [[[2.0, 4.0]]]


def test_a_query_weighs_states_by_softmax() -> None:
    states = torch.tensor([[[0.0, 1.0], [torch.log(torch.tensor(3.0)), 5.0]]])
    # Scores 0 and ln 3 give weights 1/4 and 3/4: 1/4 * 1 + 3/4 * 5 = 4.
    pooled = pool_states(states, torch.tensor([[1.0, 0.0]]), torch.ones(1, 2, dtype=torch.bool))
    assert pooled[0, 0, 1].item() == pytest.approx(4.0)


def test_probabilities_sum_to_one_only_where_labels_exclude_each_other() -> None:
    heads = (Head("a", ("x", "y"), "one-of"), Head("b", ("z", "w"), "each"))
    found = to_probabilities(torch.tensor([[0.0, 0.0, 0.0, 100.0]]), heads)
    assert found.tolist() == [[0.5, 0.5, 0.5, 1.0]]


def test_heads_stand_side_by_side() -> None:
    places = [head_columns(head.name) for head in HEADS]
    assert [place.start for place in places[1:]] == [place.stop for place in places[:-1]]
    assert places[-1].stop == count_logits() == tiny_network()(torch.tensor([[2, 3]])).shape[1]
    with pytest.raises(KeyError):
        head_columns("nonsense")


def test_equal_sizes_need_no_projection() -> None:
    encoder = Encoder(EncoderShape(10, 8, width=8, layers=1, heads=2, inner=8, positions=4))
    assert "project.weight" not in encoder.state_dict()
    assert encoder(torch.tensor([[2, 5, 3]])).shape == (1, 3, 8)


def test_muon_gets_the_layers() -> None:
    network = tiny_network()
    assert isinstance(network, ClassifierNetwork)
    assert len(network.blocks()) == 2
