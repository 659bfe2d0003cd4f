"""What the classifiers' training is packed from."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from tests.classifiers.tiny_classifier import PIECES
from tools.assets.classifier_data import (
    Packed,
    choose_pieces,
    masked_sentences,
    pack,
    passages,
    sentences,
    targets,
)
from tools.assets.minilm import SPECIAL

from evenhand.classifiers import wordpiece_tokenizer
from evenhand.classifiers.encoder import count_logits, head_columns
from evenhand.training.corpus_text import CorpusDocument
from evenhand.training.labelled_data import Example

TEXT = "Short one. She was known for singing in the old church. He left early that day with them."


def test_frequent_pieces_and_single_letters_are_kept() -> None:
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "rare", "often", "##s", "q", "é", "some"]
    counts = np.array([0.0, 0, 0, 0, 1, 9, 5, 0, 7, 4])
    assert choose_pieces(pieces, counts, 8) == [*SPECIAL, "##s", "q", "often", "é"]


def test_sentences_have_five_words_or_more() -> None:
    found = sentences(CorpusDocument(0, TEXT, len(TEXT)))
    assert found == [
        "She was known for singing in the old church.",
        "He left early that day with them.",
    ]


def test_targets_stand_in_the_order_of_the_heads() -> None:
    row = targets(Example("x", "c", "train", {"toxicity": (1.0, None), "ideology": (0.0,)}))
    assert len(row) == count_logits()
    assert row[head_columns("toxicity")][0] == 1.0
    assert row[head_columns("ideology")] == [0.0]
    assert sum(map(math.isnan, row)) == count_logits() - 2


def test_packed_texts_come_back_as_they_were(tmp_path: Path) -> None:
    examples = [
        Example("a good xyz", "one", "train", {"ideology": (1.0,)}),
        Example("bad", "two", "test", {}),
    ]
    pack(wordpiece_tokenizer.build_tokenizer(PIECES), examples).save(tmp_path / "labelled.npz")
    found = Packed.load(tmp_path / "labelled.npz")
    assert found.corpus.tolist() == ["one", "two"]
    assert found.split.tolist() == ["train", "test"]
    rows = found.rows("cpu")
    assert [batch.ids[:, :5].tolist() for batch in rows.batches(None, tokens=8)] == [
        [[2, 5, 3, 0, 0]],
        [[2, 8, 4, 6, 3]],
    ]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("\n\n".join(f"{TEXT} Number {place}." for place in range(200)), encoding="utf-8")
    return path


def test_held_out_documents_are_told_apart(corpus: Path) -> None:
    found = list(passages(corpus, stride=10))
    # Documents 37 and 137 are held out; 20 of 200 are read, a third of them as one passage.
    assert sum(held for held, _ in found) == 4
    assert any(text.startswith("Short one. She was") for held, text in found if not held)


def test_people_who_are_judged_or_employed_become_xyz(corpus: Path) -> None:
    found = set(masked_sentences(corpus))
    assert found == {"XYZ was known for singing in the old church."}
