"""Files of version 1 that are not runs: studies, trained models, tasks, exports, suites."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
import warnings
from pathlib import Path

import polars as pl
import pytest
from tests import program
from tests.v1.commands import WORK

import evenhand


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A copy that a test may write in."""
    folder = tmp_path / "work"
    shutil.copytree(WORK, folder, ignore=shutil.ignore_patterns("audit*", "part-*", "tradeoff", "merged"))
    return folder


def succeeds(*arguments: object, cwd: Path) -> str:
    done = program.run(*arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_a_study_goes_on(work: Path) -> None:
    """Its answers are read, people are invited and forgotten, and a metric is held against it."""
    pytest.importorskip("sqlalchemy")
    assert "16 answers" in succeeds("annotate", "status", "study", cwd=work)
    assert "nobody has a link" not in succeeds("annotate", "serve", "study", "--dry-run", cwd=work)
    assert "/join/" in succeeds("annotate", "invite", "study", "--people", "1", cwd=work)
    succeeds("annotate", "agreement", "study", "--out", "agreed", cwd=work)
    items = evenhand.Run.open(work / "agreed").table("items")
    assert items.height > 0
    assert items["n"].max() == 2
    line = ("validate", "sentiment", "--human", "study", "--output", "compound", "--out", "valid")
    succeeds(*line, cwd=work)
    succeeds("annotate", "forget", "study", "a2", "--answers", cwd=work)
    succeeds("annotate", "export", "study", "--out", "rest.jsonl", cwd=work)
    left = pl.read_ndjson(work / "rest.jsonl")
    before = pl.read_ndjson(WORK / "study.jsonl")
    assert left.height == before.filter(pl.col("annotator") == "a1").height


def test_a_new_study_draws_the_same_texts(work: Path) -> None:
    pytest.importorskip("sqlalchemy")
    line = ("annotate", "init", "other", "--from", "score", "--task", "sentiment", "--items", "8")
    succeeds(*line, "--annotators", "2", cwd=work)
    old, new = (pl.read_parquet(folder / "items.parquet") for folder in (WORK / "study", work / "other"))
    assert new.select(old.columns).equals(old)
    assert set(_keys(WORK / "study")) <= set(_keys(work / "other"))


def _keys(study: Path) -> list[str]:
    from tests.v1.surface import keys_of, tomllib

    return keys_of(tomllib.loads((study / "study.toml").read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", ["study.jsonl", "study-ls.json", "back.jsonl"])
def test_an_export_is_read(name: str, work: Path) -> None:
    succeeds("annotate", "agreement", name, "--out", "agreed", cwd=work)
    statistics = evenhand.Run.open(work / "agreed").table("agreement")
    assert "fleiss_kappa" in set(statistics["statistic"])


def test_a_trained_classifier_is_a_metric(work: Path) -> None:
    """By its folder: what it said of held-out texts when it was trained it says again."""
    pytest.importorskip("torch")
    said = pl.read_csv(WORK / "regard-network" / "predictions.csv")
    said.select("text", "label").write_csv(work / "again.csv")
    line = ("score", "again.csv", "--group", "label=label", "--mask", "none", "--device", "cpu")
    succeeds(*line, "--metrics", "regard=regard-network", "--out", "scored", cwd=work)
    scores = evenhand.Run.open(work / "scored").table("scores")
    assert set(scores["metric"]) == {"regard=regard-network"}
    for label in ("negative", "neutral", "positive"):
        values = scores.filter(pl.col("output") == f"p_{label}")["value"]
        assert list(values) == pytest.approx(list(said[f"p_{label}"]), abs=1e-3)


def test_the_yardstick_is_loaded_as_its_card_says() -> None:
    """The card names where it is in Python, so that place goes on importing."""
    card = (WORK / "regard" / "card.md").read_text(encoding="utf-8")
    assert "evenhand.training.linear_text.LinearText.load(folder).probabilities(texts)" in card
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from evenhand.training.linear_text import LinearText

        found = LinearText.load(WORK / "regard").probabilities(_held_out("text"))
    for place, label in enumerate(("negative", "neutral", "positive")):
        assert [row[place] for row in found] == pytest.approx(_held_out(f"p_{label}"), abs=1e-3)


def _held_out(column: str) -> list:
    return pl.read_csv(WORK / "regard" / "predictions.csv")[column].to_list()


def test_a_trained_head_steers(work: Path) -> None:
    """Its texts are those of ``texts.json``; here it is only opened and refused where it does not fit."""
    pytest.importorskip("torch")
    line = ("debias", "builtin", "--mode", "classifier", "--calibrator", "calibrator", "--device", "cpu")
    done = program.run(*line, "--prompt", "the baker", cwd=work)
    assert done.returncode == 2
    assert "calibrator" in done.stderr


def test_a_collected_suite_and_replayed_texts_are_audited(work: Path) -> None:
    shutil.copytree(WORK / "audit-config", work / "audit-config")
    suite = ("audit", "stub", "--suite", "bold-subset:collected", "--samples", "1", "--metrics", "sentiment")
    succeeds(*suite, "--out", "on-collected", cwd=work)
    assert evenhand.Run.open(work / "on-collected").table("prompts").height == 4
    texts = "replay:audit-config/generations.parquet"
    suite = ("audit", texts, "--suite", "templates:suite.toml", "--samples", "2", "--limit", "8")
    succeeds(*suite, "--metrics", "sentiment", "--out", "replayed", cwd=work)
    old = set(evenhand.Run.open(work / "audit-config").table("generations")["text"])
    assert set(evenhand.Run.open(work / "replayed").table("generations")["text"]) == old


def test_longer_terms_are_counted(work: Path) -> None:
    line = ("corpus", "old.txt", "--terms", "more-terms.json", "--workers", "1", "--out", "counted")
    succeeds(*line, cwd=work)
    counted = evenhand.Run.open(work / "counted").table("occurrence")
    assert set(counted["emotion"]) == {"joy", "anger"}


def test_an_exported_task_measures(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """lm-eval imports the file beside the task; its imports are those of version 1."""
    monkeypatch.chdir(work / "task")
    spec = importlib.util.spec_from_file_location("evenhand_doors", work / "task" / "evenhand_doors.py")
    assert spec is not None
    assert spec.loader is not None
    task = importlib.util.module_from_spec(spec)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        spec.loader.exec_module(task)
    documents = json.loads((work / "task" / "evenhand_doors.json").read_text(encoding="utf-8"))["documents"]
    answers = [[" were happy and glad."], [" were cruel, and hated everybody."]]
    assert task.measure(answers, documents[:2]) == answers
    numbers = [task.results(one, [said]) for one, said in zip(documents[:2], answers, strict=True)]
    assert [number["sentiment.negative"] for number in numbers] == [0.0, 1.0]
    assert task.gap([number["sentiment.negative.gap"] for number in numbers]) == 1.0
    sys.modules.pop("evenhand_doors", None)


def test_a_settings_file_is_read(work: Path) -> None:
    """The one that ``init`` wrote, which says nothing, and one that says much."""
    plan = succeeds("audit", "stub", "--config", "evenhand.toml", "--limit", "2", "--dry-run", cwd=work)
    assert plan == succeeds("audit", "stub", "--limit", "2", "--dry-run", cwd=work)
    succeeds("audit", "stub", "--config", "run.toml", "--out", "run", cwd=work)
    config = evenhand.Run.open(work / "run").manifest["config"]
    assert config["compare"]["correction"] == "holm"
    assert config["metrics"]["options"] == {"sentiment": {"cut": 0.05}}
