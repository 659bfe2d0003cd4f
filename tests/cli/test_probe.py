"""``evenhand probe`` as a user runs it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.probes.probe_files import pairs_file, predictions_file
from tests.training import tiny_models

from evenhand.store.run import Run
from evenhand.training.backbones import HubBackbone

Evenhand = Callable[..., subprocess.CompletedProcess[str]]


def test_predictions_of_a_file(evenhand: Evenhand, tmp_path: Path) -> None:
    predictions = predictions_file(tmp_path / "p.csv")
    pairs = pairs_file(tmp_path / "pairs.csv")
    command = ("probe", f"replay:{predictions}", "--pairs", pairs, "--out", tmp_path / "run")
    plan = evenhand(*command, "--dry-run")
    assert plan.returncode == 0
    assert "72 pairs of groups in 72 sentences (72 different), by gender" in plan.stderr
    assert not (tmp_path / "run").exists()
    done = evenhand(*command)
    assert done.returncode == 0, done.stderr
    assert "more anger is found in" in " ".join(done.stdout.split())
    assert {path.name for path in (tmp_path / "run").iterdir()} >= {
        "run.json",
        "measures.parquet",
        "sets.parquet",
        "flips.parquet",
        "report.html",
        "report.json",
    }
    assert evenhand("report", tmp_path / "run", "--format", "md").returncode == 0


def test_sentences_without_a_prediction_end_in_part(evenhand: Evenhand, tmp_path: Path) -> None:
    predictions = predictions_file(tmp_path / "p.csv", templates=5)
    pairs = pairs_file(tmp_path / "pairs.csv")
    done = evenhand("probe", f"replay:{predictions}", "--pairs", pairs, "--out", tmp_path / "run")
    assert done.returncode == 3
    assert "12 items failed" in done.stderr  # one template of four emotions and three groups
    excluded = Run.open(tmp_path / "run").table("exclusions").row(0, named=True)
    assert (excluded["reason"], excluded["count"], excluded["of"]) == ("not_in_file", 12, 72)


def test_a_classifier_with_other_labels(evenhand: Evenhand, tmp_path: Path) -> None:
    backbone = HubBackbone(tiny_models.bert_folder(tmp_path / "base"), tiny_models.fit_for(("spam", "ham")))
    backbone.save(tmp_path / "classifier")
    pairs = pairs_file(tmp_path / "pairs.csv")
    command = ("probe", tmp_path / "classifier", "--pairs", pairs, "--out", tmp_path / "run")
    refused = evenhand(*command)
    assert refused.returncode == 2
    assert f"the labels of {tmp_path / 'classifier'} are spam, ham" in " ".join(refused.stderr.split())
    assert "evenhand probe --label THEIRS=OURS" in refused.stderr
    told = evenhand(*command, "--label", "spam=anger", "--label", "ham=joy")
    assert told.returncode == 0, told.stderr
    assert Run.open(tmp_path / "run").table("measures")["emotion"].unique().sort().to_list() == [
        "anger",
        "joy",
    ]
    wrong = evenhand(*command, "--label", "spam")
    assert wrong.returncode == 2
    assert "--label 'spam'" in wrong.stderr


def test_published_pairs_that_are_not_here(evenhand: Evenhand, tmp_path: Path) -> None:
    done = evenhand("probe", "--pairs", f"eec:{tmp_path}")
    assert done.returncode == 2
    assert "has no eec.csv" in done.stderr
