"""Turn what ``classifiers`` trained into the embedded asset: int8 weights, calibrated probabilities.

Run as ``python -m tools.assets.ship_classifier --run DIR --packed DIR --data DIR --out DIR``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor

from evenhand.classifiers import wordpiece_tokenizer
from evenhand.classifiers.encoder import HEADS, START, ClassifierNetwork, EncoderShape, Head, head_columns
from evenhand.classifiers.text_classifier import build_network, save_classifier, write_config
from evenhand.tensors import int8_weights
from evenhand.training import labelled_data
from evenhand.training.labelled_data import Example
from tools.assets import augmentation, classifier_data
from tools.assets.classifier_data import Packed
from tools.assets.multitask import logits, loss
from tools.assets.token_rows import Rows

DROPPED_LABELS: Final = frozenset({("toxicity", "identity_attack")})
"""Learned beside the others but not shipped: no better than counting words, and known to mistake dialect."""


def read_halves(folder: Path, name: str = "classifier") -> tuple[EncoderShape, dict[str, Tensor]]:
    """The shape and the weights that a training wrote in two files."""
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


def ship(run: Path, packed: Path, data: Path, out: Path) -> None:
    """Write the classifier of a training to ``out``, calibrated as it is stored, after int8."""
    shape, weights = read_halves(run)
    heads, weights = drop_labels(weights, HEADS)
    network = build_network(shape, weights, heads)
    save_classifier(out, network, vocabulary=packed / "vocab.txt")
    network.load_state_dict(int8_weights.load_dequantised(out / "model.safetensors"))
    tokenizer = wordpiece_tokenizer.load_tokenizer(packed / "vocab.txt")
    articles = short_articles(labelled_data.ideology(data))
    scale, shift = calibration(network, Packed.load(packed / "labelled.npz"), articles, tokenizer)
    write_config(out, network, scale=scale.tolist(), shift=shift.tolist())


def short_articles(examples: Sequence[Example]) -> list[Example]:
    """Runs of 12 to 45 words of the valid articles: what a model writes is that short, articles are not."""
    valid = [replace(example, split="train") for example in examples if example.split == "valid"]
    return augmentation.cuts(valid, words=(12, 45), seed=9)


def calibration(
    network: ClassifierNetwork, packed: Packed, articles: Sequence[Example], tokenizer: Tokenizer
) -> ProbabilityCalibration:
    """Scales and shifts learned on the valid texts; for ideology on the short articles alone."""
    valid = np.flatnonzero(packed.split == "valid")
    starts = np.append(np.flatnonzero(packed.tokens == START), len(packed.tokens))
    rows = [packed.tokens[starts[place] : starts[place + 1]].tolist() for place in valid]
    told = torch.from_numpy(packed.targets[valid])
    told[:, head_columns("ideology")] = float("nan")
    short = torch.tensor([classifier_data.targets(example) for example in articles])
    texts = [example.text for example in articles]
    rows += wordpiece_tokenizer.encode_texts(tokenizer, texts, longest=network.encoder.shape.positions)
    answers = logits(network, Rows.from_lists(rows), tokens=8_192)
    return calibrate(answers, _keep_columns(torch.cat([told, short]), network), network.heads)


def _keep_columns(targets: Tensor, network: ClassifierNetwork) -> Tensor:
    """The columns of the labels the network still has."""
    names = {(head.name, label) for head in network.heads for label in head.labels}
    every = [(head.name, label) for head in HEADS for label in head.labels]
    return targets[:, [place for place, name in enumerate(every) if name in names]]


class ProbabilityCalibration(NamedTuple):
    """What logits are multiplied by and what is added to them, one number a label."""

    scale: Tensor
    shift: Tensor


def calibrate(
    logits: Tensor, targets: Tensor, heads: tuple[Head, ...] = HEADS, *, pull: float = 0.1
) -> ProbabilityCalibration:
    """The scales and shifts of least cross-entropy: Platt's for every label of an ``each`` head.

    A ``one-of`` head has one scale (a temperature; Guo et al. 2017) and a shift a label. ``targets`` is NaN
    where nobody said. ``pull`` draws towards no change, as that many texts would; it matters for rare labels.
    """
    groups = _groups(heads)
    log_scale = torch.zeros(int(groups.max()) + 1, dtype=torch.float64, requires_grad=True)
    shift = torch.zeros(logits.shape[1], dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([log_scale, shift], max_iter=200, line_search_fn="strong_wolfe")
    values, known = logits.double(), targets.double()

    def closure() -> Tensor:
        optimiser.zero_grad()
        moved = values * log_scale.exp()[groups] + shift
        total = loss(moved, known, heads, per=1.0) + pull * (log_scale.square().sum() + shift.square().sum())
        total.backward()  # type: ignore[no-untyped-call]
        return total

    optimiser.step(closure)  # type: ignore[no-untyped-call]
    return ProbabilityCalibration(log_scale.detach().exp()[groups].float(), shift.detach().float())


def _groups(heads: tuple[Head, ...]) -> Tensor:
    """The number of the scale each label has: one a ``one-of`` head, one a label elsewhere."""
    found: list[int] = []
    for head in heads:
        first = found[-1] + 1 if found else 0
        found += [first if head.kind == "one-of" else first + place for place in range(len(head.labels))]
    return torch.tensor(found)


def main(argv: list[str] | None = None) -> None:
    """Write the embedded classifier from the command line."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--run", type=Path, required=True, help="what `classifiers` wrote")
    parser.add_argument("--packed", type=Path, required=True, help="what `classifier_pack` wrote")
    parser.add_argument("--data", type=Path, required=True, help="the labelled data sets")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args(argv)
    ship(args.run, args.packed, args.data, args.out)


if __name__ == "__main__":
    main()
