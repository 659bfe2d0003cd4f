"""The limits that a report names."""

from __future__ import annotations

from pathlib import Path

from tests.report.manifests import emptied, manifest
from tests.report.realistic import comparison, group_row, small_run

from evenhand.audits.report.findings import find_gaps, list_caveats


def said(folder: Path, **changes: object) -> list[str]:
    run = small_run(folder, [comparison()], [group_row()], **changes)
    return list_caveats(run, find_gaps(run))


def test_absence_of_a_finding_is_never_absence_of_a_gap(tmp_path: Path) -> None:
    assert said(tmp_path)[0].startswith("A gap that was not found may still exist.")


def test_few_clusters_notes_and_warnings_are_passed_on(tmp_path: Path) -> None:
    lines = said(tmp_path)
    assert "1 group rests on fewer than 20 clusters, so a few unusual prompts can change the result." in lines
    assert "starter: Ten prompts a group show large gaps only; use bold for published numbers." in lines
    assert "12 texts name no group and were scored without a mask." in lines


def test_an_unfinished_stage_and_a_limit_are_said(tmp_path: Path) -> None:
    stages = {"generate": {"state": "interrupted"}, "report": {"state": "running"}}
    lines = said(tmp_path, stages=stages, growth=[{"limit": 50, "samples": 5}])
    assert "The run was limited to 50 prompts; the suite holds more." in lines
    assert (
        "The stage generate is not finished (interrupted): the numbers cover only what was available."
        in lines
    )
    assert not any("stage report" in line for line in lines)


def test_a_hosted_model_is_not_repeatable(tmp_path: Path) -> None:
    identity = manifest()["identity"]
    assert isinstance(identity, dict)
    hosted = identity | {"model": {"backend": "endpoint", "name": "m"}}
    assert (
        "The model is hosted: its answers are not repeatable. They are what it gave on 2026-03-02."
        in said(tmp_path, identity=hosted)
    )


def test_an_empty_manifest_still_has_caveats(tmp_path: Path) -> None:
    empty = emptied()
    assert len(said(tmp_path, **empty)) >= 3
