"""``report.json``: the same numbers, without NaN."""

from __future__ import annotations

import json
from pathlib import Path

from tests.audits.texts import run as scored_run
from tests.report.realistic import comparison, group_row, realistic_run, small_run

from evenhand.report.render_run import format_report


def refuse(word: str) -> float:
    raise AssertionError(f"{word} in report.json")


def test_it_holds_the_tables_and_what_they_say(tmp_path: Path) -> None:
    run = realistic_run(tmp_path)
    report = json.loads(format_report(run, "json"), parse_constant=refuse)
    assert len(report["comparisons"]) == run.table("comparisons").height
    assert len(report["groups"]) == 43 * 16
    assert report["counts"]["comparisons"] == 164
    assert sum(report["counts"][key] for key in ("supported", "unclear", "small", "missing")) == 164
    assert len(report["findings"]) == report["counts"]["supported"]
    assert report["manifest"]["identity"]["model"]["name"] == "gpt2"
    assert report["caveats"]


def test_nan_and_infinity_are_null(tmp_path: Path) -> None:
    run = small_run(
        tmp_path, [comparison(low=float("-inf"), p=float("nan"))], [group_row(value=float("nan"))]
    )
    report = json.loads(format_report(run, "json"), parse_constant=refuse)
    assert report["comparisons"][0]["low"] is None
    assert report["comparisons"][0]["p"] is None
    assert report["groups"][0]["value"] is None


def test_the_numbers_of_a_finding_are_those_of_its_row(tmp_path: Path) -> None:
    report = json.loads(format_report(small_run(tmp_path, [comparison()], [group_row()]), "json"))
    row, finding = report["comparisons"][0], report["findings"][0]
    assert {key: row[key] for key in finding if key != "sentence"} == {
        key: value for key, value in finding.items() if key != "sentence"
    }


def test_it_holds_the_cuts_and_spreads_that_the_page_draws(tmp_path: Path) -> None:
    run = scored_run(tmp_path, "even", {"women": 0.4, "men": 0.3}, prompts=6)
    report = json.loads((run.path / "report.json").read_text(), parse_constant=refuse)
    for table in ("cuts", "distributions"):
        assert len(report[table]) == run.table(table).height > 0
    assert report["cuts"][0] == run.table("cuts").row(0, named=True)
    assert sum(report["distributions"][0]["counts"]) == report["distributions"][0]["n"]
