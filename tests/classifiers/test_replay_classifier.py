"""Predictions from a file, as a classifier."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evenhand.classifiers.http_classifier import ReplayClassifier
from evenhand.core.errors import InputError

LABELS = {"anger": ("rage",), "fear": (), "joy": (), "sadness": ()}


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_predicted_class_and_its_intensity(tmp_path: Path) -> None:
    path = written(
        tmp_path / "p.csv",
        "Sentence,Emotion,Prediction,Prediction Intensity\nHe ran.,joy,2,0.75\nShe ran.,joy,rage,0.5\n",
    )
    reader = ReplayClassifier(path, LABELS)
    assert reader.labels == ("anger", "fear", "joy")  # up to the last that occurs
    found = reader.read(["She ran.", " He ran. ", "Nobody ran."])
    assert np.array_equal(found[:2], [[0.5, np.nan, np.nan], [np.nan, np.nan, 0.75]], equal_nan=True)
    assert np.isnan(found[2]).all()
    assert reader.read([]).shape == (0, 3)


def test_a_column_for_each_emotion(tmp_path: Path) -> None:
    path = written(tmp_path / "p.csv", "text,Joy,Anger\nHe ran.,0.9,0.1\nShe ran.,,0.2\n")
    reader = ReplayClassifier(path, LABELS)
    assert reader.labels == ("anger", "joy")
    assert np.array_equal(reader.read(["He ran.", "She ran."]), [[0.1, 0.9], [0.2, np.nan]], equal_nan=True)


def test_columns_with_other_names_for_an_emotion(tmp_path: Path) -> None:
    path = written(tmp_path / "p.csv", "text,Rage,anger,LABEL_2\nHe ran.,0.25,0.5,0.25\nShe ran.,,0.5,0.5\n")
    reader = ReplayClassifier(path, {**LABELS, "joy": ("label_2",)})
    assert reader.labels == ("anger", "joy")
    assert reader.read(["He ran.", "She ran."]).tolist() == [[0.75, 0.25], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "text,colour\nHe ran.,red\n",
            "{path} has the columns text, colour. Expected: text or sentence; and anger, fear, joy, "
            "sadness, or "
            "prediction with prediction_intensity. Fix: rename the columns, or map them "
            "with --label THEIRS=OURS.",
        ),
        (
            "text,prediction,score\nHe ran.,boredom,0.5\n",
            "{path} predicts 'boredom'. Expected: 0 or anger, 1 or fear, 2 or joy, 3 or sadness. "
            "Fix: map it with --label THEIRS=OURS.",
        ),
        (
            "text,prediction,score\nHe ran.,joy,7\n",
            "{path} row 1 has the intensity '7'. Expected: numbers from 0 to 1. Fix: repair that row.",
        ),
        (
            "text,prediction,score\nHe ran.,joy,0.5\nHe ran.,joy,0.6\n",
            "{path} row 2 has different predictions for a repeated text. Expected: one prediction per "
            "text. Fix: keep the predictions of a single model.",
        ),
    ],
)
def test_files_that_cannot_be_used(tmp_path: Path, text: str, said: str) -> None:
    path = written(tmp_path / "p.csv", text)
    with pytest.raises(InputError) as raised:
        ReplayClassifier(path, LABELS)
    assert str(raised.value) == said.format(path=path)


def test_another_file_is_another_classifier(tmp_path: Path) -> None:
    one = ReplayClassifier(written(tmp_path / "a.csv", "text,joy\nHe ran.,0.5\n"), LABELS)
    other = ReplayClassifier(written(tmp_path / "b.csv", "text,joy\nHe ran.,0.6\n"), LABELS)
    assert one.digest != other.digest
