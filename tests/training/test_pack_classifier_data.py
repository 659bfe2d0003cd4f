"""From corpus and labels to the folder the classifiers are trained from, and from weights to the asset."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from tests.classifiers.tiny_classifier import PIECES, tiny_network
from tools.assets import classifier_data, pack_classifier_data, ship_classifier, token_shards
from tools.assets.train_classifiers import _save_halves

from evenhand.classifiers import wordpiece_tokenizer
from evenhand.classifiers.encoder import START
from evenhand.classifiers.text_classifier import TextClassifier
from evenhand.training.labelled_data import Example


def test_pieces_are_counted() -> None:
    tokenizer = wordpiece_tokenizer.build_tokenizer(PIECES)
    found = pack_classifier_data.piece_counts(tokenizer, ["a good good", "badly a"], len(PIECES))
    by_piece = {piece: int(count) for piece, count in zip(PIECES, found, strict=True) if count}
    assert by_piece == {"a": 2, "good": 2, "bad": 1, "##ly": 1}


def test_sentences_about_a_masked_person_come_first(tmp_path: Path) -> None:
    for name in ("wiki", "news", "books"):
        documents = [
            f"He was known as the good one {n}. The {n} was a good bad day of the bad." for n in range(80)
        ]
        (tmp_path / f"{name}.txt").write_text("\n\n".join(documents), encoding="utf-8")
    tokenizer = wordpiece_tokenizer.build_tokenizer(PIECES)
    pack_classifier_data.write_sentences(tmp_path, tokenizer, tmp_path / "out", tokens=400)
    found = token_shards.read(sorted((tmp_path / "out").glob(f"sentences-*{token_shards.SUFFIX}")))
    assert 380 < len(found) <= 400
    starts = np.flatnonzero(found == START)
    assert (found[starts + 1][:5] == PIECES.index("xyz")).all()
    assert len(token_shards.read(sorted((tmp_path / "out").glob(f"heldout-*{token_shards.SUFFIX}"))))


def test_what_was_trained_is_shipped_and_calibrated(tmp_path: Path) -> None:
    run, packed, data = tmp_path / "run", tmp_path / "packed", tmp_path / "data"
    for folder in (run, packed, data / "ideology"):
        folder.mkdir(parents=True)
    network = tiny_network()
    _save_halves(network.state_dict(), run, "classifier", network.encoder.shape)
    (packed / "vocab.txt").write_text("\n".join(PIECES) + "\n", encoding="utf-8")
    targets = {"regard": (1.0, 0.0, 0.0, 0.0), "toxicity": (1.0, None)}
    examples = [Example("bad xyz was bad", "regard", "valid", targets) for _ in range(50)]
    classifier_data.pack(wordpiece_tokenizer.build_tokenizer(PIECES), examples).save(packed / "labelled.npz")
    for split, count in (("train", 200), ("valid", 2)):
        rows = [
            {"text": f"the good {n} " * 20, "label": n % 2, "source": f"outlet {split} {n % 9}"}
            for n in range(count)
        ]
        (data / "ideology" / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    ship_classifier.ship(run, packed, data, tmp_path / "out")
    shipped = TextClassifier(tmp_path / "out", device=torch.device("cpu"))
    assert [label for head in shipped.heads for label in head.labels if head.name == "toxicity"] == ["toxic"]
    # All fifty texts are negative and toxic: the calibrated answers say so, whatever the random weights say.
    said = shipped.probabilities(["bad xyz was bad"])[0]
    assert said[0] > 0.9
    assert said[4] > 0.9
