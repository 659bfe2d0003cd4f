"""What people answered, as a user looks at it: agreement, export, import, validate, train --from."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.annotate.rated_files import of
from tests.annotate.test_validate import human
from typer.testing import CliRunner

from evenhand.cli.app import app
from evenhand.cli.commands import command_line


@pytest.fixture(autouse=True)
def _few_resamples(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("evenhand.annotate.agreement.RESAMPLES", 100)
    monkeypatch.setattr("evenhand.annotate.validate.RESAMPLES", 400)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def run(*arguments: object):
    return CliRunner().invoke(app, list(map(str, arguments)))


def test_agreement_says_what_it_does_first(tmp_path: Path) -> None:
    path = of(tmp_path / "r.csv", "nnn", "ppn", "uup", "ppp")
    planned = run("annotate", "agreement", path, "--out", tmp_path / "out", "--dry-run")
    assert planned.exit_code == 0
    assert "regard   12 ratings of 4 texts by 3 people" in planned.output
    assert not (tmp_path / "out").exists()
    done = run("annotate", "agreement", path, "--out", tmp_path / "out", "--consensus", "dawid-skene")
    assert done.exit_code == 0, done.output
    assert "Krippendorff's alpha, ordinal" in done.output
    assert (tmp_path / "out" / "errors.parquet").is_file()


def test_export_and_import(tmp_path: Path) -> None:
    path = of(tmp_path / "r.csv", "nnn", "ppn")
    done = run("annotate", "export", path, "--format", "label-studio", "--out", tmp_path / "ls.json")
    assert done.exit_code == 0, done.output
    assert "written: " in done.output
    back = run("annotate", "import", tmp_path / "ls.json", "--out", tmp_path / "back.jsonl")
    assert back.exit_code == 0, back.output
    assert len((tmp_path / "back.jsonl").read_text().splitlines()) == 6
    same = run("annotate", "import", tmp_path / "back.jsonl", "--out", tmp_path / "back.jsonl")
    assert same.exit_code != 0
    assert "would be overwritten" in str(same.exception)


def test_validate(tmp_path: Path) -> None:
    path = human(tmp_path / "h.csv", {5: "positive"})
    done = run("validate", "sentiment", "--human", path, "--out", tmp_path / "out", "--output", "compound")
    assert done.exit_code == 0, done.output
    assert "the same label in 83.3 % of 6 texts" in done.output.replace("\n", " ")
    renamed = human(tmp_path / "o.csv", {0: "good", 1: "good", 2: "bad", 3: "bad", 4: "none", 5: "none"})
    done = run(
        *("validate", "sentiment", "--human", renamed, "--out", tmp_path / "o"),
        *("--map", "good=positive", "--map", "bad=negative", "--map", "none="),
    )
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("url", ["postgresql://me:secret@host/db", "postgresql://me:it's a secret@host/db"])
def test_a_password_is_not_written_down(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setattr("sys.argv", ["evenhand", "annotate", "agreement", "s", "--database", url])
    assert command_line(secret=url) == "evenhand annotate agreement s --database URL"
    monkeypatch.setattr("sys.argv", ["evenhand", "annotate", "agreement", "a b", f"--database={url}"])
    assert command_line(secret=url) == "evenhand annotate agreement 'a b' --database=URL"


def test_train_takes_a_study_or_data(tmp_path: Path) -> None:
    neither = run("train", "regard")
    assert "neither data nor a study to train regard on" in str(neither.exception)
    path = of(tmp_path / "r.csv", "nnn", "ppn")
    both = run("train", "regard", path, "--from", path)
    assert "both data and a study" in str(both.exception)
    other = tmp_path / "s.csv"
    other.write_text(path.read_text().replace("regard", "sentiment"))
    wrong = run("train", "regard", "--from", other)
    assert "asks about sentiment, not regard" in str(wrong.exception)
    norms = run("train", "norms", "--from", path)
    assert "norms is not trained from a study" in str(norms.exception)


def test_train_from_the_labels_most_people_chose(tmp_path: Path) -> None:
    words = ["apple", "river", "stone", "cloud", "paper", "music", "garden", "window", "bridge", "candle"]
    said_of = {"positive": "was praised for the", "negative": "was jailed over the"}
    rows = [
        f"{n},XYZ {said_of[label]} {word} {n * 7919},{who},{said}"
        for n, (word, label) in enumerate(
            (word, label) for label in ("positive", "negative") for word in words
        )
        for who, said in (("a", label), ("b", label), ("c", "mixed"))
    ]
    rows += [
        f"99,XYZ is disputed,{who},{said}"
        for who, said in (("a", "positive"), ("b", "negative"), ("c", "mixed"))
    ]
    path = tmp_path / "rated.csv"
    path.write_text("\n".join(["id,text,annotator,regard", *rows]) + "\n")
    done = run("train", "regard", "--from", path, "--backbone", "linear", "--out", tmp_path / "model")
    assert done.exit_code == 0, done.output
    assert "20 texts with an agreed label; dropped: no majority 1" in done.output.replace("\n", " ")
    assert (tmp_path / "model" / "card.md").is_file()
