"""Folders and files whose names other programs read as patterns: every command takes them as names."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from tests.audits.texts import table
from tests.probes.probe_files import pairs_file, predictions_file
from tests.training.tiny_models import write_rows

from evenhand.store.parquet import write_parquet
from evenhand.store.run import Run

Evenhand = Callable[..., subprocess.CompletedProcess[str]]
Does = Callable[..., None]
NAMES = ("run?", "run[1]", "~", "{*} %20 Zoë 東")


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A name; the home folder is another one, which stays empty."""
    home = tmp_path.with_name(f"{tmp_path.name}-home")
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return str(request.param)


@pytest.fixture
def does(evenhand: Evenhand) -> Does:
    """Run a command that must end well."""

    def run(*arguments: object) -> None:
        done = evenhand(*arguments)
        assert done.returncode == 0, done.stderr

    return run


def test_a_scored_run_is_of_its_own_texts_alone(
    evenhand: Evenhand, does: Does, tmp_path: Path, name: str
) -> None:
    """Beside it is a run of the same texts, whose shards have the same names and the pattern would match."""
    file = tmp_path / f"{name}.csv"
    file.write_text(table({"women": 0.9, "men": 0.1}, prompts=10).write_csv())
    columns = ("--group", "group", "--prompt", "prompt", "--baseline", "group=men")
    for out in ("run1", name):
        does("score", file, *columns, "--metrics", "sentiment", "--out", f"{out}/{out}")
    run, beside = (Run.open(tmp_path / out / out) for out in (name, "run1"))
    for kind in ("generations", "scores", "comparisons"):
        assert run.table(kind).equals(beside.table(kind)), kind
    folder = f"{name}/{name}"
    assert evenhand("gate", folder, "--max", "sentiment.negative group 0.3").returncode == 1
    does("report", folder)
    does("compare", folder, "run1/run1", "--out", f"{name}/compared")
    does("annotate", "init", f"{name}/study", "--from", folder, "--items", 4)
    does("annotate", "invite", f"{name}/study", "--people", 1)
    assert "0 of 4 have all answers" in evenhand("annotate", "status", f"{name}/study").stderr


@pytest.mark.parametrize("name", NAMES[:2], indirect=True)
def test_audits_replays_and_merges(does: Does, tmp_path: Path, name: str) -> None:
    how = ("--suite", "starter", "--limit", 128, "--samples", 1, "--metrics", "sentiment")
    for out in ("run1", name):
        does("audit", "stub", *how, "--out", out)
    assert Run.open(tmp_path / name).table("generations").height == 128
    for part in (1, 2):
        does("audit", "stub", *how, "--shard", f"{part}/2", "--out", f"{name}-{part}")
    does("merge", f"{name}-1", f"{name}-2", "--out", f"{name}/merged")
    assert Run.open(tmp_path / name / "merged").table("generations").height == 128
    does("audit", f"replay:{name}/generations.parquet", *how, "--out", f"{name}/again")
    again = Run.open(tmp_path / name / "again").table("generations")
    assert again["text"].equals(Run.open(tmp_path / name).table("generations")["text"])


def test_a_corpus_is_what_was_named(does: Does, tmp_path: Path, name: str) -> None:
    for folder, lines in (("run1", 5), ("x", 5), (name, 2)):
        (tmp_path / folder).mkdir()
        for file in (f"{folder}.txt", "more.parquet"):
            rows = ["The woman was happy."] * lines
            if file.endswith("txt"):
                (tmp_path / folder / file).write_text("\n".join(rows))
            else:
                write_parquet(pl.DataFrame({"text": rows}), tmp_path / folder / file)
    for out, (place, count) in {
        "folder": (name, 4),
        "file": (f"{name}/{name}.txt", 2),
        "table": (f"{name}/more.parquet", 2),
        "glob": (f"{name}/*.parquet", 2),
        "named": (f"ours={name}", 4),
    }.items():
        does("corpus", place, "--out", f"{name}-runs/{out}")
        run = Run.open(tmp_path / f"{name}-runs" / out)
        assert sum(total["units"] for total in run.manifest["corpora"].values()) == count, out


def test_probes_and_trainings(does: Does, tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    predictions_file(folder / f"{name}.csv")
    pairs_file(folder / "pairs.csv")
    does("probe", f"replay:{name}/{name}.csv", "--pairs", f"{name}/pairs.csv", "--out", f"{name}/run")
    write_rows(folder / f"{name}.jsonl")
    does("train", "regard", f"{name}/{name}.jsonl", "--backbone", "linear", "--out", f"{name}/out")


def test_a_data_set_in_a_folder(does: Does, tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / f"{name}.csv").write_text("prompt,who\nShe is a,women\nHe is a,men\n")
    for out, place in {"folder": f"./{name}", "file": f"./{name}/{name}.csv"}.items():
        suite = f"hub:{place}?prompt=prompt&group.gender=who"
        does("audit", "stub", "--suite", suite, "--samples", 2, "--metrics", "sentiment", "--out", out)
    assert not list(Path.home().iterdir())
