"""The steering head: what it reads, what it learns, what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from evenhand.core.errors import InputError
from evenhand.core.records import ModelRef
from evenhand.mitigations.calibrator import read_calibrator
from evenhand.training.calibrator_job import (
    CalibratorConfig,
    TrainingStates,
    accumulate_states,
    fit_calibrator,
    read_two_labels,
    select_states,
)
from evenhand.training.train import prepare, train

LEFT = ("climate", "workers", "racism", "pandemic", "wealthy")
RIGHT = ("border", "liberty", "christian", "radical", "taxpayers")


def write(path: Path, count: int = 40, sides: tuple[str, str] = ("left", "right")) -> Path:
    rows = [
        {
            "text": f"Story {place} is about {words[place % 5]} and {words[(place + 2) % 5]} again.",
            "label": side,
        }
        for side, words in zip(sides, (LEFT, RIGHT), strict=True)
        for place in range(count)
    ]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return path


def test_accumulated_is_the_discounted_mean_up_to_each_token() -> None:
    states = torch.tensor([[1.0], [3.0], [5.0]])
    # 1; (3 + 0.5 * 1) / 1.5; (5 + 0.5 * 3 + 0.25 * 1) / 1.75.
    assert accumulate_states(states, 0.5)[:, 0].tolist() == pytest.approx([1, 3.5 / 1.5, 6.75 / 1.75])
    assert accumulate_states(states, 1.0)[:, 0].tolist() == pytest.approx([1, 2, 3])


def test_places_are_few_and_end_with_the_last() -> None:
    recipe = CalibratorConfig(places=3, first=2)
    found = select_states(
        [torch.randn(20, 4), torch.randn(2, 4), torch.randn(0, 4)], [True, False, True], recipe
    )
    assert len(found.states) == 3 + 1
    assert found.seconds.tolist() == [1, 1, 1, 0]
    assert found.last.tolist() == [False, False, True, True]


def test_a_head_learns_what_can_be_told_apart_and_reads_states_as_they_are() -> None:
    random = torch.Generator().manual_seed(0)
    states = torch.randn(4000, 6, generator=random) * 3 + 10
    seconds = (states[:, 0] > 10).float()
    places = TrainingStates(states, seconds, torch.ones(4000, dtype=torch.bool))
    head = fit_calibrator(
        places, CalibratorConfig(epochs=30, rate=1e-2), labels=("a", "b"), ref=ModelRef("causal", "m", "r")
    )
    right = ((head.logit(states) > 0) == (seconds > 0.5)).float().mean()
    assert right > 0.95
    assert (head.labels, head.model, head.revision, head.states) == (("a", "b"), "m", "r", "written")


def test_from_a_table_to_a_head_for_the_embedded_model(tmp_path: Path) -> None:
    data = write(tmp_path / "rows.jsonl")
    plan = prepare("calibrator", data, out=tmp_path / "head", device="cpu").plan()
    assert plan.lines[:2] == ("model    builtin", "texts    80; 20% held out; left against right")
    done = train("calibrator", data, out=tmp_path / "head", device="cpu", epochs=40)
    assert done.measures["accuracy"] > 0.8
    assert done.card.startswith("# Calibrator of `builtin`: left against right")
    head = read_calibrator(done.folder)
    assert head.labels == ("left", "right")
    assert head.width == 384
    assert train("calibrator", data, out=tmp_path / "head", device="cpu", epochs=40).was_done


def test_two_of_several_labels(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", sides=("negative", "positive"))
    with path.open("a") as file:
        file.write(json.dumps({"text": "plain", "label": "neutral"}) + "\n")
        file.write(json.dumps({"text": " ", "label": "neutral"}) + "\n")
    found = read_two_labels(path, text="text", label="label", sides=("negative", "positive"))
    assert len(found.texts) == 80
    assert found.skipped == {"another label, or none": 1, "no text": 1}
    with pytest.raises(InputError) as caught:
        read_two_labels(path, text="text", label="label")
    assert str(caught.value) == (
        "the labels of rows.jsonl are negative, neutral, positive. "
        "Expected: two different labels that occur, one for each side. "
        "Fix: select them: --sides FIRST,SECOND."
    )
    with pytest.raises(InputError, match="the sides negative, negative"):
        read_two_labels(path, text="text", label="label", sides=("negative", "negative"))


def test_too_few_texts_of_a_side(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", count=5)
    with pytest.raises(InputError) as caught:
        read_two_labels(path, text="text", label="label")
    assert str(caught.value) == (
        "rows.jsonl has fewer than 20 texts labelled 'left'. "
        "Expected: 20 texts of each side; a thousand is a good start. Fix: label more texts."
    )


def test_options_that_mean_nothing_are_refused(tmp_path: Path) -> None:
    data = write(tmp_path / "rows.jsonl")
    with pytest.raises(InputError, match=r"^--backbone does not apply to calibrator\."):
        prepare("calibrator", data, backbone="linear")
    with pytest.raises(InputError, match=r"^--model does not apply to regard\."):
        prepare("regard", data, model="builtin")
    with pytest.raises(InputError, match=r"^2 files to train a calibrator on\."):
        prepare("calibrator", [data, data])


def test_a_model_without_hidden_states_cannot_have_a_head(tmp_path: Path) -> None:
    data = write(tmp_path / "rows.jsonl")
    with pytest.raises(InputError, match=r"^the model 'stub' cannot be steered"):
        train("calibrator", data, model="stub", out=tmp_path / "head")
