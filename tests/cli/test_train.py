"""``evenhand train`` as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.training.tiny_models import bert_folder, write_rows
from typer.testing import CliRunner

from evenhand.cli.app import app
from evenhand.cli.commands import CHOICES
from evenhand.core.errors import InputError
from evenhand.training.options import TASKS
from evenhand.training.train import CALIBRATOR, WORDS, ignored_options, prepare, train


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "rows.jsonl")


def test_linear_from_table_to_card(evenhand, table, tmp_path):
    done = evenhand("train", "regard", table, "--backbone", "linear", "--out", "out")
    assert done.returncode == 0, done.stderr
    assert "75 for training, 15 held out; labels negative, neutral, positive" in done.stderr
    assert done.stdout.splitlines()[0].split() == ["accuracy", "1.000"]
    assert "card: out/card.md" in done.stdout
    assert (tmp_path / "out" / "card.md").read_text().startswith("# Classifier `regard`")
    again = evenhand("train", "regard", table, "--backbone", "linear", "--out", "out")
    assert again.returncode == 0
    assert "already done by an earlier run: nothing was trained. Start again with --fresh." in again.stderr
    assert "already done" not in done.stderr


def test_a_wrong_label_ends_with_2_and_says_what_is_accepted(evenhand, tmp_path):
    write_rows(tmp_path / "rows.jsonl", [{"text": "a text", "label": "great"}])
    done = evenhand("train", "regard", "rows.jsonl", "--backbone", "linear")
    assert done.returncode == 2
    assert "rows.jsonl row 1 has the label 'great', which is unknown for regard" in done.stderr
    assert "negative, -1; neutral, 0; positive, 1; other, 2, mixed" in done.stderr


@pytest.mark.parametrize("words", [("norms", "--help"), ("-h", "norms")])
def test_the_help_of_a_task_has_its_options_alone(words: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(app, ["train", *words]).output
    assert "--backbone" in shown
    assert "--out" in shown
    assert "--from" not in shown
    assert "--epochs" not in shown
    whole = CliRunner().invoke(app, ["train", "--help"]).output
    assert "--from" in whole
    assert "--sides" in whole


def test_what_the_help_leaves_out_is_refused() -> None:
    assert set(ignored_options("regard")) == {"model", "sides"}
    assert set(TASKS) | {*WORDS, CALIBRATOR} == set(CHOICES["tasks"])
    for task in CHOICES["tasks"]:
        for name in ignored_options(task):
            value = {"max_length": 4, "consensus": "majority"}.get(name, 1)
            with pytest.raises(InputError, match=r"does not apply to|is not trained from a study"):
                prepare(task, () if name == "study" else "x.csv", **{name: value})
    assert ignored_options("nothing") == ()


def test_a_dry_run_writes_nothing(table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["train", "regard", str(table), "--backbone", "linear", "--dry-run"])
    assert done.exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["rows.jsonl"]


def test_a_killed_training_goes_on_to_the_same_weights(table, tmp_path):
    backbone = bert_folder(tmp_path / "tiny")
    options = {"backbone": str(backbone), "epochs": 25, "batch": 8, "learning_rate": 0.003, "device": "cpu"}
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    out = tmp_path / "a"
    command = [sys.executable, "-m", "evenhand", "train", "regard", str(table), *flags, "--out", str(out)]
    killed = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    checkpoint = tmp_path / "a" / "checkpoint.safetensors"
    ends = time.monotonic() + 120
    while not checkpoint.exists() and time.monotonic() < ends:
        time.sleep(0.01)
    killed.kill()
    killed.wait()
    assert checkpoint.exists(), "it was finished, or never began"
    for name in ("a", "b"):
        train("regard", table, out=tmp_path / name, **options)
    weights = [(tmp_path / out / "model.safetensors").read_bytes() for out in ("a", "b")]
    assert weights[0] == weights[1]
    measured = [json.loads((tmp_path / out / "training.json").read_text())["measures"] for out in ("a", "b")]
    assert measured[0] == measured[1]
