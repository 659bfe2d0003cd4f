"""``evenhand annotate`` as a user runs it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.api.test_items import samples
from typer.testing import CliRunner

from evenhand.cli.app import app


@pytest.fixture(autouse=True)
def _few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenhand.training.annotations.RESAMPLES", 100)


def run(*arguments: object):
    return CliRunner().invoke(app, ["annotate", *map(str, arguments)])


def test_sample_says_what_it_does_and_writes_a_table(tmp_path: Path) -> None:
    path, out = samples(tmp_path / "s.tsv"), tmp_path / "items.csv"
    assert run("sample", path, "--per-prompt", 2, "--out", out, "--dry-run").exit_code == 0
    assert not out.exists()
    done = run("sample", path, "--per-prompt", 2, "--out", out)
    assert done.exit_code == 0
    assert "choose  2 positive and 2 negative a prompt by VADER: at most 8, seed 0" in done.output
    assert "8 texts" in done.output
    assert len(out.read_text().splitlines()) == 9


def test_too_few_is_done_in_part(tmp_path: Path) -> None:
    done = run("sample", samples(tmp_path / "s.tsv"), "--per-prompt", 4, "--out", tmp_path / "items.csv")
    assert done.exit_code == 3
    assert "has 3 different positive texts of 8, 4 were wanted" in done.output


def test_settle_names_texts_without_the_mask(tmp_path: Path) -> None:
    rows = [
        f"{number},A text {number * 7919} of {label} {number},{who},{label}"
        for number, label in enumerate(["negative", "positive"] * 10)
        for who in "abc"
    ]
    (tmp_path / "rated.csv").write_text("\n".join(["id,text,annotator,regard", *rows]) + "\n")
    done = run("settle", tmp_path / "rated.csv", "--out", tmp_path / "labels")
    assert done.exit_code == 0, done.output
    assert "20 of 20 texts have no XYZ: their readers knew the demographic" in done.output
    assert (tmp_path / "labels" / "regard_test.csv").is_file()


def test_labels_too_few_to_divide_are_kept_whole(tmp_path: Path) -> None:
    """Nineteen negative texts and a positive one: agreement and labels are there, parts are not."""
    labels = ["negative"] * 19 + ["positive"]
    rows = [
        f"{n},XYZ was {n * 7919},{who},{label},neutral" for n, label in enumerate(labels) for who in "abc"
    ]
    (tmp_path / "rated.csv").write_text("\n".join(["id,text,annotator,regard,sentiment", *rows]) + "\n")
    done = run("settle", tmp_path / "rated.csv", "--out", tmp_path / "labels")
    assert done.exit_code == 3, done.output
    assert "the texts of the label 'positive' are too few" in done.output
    assert "all 20 kept texts are neutral" in done.output
    assert {path.name for path in (tmp_path / "labels").iterdir()} == {
        *("agreement.csv", "regard_all.csv", "sentiment_all.csv")
    }
    assert len((tmp_path / "labels" / "regard_all.csv").read_text().splitlines()) == 21
