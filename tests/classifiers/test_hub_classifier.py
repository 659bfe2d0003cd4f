"""Sequence classifiers of the Hub, their labels told in our words."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from tests.classifiers.tiny_classifier import PIECES, tiny_folder

from evenhand.classifiers.hub_classifier import HubClassifier, open_reader
from evenhand.core.errors import ModelError
from evenhand.core.records import Execution

SYNONYMS = {"conservative": ("right",), "liberal": ("left",)}
TEXTS = ["a good day", "bad", "xyz was a good . the bad was good"]


Problem = Literal["single_label_classification", "multi_label_classification"]


def saved(folder: Path, labels: list[str], problem: Problem = "single_label_classification") -> Path:
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast  # type: ignore[attr-defined]

    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_text("\n".join([*PIECES, "[MASK]"]) + "\n", encoding="utf-8")
    BertTokenizerFast(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(PIECES) + 1,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        id2label=dict(enumerate(labels)),
        label2id={label: place for place, label in enumerate(labels)},
        problem_type=problem,
    )
    BertForSequenceClassification(config).save_pretrained(folder)  # type: ignore[no-untyped-call]
    return folder


def test_labels_are_folded_into_ours(tmp_path: Path) -> None:
    reader = HubClassifier(
        str(saved(tmp_path / "m", ["LEFT", "CENTER", "RIGHT"])), SYNONYMS, Execution(batch=2)
    )
    assert reader.labels == ("conservative", "liberal")
    found = reader.read(TEXTS)
    assert found.shape == (3, 2)
    assert (found.sum(1) < 1).all()
    assert np.allclose(found, np.concatenate([reader.read([text]) for text in TEXTS]), atol=1e-5)
    assert reader.read([]).shape == (0, 2)


def test_several_labels_of_one_kind_are_added_up_to_at_most_one(tmp_path: Path) -> None:
    folder = saved(tmp_path / "m", ["joy", "love", "anger"], "multi_label_classification")
    reader = HubClassifier(str(folder), {"joy": ("love",), "anger": ()}, Execution())
    found = reader.read(TEXTS)
    assert reader.labels == ("joy", "anger")
    assert (found <= 1).all()


def test_a_model_for_another_question_is_refused(tmp_path: Path) -> None:
    folder = saved(tmp_path / "m", ["spam", "ham"])
    with pytest.raises(ModelError) as raised:
        HubClassifier(str(folder), SYNONYMS, Execution())
    assert str(raised.value) == (
        f"the labels of {folder} are spam, ham. Expected: conservative: conservative, right; liberal: "
        "liberal, left. Fix: name a model made for this question, rename `id2label` in a copy of its "
        "config.json, or map its labels (`evenhand probe --label THEIRS=OURS`)."
    )


def test_a_folder_of_ours_is_read_by_us(tmp_path: Path) -> None:
    reader = open_reader("ideology", str(tiny_folder(tmp_path)), SYNONYMS, Execution())
    assert reader.labels == ("conservative",)
    assert reader.read(TEXTS).shape == (3, 1)
