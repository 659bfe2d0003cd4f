"""A classifier written as the package reads it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from tests.classifiers.tiny_classifier import PIECES, SHAPE, tiny_network
from tools.assets.ship_classifier import drop_labels, read_halves

from evenhand.classifiers.encoder import HEADS, to_probabilities
from evenhand.classifiers.text_classifier import TextClassifier, build_network, save_classifier, write_config


def test_a_label_that_is_not_shipped_takes_its_weights_along() -> None:
    network = tiny_network()
    heads, weights = drop_labels(network.state_dict(), HEADS)
    fewer = build_network(SHAPE, weights, heads)
    ids = torch.tensor([[2, 4, 5, 3]])
    # identity_attack is the sixth label of all.
    assert torch.equal(fewer(ids), network(ids)[:, [place for place in range(16) if place != 5]])
    assert heads[1].labels == ("toxic",)


def test_halves_are_put_together(tmp_path: Path) -> None:
    weights = {name: value.half() for name, value in tiny_network().state_dict().items()}
    metadata = {"shape": json.dumps(asdict(SHAPE))}
    words = {name: value for name, value in weights.items() if "words" in name}
    save_file(words, tmp_path / "classifier-words.safetensors", metadata=metadata)
    rest = {name: value for name, value in weights.items() if name not in words}
    save_file(rest, tmp_path / "classifier-layers.safetensors", metadata=metadata)
    shape, found = read_halves(tmp_path)
    assert shape == SHAPE
    assert found.keys() == weights.keys()


def test_what_is_saved_answers_as_the_network_did(tmp_path: Path) -> None:
    network = tiny_network()
    vocabulary = tmp_path / "pieces.txt"
    vocabulary.write_text("\n".join(PIECES) + "\n", encoding="utf-8")
    save_classifier(tmp_path / "out", network, vocabulary=vocabulary)
    write_config(tmp_path / "out", network, scale=[0.5] * 16, shift=[0.1] * 16)
    found = TextClassifier(tmp_path / "out", device=torch.device("cpu")).probabilities(["good bad"])
    expected = to_probabilities(network(torch.tensor([[2, 4, 5, 3]])) * 0.5 + 0.1)
    # int8 rounds weights by at most half a step of 1/127 of a row's largest.
    assert np.allclose(found, expected.detach().numpy(), atol=0.02)
