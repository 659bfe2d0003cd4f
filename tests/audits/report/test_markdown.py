"""``report.md``: names are text, never markup."""

from __future__ import annotations

from pathlib import Path

from tests.report.realistic import comparison, frame, group_row, realistic_run, small_run

from evenhand.report.render_run import format_report


def test_the_sections_stand_in_order(tmp_path: Path) -> None:
    text = format_report(realistic_run(tmp_path), "md")
    titles = [line for line in text.splitlines() if line.startswith("#")]
    assert titles == [
        "# Does gpt2 write differently about 43 groups?",
        "## Largest gaps",
        "## Inconclusive",
        "## Comparisons",
        "## Left out",
        "## Limits of this run",
        "## Where the numbers come from",
    ]


def test_every_table_row_has_the_columns_of_its_head(tmp_path: Path) -> None:
    run = small_run(tmp_path, [comparison(group="a|b")], [group_row(group="a|b")])
    rows = [
        line
        for line in format_report(run, "md").splitlines()
        if "sentiment, negative" in line and line[0] == "|"
    ]
    assert rows[0].replace(r"\|", "").count("|") == 11


def test_an_empty_run_is_said_to_be_empty(tmp_path: Path) -> None:
    text = format_report(small_run(tmp_path), "md")
    assert "Nothing could be compared" in text
    assert "## Comparisons" not in text


def test_it_says_the_family_and_whether_groups_differ_at_all(tmp_path: Path) -> None:
    run = small_run(tmp_path, [comparison()], [group_row()])
    row = {
        "suite": "starter",
        "axis": "race",
        "metric": "sentiment",
        "output": "negative",
        "p": 0.01,
        "p_adjusted": 0.02,
        "n_groups": 4,
        "n_clusters": 10,
        "exploratory": False,
    }
    frame("omnibus", [row]).write_parquet(run.path / "omnibus.parquet")
    text = format_report(run, "md")
    assert "Adjusted p: corrected over a family of 84 comparisons \\(benjamini-hochberg\\)" in text
    assert "| race | sentiment, negative | 0.020 | 4 | 10 |" in text
