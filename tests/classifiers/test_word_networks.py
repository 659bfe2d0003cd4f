"""Classifiers over words: by hand where they can be, and none that padding or neighbours change."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest
import torch

from evenhand.classifiers.word_networks import NETWORKS, Kind, WordShape, sinusoids

SHAPE = WordShape(rows=9, columns=8, labels=2, longest=6, pairs=11)


@pytest.mark.parametrize("kind", get_args(Kind))
def test_padding_and_neighbours_do_not_change_a_text(kind: Kind) -> None:
    torch.manual_seed(0)
    network = NETWORKS[kind](replace(SHAPE, dropout=0.3)).eval()
    alone = network(torch.tensor([[2, 3]]), torch.tensor([[1, 1]]))
    ids, mask = torch.tensor([[2, 3, 0, 0], [4, 5, 6, 7]]), torch.tensor([[1, 1, 0, 0], [1, 1, 1, 1]])
    assert torch.allclose(network(ids, mask)[0], alone[0], atol=1e-5)
    # The reader's mask is one of truths.
    assert torch.allclose(network(ids, ids != 0), network(ids, mask), atol=1e-6)
    one = network(torch.tensor([[2]]), torch.tensor([[1]]))
    assert one.isfinite().all()


def test_the_bag_is_the_mean_of_words_and_pairs() -> None:
    network = NETWORKS["fasttext"](SHAPE)
    vectors, ids = network.words.weight, torch.tensor([[2, 3, 4]])
    # Row of a pair: (first * 1000003 + second) mod 11, after the 9 rows of words.
    pairs = [(2 * 1_000_003 + 3) % 11 + 9, (3 * 1_000_003 + 4) % 11 + 9]
    mean = vectors[[2, 3, 4, *pairs]].mean(0)
    assert torch.allclose(network(ids, torch.ones_like(ids))[0], network.head(mean), atol=1e-6)


@pytest.mark.parametrize(("kind", "reads"), [("fasttext", True), ("attention", True)])
def test_the_order_of_words_is_read(kind: Kind, reads: bool) -> None:
    torch.manual_seed(0)
    network = NETWORKS[kind](SHAPE).eval()
    mask = torch.ones(1, 3)
    one, other = (network(torch.tensor([ids]), mask) for ids in ([2, 3, 4], [4, 3, 2]))
    assert torch.allclose(one, other) is not reads


def test_places_are_told_apart() -> None:
    places = sinusoids(4, 6)
    # Place 0 is 0, 1, 0, 1 ...; the first pair of place 1 is sin 1, cos 1.
    assert places[0].tolist() == [0, 1, 0, 1, 0, 1]
    assert places[1, :2].tolist() == pytest.approx([0.8415, 0.5403], abs=1e-4)
