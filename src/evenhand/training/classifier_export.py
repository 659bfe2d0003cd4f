"""Write a trained classifier as the package reads it: int8 weights, word pieces, configuration."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import torch
from safetensors.torch import load_file
from torch import Tensor

from evenhand.classifiers.encoder import ClassifierNetwork, Encoder, EncoderShape, to_probabilities
from evenhand.classifiers.heads import HEADS, Head
from evenhand.classifiers.text_classifier import FORMAT
from evenhand.tensors import int8_weights

DROPPED_LABELS: Final = frozenset({("toxicity", "identity_attack")})
"""Learned beside the others but not shipped: no better than counting words, and known to mistake dialect."""


class ProbabilityCalibration(NamedTuple):
    """What logits are multiplied by and what is added to them, one number a label."""

    scale: Tensor
    shift: Tensor

    def apply(self, logits: Tensor, heads: tuple[Head, ...] = HEADS) -> Tensor:
        """Calibrated probabilities."""
        return to_probabilities(logits * self.scale + self.shift, heads)


def read_halves(folder: Path, name: str = "classifier") -> tuple[EncoderShape, dict[str, Tensor]]:
    """The shape and the weights that a training wrote in two files."""
    from safetensors import safe_open

    paths = [folder / f"{name}-words.safetensors", folder / f"{name}-layers.safetensors"]
    with safe_open(paths[0], framework="pt") as file:
        shape = EncoderShape(**json.loads(file.metadata()["shape"]))
    return shape, {key: value.float() for path in paths for key, value in load_file(path).items()}


def drop_labels(
    weights: Mapping[str, Tensor],
    heads: tuple[Head, ...],
    dropped: frozenset[tuple[str, str]] = DROPPED_LABELS,
) -> tuple[tuple[Head, ...], dict[str, Tensor]]:
    """The heads and weights less the labels in ``dropped``."""
    kept = [(head.name, label) not in dropped for head in heads for label in head.labels]
    rows = torch.tensor([place for place, keep in enumerate(kept) if keep])
    fewer = tuple(
        replace(head, labels=tuple(label for label in head.labels if (head.name, label) not in dropped))
        for head in heads
    )
    return fewer, dict(weights) | {"weight": weights["weight"][rows], "bias": weights["bias"][rows]}


def build_network(
    shape: EncoderShape, weights: Mapping[str, Tensor], heads: tuple[Head, ...] = HEADS
) -> ClassifierNetwork:
    """The classifier with these weights."""
    network = ClassifierNetwork(Encoder(shape), heads)
    network.load_state_dict(dict(weights))
    return network.eval()


def save_classifier(
    folder: Path,
    network: ClassifierNetwork,
    *,
    vocabulary: Path,
    calibration: ProbabilityCalibration | None = None,
    notes: Mapping[str, str] | None = None,
) -> None:
    """Write ``model.safetensors``, ``config.json`` and ``vocab.txt``; without a calibration logits stay."""
    folder.mkdir(parents=True, exist_ok=True)
    int8_weights.save_quantised(network.state_dict(), folder / "model.safetensors")
    if vocabulary.resolve() != (folder / "vocab.txt").resolve():
        shutil.copyfile(vocabulary, folder / "vocab.txt")
    write_config(folder, network, calibration=calibration, notes=notes or {})


def write_config(
    folder: Path,
    network: ClassifierNetwork,
    *,
    calibration: ProbabilityCalibration | None,
    notes: Mapping[str, str],
) -> None:
    """Write ``config.json`` alone."""
    labels = sum(len(head.labels) for head in network.heads)
    config = {
        "model_type": FORMAT,
        "shape": network.encoder.shape.to_json(),
        "heads": [
            {"name": head.name, "labels": list(head.labels), "kind": head.kind} for head in network.heads
        ],
        "scale": [1.0] * labels if calibration is None else _round_values(calibration.scale),
        "shift": [0.0] * labels if calibration is None else _round_values(calibration.shift),
        **notes,
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")


def _round_values(values: Tensor) -> Sequence[float]:
    return [round(float(value), 4) for value in values]
