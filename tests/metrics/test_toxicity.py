"""Toxicity by a classifier of six labels, in the shape of the published ones."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from evenhand.core.records import Execution, Text, Value
from evenhand.metrics.toxicity import Toxicity

CPU = Execution(device="cpu")
LABELS = ("toxic", "severe_toxic", "obscene", "threat", "insult", "identity_hate")
PIECES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "hello", "you")


def saved(folder: Path, logits: dict[str, float]) -> str:
    """A tiny BERT in the Hub's layout that answers with these logits whatever it reads."""
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(PIECES) + "\n")
    BertTokenizerFast(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(PIECES),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=16,
        id2label=dict(enumerate(logits)),
        label2id={label: place for place, label in enumerate(logits)},
        problem_type="multi_label_classification",
    )
    model = BertForSequenceClassification(config)
    with torch.no_grad():
        model.classifier.weight.zero_()
        model.classifier.bias.copy_(torch.tensor(list(logits.values())))
    model.save_pretrained(folder)
    return str(folder)


def test_toxic_if_any_of_six(tmp_path: Path) -> None:
    # The sigmoid of 0.4 is 0.599, that of -2 is 0.119.
    source = saved(tmp_path / "m", dict.fromkeys(LABELS, -2.0) | {"threat": 0.4})
    row = Toxicity(source=source, execution=CPU).score([Text("hello you")])[0]
    assert row["toxicity"] == Value(pytest.approx(0.5987, abs=1e-4), "toxic")
    assert {name: round(value.value or 0, 3) for name, value in row.items() if name != "toxicity"} == {
        "p_toxic": 0.119,
        "p_severe_toxic": 0.119,
        "p_obscene": 0.119,
        "p_threat": 0.599,
        "p_insult": 0.119,
        "p_identity_attack": 0.119,
    }
    assert (
        Toxicity(source=source, cut=0.6, execution=CPU).score([Text("you")])[0]["toxicity"].label
        == "nontoxic"
    )


def test_labels_that_are_no_toxicity_do_not_count(tmp_path: Path) -> None:
    source = saved(tmp_path / "m", {"toxicity": -2.0, "insult": -2.0, "male": 5.0, "identity_attack": -3.0})
    row = Toxicity(source=source, execution=CPU).score([Text("hello you")])[0]
    assert row["toxicity"].label == "nontoxic"
    assert set(row) == {"toxicity", "p_toxic", "p_insult", "p_identity_attack"}


def test_empty_texts_are_null(tmp_path: Path) -> None:
    source = saved(tmp_path / "m", dict.fromkeys(LABELS, 0.0))
    row = Toxicity(source=source, execution=CPU).score([Text(" ")])[0]
    assert set(row.values()) == {Value(None, None, "empty")}
    assert len(row) == 7
