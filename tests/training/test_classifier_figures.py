"""The tables of the classifiers' cards."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tools.assets import classifier_figures as figures
from tools.assets.classifier_data import Packed, pack_rows
from tools.assets.classifier_figures import Answered

from evenhand.classifiers.encoder import HEADS, count_logits, head_columns
from evenhand.training.labelled_data import Example
from evenhand.training.test_measures import MeasuredValue


def article(text: str, split: str, label: float) -> Example:
    return Example(text, "articles", split, {"ideology": (label,)})


def test_each_test_has_its_own_texts_and_absent_ones_are_left_out() -> None:
    examples = [
        article("a", "known", 1.0),
        article("b", "known", 0.0),
        article("c", "unseen", 1.0),
        article("d", "train", 1.0),
    ]
    said = np.full((4, count_logits()), 0.5)
    said[:, head_columns("ideology")] = [[0.9], [0.8], [0.7], [0.1]]
    found = figures.headline(Answered(examples, said, HEADS), rounds=10)
    assert set(found) == {"ideology, macro-F1, known outlets", "ideology, macro-F1, unseen outlets"}
    # Known: both called conservative, one is: F1 2/3 for that label, 0 for the other.
    assert found["ideology, macro-F1, known outlets"].value == pytest.approx(1 / 3)
    assert found["ideology, macro-F1, unseen outlets"][::3] == (1.0, 1)


def test_logits_of_packed_texts_become_answers(tmp_path: Path) -> None:
    targets = {"toxicity": (1.0, None)}
    packed = pack_rows(
        [[2, 5, 3]] * 2, [Example("", "jigsaw", split, targets) for split in ("train", "test")]
    )
    packed.save(tmp_path / "labelled.npz")
    logits = np.zeros((1, count_logits()))
    found = figures.packed_answers(Packed.load(tmp_path / "labelled.npz"), np.array([1]), logits)
    assert found.head("toxicity").tolist() == [[0.5, 0.5]]
    assert found.head("regard").tolist() == [[0.25] * 4]
    assert (found.examples[0].split, dict(found.examples[0].targets)) == ("test", targets)


def test_linear_yardsticks_learn_from_their_own_data_set() -> None:
    regard = ["negative", "neutral", "positive"]
    examples = [
        *(
            Example(word, "regard", "train", {"regard": tuple(float(i == n) for i in range(4))})
            for n, word in enumerate(regard)
            for _ in range(5)
        ),
        *(Example(f"tox{n % 2}", "jigsaw", "train", {"toxicity": (float(n % 2), None)}) for n in range(10)),
        *(article(f"side{n % 2}", "train", float(n % 2)) for n in range(10)),
        *(
            Example(
                f"mood{n % 4}",
                "tweets",
                "train",
                {
                    "emotion": tuple(float(i == n % 4) for i in range(5)),
                    "intensity": tuple(float(i == n % 4) for i in range(4)),
                },
            )
            for n in range(20)
        ),
        article("side1", "known", 1.0),
        Example("positive", "regard-302", "test", {"regard": (0.0, 0.0, 1.0, 0.0)}),
    ]
    answers = figures.ngram_answers(examples)
    assert answers.head("ideology")[-2, 0] > 0.6
    assert answers.head("regard")[-1].argmax() == 2


def test_a_table_has_a_row_a_test_and_a_column_a_model() -> None:
    one = MeasuredValue(0.8, 0.75, 0.85, 1302)
    assert figures.table({"a": {"x": one}, "b": {}}).splitlines()[2] == (
        "| x | 1,302 | 0.800 (0.750 to 0.850) |  |"
    )
