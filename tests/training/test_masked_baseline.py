"""The masked model's trunk as a classifier: the same states, the same texts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tools.assets import language_models, masked_baseline
from tools.assets.multitask import TuneSpec

from evenhand.classifiers.encoder import count_logits
from evenhand.core.files import asset_path
from evenhand.models import hub_layout
from evenhand.training.labelled_data import Example

BPE = asset_path("builtin", "tokenizer.json")


def examples() -> list[Example]:
    kinds = [("the good day", 0.0), ("a bad bad night", 1.0)]
    splits = ["train", "train", "test"]
    return [
        Example(text, "articles", splits[n % 3], {"ideology": (label,)})
        for n in range(6)
        for text, label in kinds
    ]


def test_texts_are_framed_and_cut() -> None:
    packed = masked_baseline.pack(BPE, [Example("word " * 500, "articles", "train", {}), *examples()])
    rows = packed.rows("cpu")
    assert len(rows) == 13
    assert rows.lengths[0] == masked_baseline.LONGEST
    first = packed.tokens[: rows.lengths[0]]
    assert (first[0], first[-1]) == (hub_layout.CLS, hub_layout.SEP)
    # Ids that would mean padding or an unknown word to the encoder never occur inside a text.
    assert not set(packed.tokens.tolist()) & {hub_layout.END, hub_layout.PAD, hub_layout.MASK}


def test_the_trunk_has_the_states_of_the_masked_model() -> None:
    encoder = masked_baseline.trunk(asset_path("builtin-masked")).eval()
    model = language_models.load_model(asset_path("builtin-masked"))
    ids = torch.tensor([[hub_layout.CLS, 500, 900, 77, hub_layout.SEP]])
    with torch.no_grad():
        assert encoder(ids) == pytest.approx(model.bert(input_ids=ids).last_hidden_state, abs=1e-4)


def test_the_answers_outside_training_are_written(tmp_path: Path) -> None:
    masked_baseline.pack(BPE, examples()).save(tmp_path / masked_baseline.PACKED)
    out = tmp_path / "out"
    out.mkdir()
    spec = TuneSpec(seconds=0.5, tokens=256, rate=2e-4)
    steps = masked_baseline.train(tmp_path, asset_path("builtin-masked"), out, spec=spec, device="cpu")
    assert steps > 0
    with np.load(out / "masked.npz") as found:
        assert found["places"].tolist() == [4, 5, 10, 11]
        assert found["masked"].shape == (4, count_logits())
        assert np.isfinite(found["masked"]).all()
    assert {path.name for path in out.iterdir()} == {"masked.npz"}
