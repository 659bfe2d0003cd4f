"""The whole training of the classifiers, on a teacher that knows nothing and for a second a stage."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tools.assets import minilm, token_shards
from tools.assets.classifier_data import Packed
from tools.assets.ship_classifier import read_halves
from tools.assets.train_classifiers import CUTS, claim, main

from evenhand.classifiers.encoder import Encoder, count_logits, head_columns
from evenhand.classifiers.text_classifier import build_network
from evenhand.core.errors import RunFolderError
from evenhand.tensors import int8_weights


def packed(folder: Path) -> Path:
    torch.manual_seed(0)
    teacher = Encoder(replace(minilm.SHAPE, vocabulary=300, positions=16))
    int8_weights.save_quantised(teacher.state_dict(), folder / "teacher.safetensors")
    rng = np.random.default_rng(0)
    texts = [np.array([2, *rng.integers(4, 300, 6), 3], dtype=np.uint16) for _ in range(30)]
    for name in ("sentences", "heldout"):
        token_shards.write(folder, np.concatenate(texts), name=name)
    targets = np.full((30, count_logits()), np.nan, dtype=np.float32)
    targets[:, head_columns("ideology")] = rng.integers(0, 2, (30, 1))
    split = np.array(["train", "valid", "test"] * 10)
    Packed(np.concatenate(texts), targets, np.array(["articles"] * 30), split).save(folder / "labelled.npz")
    return folder


@pytest.mark.slow
def test_every_stage_writes_what_the_next_one_needs(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    seconds = dict.fromkeys(("teacher", "trial", "distil", "student", "plain"), 1)
    plan = json.dumps({**seconds, "teachers": 1, "tokens": 256, "tune_tokens": 256, "transfer": 8})
    main(["--data", str(packed(tmp_path)), "--out", str(out), "--device", "cpu", "--plan", plan])
    figures = json.loads((out / "figures.json").read_text())
    assert figures["chosen"] in CUTS
    assert {"teacher-0", "student-plain", "student-blend", "student-0", "student-1"} <= figures.keys()
    with np.load(out / "answers.npz") as answers:
        assert answers["student-0"].shape == (20, count_logits())
    shape, weights = read_halves(out)
    assert build_network(shape, weights)(torch.tensor([[2, 5, 3]])).shape == (1, count_logits())
    assert read_halves(out, "distilled")[0] == shape
    assert not (out / "checkpoints").exists()
    written = (out / "figures.json").stat().st_mtime_ns
    main(["--data", str(tmp_path), "--out", str(out), "--device", "cpu", "--plan", plan])
    assert (out / "figures.json").stat().st_mtime_ns == written


def test_a_folder_belongs_to_one_training(tmp_path: Path) -> None:
    assert claim(tmp_path / "run", {"plan": {"teacher": 1.0}}) is False
    assert claim(tmp_path / "run", {"plan": {"teacher": 1.0}}) is False
    with pytest.raises(RunFolderError) as raised:
        claim(tmp_path / "run", {"plan": {"teacher": 2.0}})
    assert str(raised.value) == (
        f"{tmp_path / 'run'} belongs to another training of the classifiers. "
        "Expected: the same data and plan, or another folder. "
        f"Fix: choose another folder, or remove {tmp_path / 'run'}."
    )
