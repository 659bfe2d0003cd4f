"""Read BERT weights, all-MiniLM-L6-v2 (Apache-2.0) above all, as our encoder; cut a student out of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import torch
from safetensors.torch import load_file
from torch import Tensor

from evenhand.classifiers.encoder import Encoder, EncoderShape

SHAPE: Final = EncoderShape(vocabulary=30_522, embedding=384, layers=6, positions=512)
SPECIAL: Final = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
"""The tokens every vocabulary of ours opens with, in the order of ``neural.encoder``'s ids."""


def load(folder: Path, vocabulary: Sequence[str], *, positions: int = 256) -> Encoder:
    """MiniLM with the given word pieces, in their order, in place of its own 30,522."""
    own = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
    place = {piece: index for index, piece in enumerate(own)}
    shape = replace(SHAPE, vocabulary=len(vocabulary), positions=positions)
    return from_bert(load_file(folder / "model.safetensors"), shape, [place[piece] for piece in vocabulary])


def from_bert(weights: Mapping[str, Tensor], shape: EncoderShape, rows: Sequence[int]) -> Encoder:
    """An encoder of this shape with BERT's weights; ``rows`` are the places of its words in BERT's table."""
    encoder = Encoder(shape)
    encoder.load_state_dict(_renamed(weights, torch.tensor(rows), shape))
    return encoder


def student(teacher: Encoder, *, keep: Sequence[int], embedding: int, inner: int = SHAPE.inner) -> Encoder:
    """The teacher's layers ``keep``, each with its ``inner`` strongest units, over shortened word vectors.

    Words keep their first ``embedding`` principal directions; a unit's strength is the product of the lengths
    of its weights in and out.
    """
    encoder = Encoder(replace(teacher.shape, layers=len(keep), embedding=embedding, inner=inner))
    weights = {
        name: value
        for name, value in teacher.state_dict().items()
        if not name.startswith(("layers", "words"))
    }
    for new, old in enumerate(keep):
        for name, value in _narrowed(teacher.layers[old].state_dict(), inner).items():
            weights[f"layers.{new}.{name}"] = value
    weights |= _factorised(teacher.words.weight.detach(), embedding)
    encoder.load_state_dict(weights)
    return encoder


def _narrowed(layer: Mapping[str, Tensor], inner: int) -> dict[str, Tensor]:
    strength = layer["widen.weight"].norm(dim=1) * layer["narrow.weight"].norm(dim=0)
    kept = strength.topk(inner).indices.sort().values
    return dict(layer) | {
        "widen.weight": layer["widen.weight"][kept],
        "widen.bias": layer["widen.bias"][kept],
        "narrow.weight": layer["narrow.weight"][:, kept],
    }


def _factorised(table: Tensor, size: int) -> dict[str, Tensor]:
    """The best rank-``size`` product in the least-squares sense, its two factors of equal scale."""
    if size == table.shape[1]:
        return {"words.weight": table}
    left, values, right = torch.linalg.svd(table.float(), full_matrices=False)
    root = values[:size].sqrt()
    return {"words.weight": left[:, :size] * root, "project.weight": (root[:, None] * right[:size]).mT}


def _renamed(weights: Mapping[str, Tensor], rows: Tensor, shape: EncoderShape) -> dict[str, Tensor]:
    # Every text is of segment 0, so that segment's vector is added to the positions for good.
    place = weights["embeddings.position_embeddings.weight"][: shape.positions]
    renamed = {
        "words.weight": weights["embeddings.word_embeddings.weight"][rows],
        "positions.weight": place + weights["embeddings.token_type_embeddings.weight"][0],
        "norm.weight": weights["embeddings.LayerNorm.weight"],
        "norm.bias": weights["embeddings.LayerNorm.bias"],
    }
    for layer in range(shape.layers):
        renamed |= _renamed_layer(weights, layer)
    return renamed


def _renamed_layer(weights: Mapping[str, Tensor], layer: int) -> dict[str, Tensor]:
    theirs = f"encoder.layer.{layer}"
    names = {
        "out": "attention.output.dense",
        "attention_norm": "attention.output.LayerNorm",
        "widen": "intermediate.dense",
        "narrow": "output.dense",
        "norm": "output.LayerNorm",
    }
    renamed = {}
    for kind in ("weight", "bias"):
        parts = [weights[f"{theirs}.attention.self.{part}.{kind}"] for part in ("query", "key", "value")]
        renamed[f"layers.{layer}.qkv.{kind}"] = torch.cat(parts)
        for ours, name in names.items():
            renamed[f"layers.{layer}.{ours}.{kind}"] = weights[f"{theirs}.{name}.{kind}"]
    return renamed
