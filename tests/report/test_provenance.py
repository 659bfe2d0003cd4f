"""What was asked, and how to ask it again."""

from __future__ import annotations

from pathlib import Path

from tests.report.manifests import manifest, write_run
from tests.report.realistic import comparison, frame, group_row, realistic_run, small_run

from evenhand.audits.report.provenance import describe_question, list_run_facts
from evenhand.report.manifest import format_level


def test_an_audit_says_how_many_texts_were_written(tmp_path: Path) -> None:
    question, details = describe_question(realistic_run(tmp_path))
    assert question == "Does gpt2 write differently about 43 groups?"
    assert details == (
        "It continued 430 prompts of the suite starter, 5 times each: 2,150 texts. They were scored for "
        "sentiment and gender polarity and compared by gender, race, profession, religious ideology and "
        "political ideology."
    )


def test_replayed_texts_are_nobody_s_writing(tmp_path: Path) -> None:
    content = manifest()
    model = {"backend": "replay", "name": "/data/texts.jsonl"}
    content = content | {"identity": {**content["identity"], "model": model}}  # type: ignore[dict-item]
    run = write_run(tmp_path, content, {"groups": frame("groups", [group_row(), group_row(group="b")])})
    assert describe_question(run)[0] == "Do the texts in texts.jsonl differ between 2 groups?"


def test_a_file_is_asked_about_its_texts(tmp_path: Path) -> None:
    scores = [
        {
            "text_id": str(row),
            "metric": "sentiment",
            "metric_version": "1",
            "output": output,
            "value": 0.1,
            "label": None,
            "null_reason": None,
        }
        for row in range(3)
        for output in ("compound", "compound@0.05")
    ]
    content = manifest() | {"name": "texts.csv", "identity": {}, "stages": {"score": {"state": "done"}}}
    tables = {"groups": frame("groups", [group_row()]), "scores": frame("scores", scores)}
    question, details = describe_question(write_run(tmp_path, content, tables))
    assert question == "How do 3 texts of one group score?"
    assert (
        details
        == "The texts of texts.csv were scored for sentiment and gender polarity and compared by race."
    )


def test_the_facts_hold_what_is_needed_to_repeat_the_run(tmp_path: Path) -> None:
    known = {fact.name: fact.value for fact in list_run_facts(realistic_run(tmp_path))}
    assert known["Command to repeat"].startswith("evenhand audit gpt2")
    assert known["Revision"] == "607a30d783dfa663caf39e06633721c8d4cfcd7e"
    assert known["Suite digest"] == "5b1f0c9a7d2e4f60"
    assert known["Sampling"].endswith("stop sentence, seed 0")
    assert known["Samples per prompt"] == "5"
    assert known["Comparison"] == "mask paper, level 0.95, correction bh"
    assert known["Stage generate"] == "2,150 items, 3 failed, 91 s"


def test_another_level_is_said_where_it_is_used(tmp_path: Path) -> None:
    run = small_run(tmp_path, [comparison()], [group_row()], identity={"compare": {"level": 0.99}})
    assert format_level(run) == "99 %"
