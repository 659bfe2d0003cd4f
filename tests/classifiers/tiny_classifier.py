"""A classifier of a few kilobytes, in our own format, for tests that need one but not its knowledge."""

from __future__ import annotations

from pathlib import Path

import torch

from evenhand.classifiers.encoder import ClassifierNetwork, Encoder, EncoderShape
from evenhand.classifiers.text_classifier import save_classifier

PIECES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "good", "bad", "xyz", "was", "a", "##ly", ".", "the")
SHAPE = EncoderShape(len(PIECES), 6, width=8, layers=2, heads=2, inner=16, positions=16)


def tiny_network(seed: int = 0) -> ClassifierNetwork:
    torch.manual_seed(seed)
    return ClassifierNetwork(Encoder(SHAPE)).eval()


def tiny_folder(folder: Path, seed: int = 0) -> Path:
    vocabulary = folder / "pieces.txt"
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary.write_text("\n".join(PIECES) + "\n", encoding="utf-8")
    save_classifier(folder, tiny_network(seed), vocabulary=vocabulary)
    return folder
