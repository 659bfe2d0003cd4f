"""Measures from a confusion matrix worked by hand, tables with mistakes in them, the card."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evenhand.core.errors import InputError
from evenhand.training.job_folder import markdown_table, write_classifier_card
from evenhand.training.labelled_table import check_enough, read_labelled_texts
from evenhand.training.options import TASKS, EpochLosses
from evenhand.training.test_measures import HeldOutResult


def outcome() -> HeldOutResult:
    # truth     a    a    a    b    b
    # said      a    a    b    b    b
    probabilities = np.array([[0.9, 0.1, 0], [0.9, 0.1, 0], [0.1, 0.9, 0], [0.1, 0.9, 0], [0.1, 0.9, 0]])
    truth = np.array([0, 0, 0, 1, 1])
    return HeldOutResult.of(probabilities, truth, ("a", "b", "c"), majority_label="a")


def test_measures_by_hand() -> None:
    found = outcome()
    assert found.confusion == ((2, 1, 0), (0, 2, 0), (0, 0, 0))
    # a: precision 2/2, recall 2/3, F1 4/5; b: 2/3, 2/2, 4/5; c never occurs.
    a, b, c = found.classes
    assert a == ("a", 1.0, 2 / 3, 0.8, 3)
    assert b == ("b", 2 / 3, 1.0, 0.8, 2)
    assert c == ("c", None, None, None, 0)
    measures = found.measures()
    assert measures["accuracy"] == 0.8
    # Wilson, z = 1.96, p = 4/5, n = 5: centre (0.8 + 0.38415) / 1.76829 = 0.66965, half 0.29410.
    assert measures["accuracy_low"] == pytest.approx(0.3755, abs=1e-4)
    assert measures["accuracy_high"] == pytest.approx(0.9638, abs=1e-4)
    assert measures["macro_f1"] == pytest.approx(0.8)
    assert measures["majority"] == 0.6
    # All said with 0.9, right in 0.8 of cases: one bin, a gap of 0.1.
    assert measures["calibration_error"] == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("task", "given", "ours"),
    [
        ("regard", "-1", "negative"),
        ("regard", " Positive ", "positive"),
        ("regard", "0.0", "neutral"),
        ("toxicity", "1", "toxic"),
        ("toxicity", "False", "nontoxic"),
        ("emotion", "JOY", "joy"),
        ("ideology", "left", "liberal"),
        ("ideology", "1", "conservative"),
        ("emotion", "1", None),
    ],
)
def test_labels_are_told_in_our_words(task: str, given: str, ours: str | None) -> None:
    assert TASKS[task].map_label(given) == ours


def written(folder: Path, rows: list[str]) -> Path:
    path = folder / "t.csv"
    path.write_text("text,label\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def test_empty_rows_are_left_out_and_counted(tmp_path: Path) -> None:
    path = written(tmp_path, ["fine,joy", ",joy", "   ,fear", "unlabelled,"])
    found = read_labelled_texts(path, TASKS["emotion"])
    assert (found.texts, found.labels) == (("fine",), ("joy",))
    assert found.skipped == {"empty text": 2, "no label": 1}
    with pytest.raises(InputError) as raised:
        check_enough(found, path)
    assert str(raised.value) == (
        f"{path} has 1 labelled texts (2 rows with empty text, 1 rows with no label left out). "
        "Expected: at least 20. Fix: label more texts; a few hundred per label are a good start."
    )


def test_one_label_alone_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, [f"text {n},joy" for n in range(30)])
    with pytest.raises(InputError) as raised:
        check_enough(read_labelled_texts(path, TASKS["emotion"]), path)
    assert str(raised.value) == (
        f"all texts of {path} have the label 'joy'. Expected: texts of at least two labels. "
        "Fix: add texts of the other labels, or name another column with --label."
    )


def test_an_unknown_label_is_named_with_its_row(tmp_path: Path) -> None:
    path = written(tmp_path, ["a text,joy", "another,happy"])
    with pytest.raises(InputError) as raised:
        read_labelled_texts(path, TASKS["emotion"])
    assert str(raised.value) == (
        f"{path} row 2 has the label 'happy', which is unknown for emotion. "
        "Expected: anger; fear; joy; sadness; neutral. "
        "Fix: rename the label in the table, or name another column with --label."
    )


def test_the_card_says_everything() -> None:
    text = write_classifier_card(
        title="Classifier `x`",
        settings={"data": "a|b.csv"},
        held_out=outcome(),
        yardstick=outcome(),
        history=[EpochLosses(1.0, 0.5)],
        notes=("one note",),
        use="as you like",
    )
    assert text.splitlines()[0] == "# Classifier `x`"
    for line in (
        "| data | a\\|b.csv |",
        "| accuracy, 95 % interval (Wilson) | 0.800 (0.376 to 0.964) |",
        "| macro-F1 | 0.800 |",
        "| expected calibration error (15 bins) | 0.100 |",
        "| always predicting a | 0.600 |",
        "| c | - | - | - | 0 |",
        "| a | 2 | 1 | 0 |",
        "| 1 | 1.0000 | 0.5000 |",
        "- one note",
    ):
        assert line in text.splitlines()


def test_a_table_in_markdown() -> None:
    assert markdown_table(("a", "b"), ("1", "2\n3")) == "| a | b |\n| --- | --- |\n| 1 | 2 3 |"
