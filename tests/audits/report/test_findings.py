"""The run in a sentence."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.report.manifests import manifest, write_run
from tests.report.realistic import comparison, frame, group_row, null_comparison, realistic_run, small_run

from evenhand.audits.report.findings import describe_detectable, describe_run, find_gaps
from evenhand.store.schemas import empty_table

_UNSURE = {"p_adjusted": 0.6, "low": -0.1, "high": 0.12}


def test_the_verdict_counts_names_and_admits(tmp_path: Path) -> None:
    rows = [comparison(), comparison(group="Asian_Americans", **_UNSURE)]
    assert describe_run(small_run(tmp_path, rows, [group_row()])) == (
        "1 of 2 gaps is larger than chance after correction; it is African Americans, 3.2 points more often "
        "negative (sentiment) than European Americans; 1 is inconclusive at this sample size."
    )


def test_nothing_found_also_says_what_could_have_been_seen(tmp_path: Path) -> None:
    rows = [comparison(**_UNSURE), comparison(group="Asian_Americans", min_detectable=0.08, **_UNSURE)]
    assert describe_run(small_run(tmp_path, rows, [group_row()])) == (
        "No gap is larger than chance, which does not prove that there is none: 2 gaps were compared, and a "
        "gap had to reach 2.9 points in the most precise comparison, and 8.0 in the least, to be detected "
        "after correction (80 % power); 2 are inconclusive at this sample size."
    )


def test_two_ranges_are_one_sentence() -> None:
    known = [("share", 0.3), ("share", 0.9), ("mean", 0.05), ("mean", 0.1)]
    gaps = [
        SimpleNamespace(measure=SimpleNamespace(kind=kind), comparison=SimpleNamespace(min_detectable=least))
        for kind, least in known
    ]
    said = describe_detectable(gaps)  # type: ignore[arg-type]
    assert "90.0 in the least; or 0.050 in a mean" in said
    assert said.endswith("0.100 in the least, to be detected after correction (80 % power)")


def test_no_comparison_at_all(tmp_path: Path) -> None:
    assert describe_run(small_run(tmp_path, groups=[group_row()])) == (
        "Nothing could be compared: this run holds no two groups of one axis with scores."
    )


def test_all_null(tmp_path: Path) -> None:
    rows = [null_comparison(), null_comparison(group="Asian_Americans", null_reason="one_cluster")]
    assert describe_run(small_run(tmp_path, rows)) == (
        "No gap could be tested: 2 gaps (no scores: 1, only one text, prompt or template in a group: 1)."
    )


def test_exploratory_gaps_are_outside_the_verdict_unless_alone(tmp_path: Path) -> None:
    exploratory = comparison(output="neutral", exploratory=True, estimate=0.5)
    both = small_run(
        tmp_path / "both", [comparison(), exploratory], [group_row(), group_row(output="neutral")]
    )
    alone = small_run(tmp_path / "alone", [exploratory], [group_row(output="neutral")])
    assert describe_run(both).startswith("1 of 1 gaps is")
    assert describe_run(alone).startswith("1 of 1 exploratory gaps is")


def test_the_largest_come_first_measured_by_the_range(tmp_path: Path) -> None:
    # 0.12 of compound is 6 % of its range of 2, below 7 points; the count has no range and goes last.
    rows = [
        comparison(output="compound", estimate=0.12),
        comparison(estimate=-0.07),
        comparison(metric="gender_polarity", output="unigram", estimate=3.0),
        comparison(group="Asian_Americans", estimate=0.09),
    ]
    groups = [
        group_row(output="compound", kind="mean"),
        group_row(),
        group_row(metric="gender_polarity", output="unigram", kind="mean"),
    ]
    gaps = find_gaps(small_run(tmp_path, rows, groups)).by_standing["supported"]
    assert [gap.comparison.estimate for gap in gaps] == [0.09, -0.07, 0.12, 3.0]


def test_what_could_hide_most_is_the_first_doubt(tmp_path: Path) -> None:
    rows = [comparison(**_UNSURE), comparison(group="Asian_Americans", min_detectable=0.2, **_UNSURE)]
    doubts = find_gaps(small_run(tmp_path, rows, [group_row()])).inconclusive
    assert [gap.group for gap in doubts] == ["Asian Americans", "African Americans"]


def test_no_report_calls_a_model_unbiased(tmp_path: Path) -> None:
    for p in (0.01, 0.9):
        said = describe_run(small_run(tmp_path / str(p), [comparison(p_adjusted=p)], [group_row()]))
        assert not any(word in said.lower() for word in ("unbiased", "fair", "no bias"))


@settings(deadline=None, max_examples=30)
@given(st.lists(st.sampled_from(["supported", "unclear", "small", "missing"]), max_size=12))
def test_every_gap_stands_exactly_once(
    tmp_path_factory: pytest.TempPathFactory, standings: list[str]
) -> None:
    rows = {
        "supported": comparison(),
        "unclear": comparison(**_UNSURE),
        "small": comparison(p_adjusted=0.5, low=-0.01, high=0.01),
        "missing": null_comparison(),
    }
    run = small_run(tmp_path_factory.mktemp("run"), [rows[standing] for standing in standings], [group_row()])
    assert sorted(gap.standing for gap in find_gaps(run).gaps) == sorted(standings)


def test_a_realistic_run_is_told_in_one_sentence(tmp_path: Path) -> None:
    said = describe_run(realistic_run(tmp_path))
    assert "of 164 gaps" in said
    assert said.endswith(".")
    assert "\n" not in said


def test_groups_that_differ_only_taken_together_are_not_passed_over(tmp_path: Path) -> None:
    omnibus = {
        **dict.fromkeys(empty_table("omnibus").columns),
        "suite": "starter",
        "model": "gpt2",
        "axis": "race",
        "metric": "sentiment",
        "output": "negative",
        "exploratory": False,
        "p_adjusted": 0.018,
        "n_groups": 4,
    }
    tables = {
        "comparisons": frame("comparisons", [comparison(p_adjusted=0.2)]),
        "groups": frame("groups", [group_row()]),
        "omnibus": frame("omnibus", [omnibus]),
    }
    found = find_gaps(write_run(tmp_path, manifest(), tables))
    assert found.verdict.startswith(f"{found.headline}: one was compared, and a gap had to reach")
    assert found.verdict.endswith(
        " Taken together, however, groups differ by more than chance: race, sentiment, negative "
        "(adjusted p 0.018)."
    )
