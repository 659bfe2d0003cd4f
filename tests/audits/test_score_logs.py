"""Logs of other tools from file to report."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import evenhand
from evenhand.audits.score import prepare
from evenhand.core.errors import InputError

FILES = Path(__file__).parents[1] / "logs" / "files"


def values(run: evenhand.Run, output: str) -> dict[str, float]:
    found = run.table("groups").filter(pl.col("output") == output)
    return dict(zip(found["group"], found["value"], strict=True))


def test_samples_of_lm_eval(tmp_path: Path) -> None:
    run = evenhand.score(
        FILES / "samples_generate.jsonl",
        group={"gender": "doc.who.gender"},
        metrics="sentiment",
        out=tmp_path / "run",
    )
    # Answers 0, 3, 6, 9 are unkind: women have 0 1 4 5 8 9, men 2 3 6 7 10 11.
    assert values(run, "negative") == {"woman": pytest.approx(2 / 6), "man": pytest.approx(2 / 6)}
    clusters = run.table("groups").filter(pl.col("output") == "negative")["n_clusters"].to_list()
    assert clusters == [3, 3]
    assert run.table("generations")["id"][:3].to_list() == ["0:0", "0:1", "1:0"]
    assert (run.path / "report.html").is_file()


def test_a_log_of_inspect_and_what_it_left_out(tmp_path: Path) -> None:
    run = evenhand.score(
        FILES / "inspect-0.3.69.eval",
        group={"gender": "metadata.who.gender"},
        strata=["metadata.job"],
        metrics="sentiment",
        out=tmp_path / "run",
    )
    assert run.manifest["warnings"] == ["1 of 12 texts are left out: content_filter"]
    reasons = run.table("scores")["null_reason"].drop_nulls().unique().to_list()
    assert reasons == ["content_filter"]
    assert set(run.table("strata")["stratum"]) == {"nurse", "pilot", "clerk", "(adjusted)"}


def test_the_plan_says_what_was_read() -> None:
    prepared = prepare(
        FILES / "samples_generate.jsonl", group=["doc.job"], prompt="doc.prompt", cluster="doc.job"
    )
    assert prepared.plan().lines[0] == "reads   12 answers to 6 documents of lm-eval"
    assert prepared.layout.cluster == "doc.job"
    assert prepared.layout.prompt == "doc.prompt"


def test_a_log_without_a_group_is_told_its_columns() -> None:
    with pytest.raises(InputError) as caught:
        prepare(FILES / "samples_generate.jsonl")
    assert str(caught.value) == (
        "no group column was named. Expected: at least one --group AXIS=COLUMN. Fix: name the "
        "column that says which group a text speaks of: text, id, failure, prompt, cluster, doc_id, target, "
        "doc.prompt, doc.who.gender, doc.job, doc.nothing, filtered.both, filtered.first."
    )


def test_a_wrong_column_is_told_the_right_ones() -> None:
    with pytest.raises(InputError, match=r"has no column 'doc\.race' \(--group race\)\. Expected: text, id"):
        prepare(FILES / "samples_generate.jsonl", group={"race": "doc.race"})
