"""Runs that have little to say: from texts through the whole pipeline to an honest page."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest
from tests.audits.report.test_html import Page
from tests.report.realistic import comparison, group_row, small_run

import evenhand
from evenhand.report.html import SIZE_LIMIT
from evenhand.report.render_run import format_report
from evenhand.store.run import Run

GOOD, BAD = "She was kind and happy.", "He was cruel and hated."


def scored(folder: Path, texts: list[str], groups: list[str], clusters: list[str] | None = None) -> Run:
    """A run over these texts, scored for sentiment."""
    table = pl.DataFrame(
        {"text": texts, "group": groups, "cluster": clusters or [str(n) for n in range(len(texts))]}
    )
    return evenhand.score(
        table,
        text="text",
        group={"team": "group"},
        cluster="cluster",
        metrics="sentiment",
        out=folder / "run",
    )


def page_of(run: Run) -> Page:
    source = (run.path / "report.html").read_text(encoding="utf-8")
    assert len(source.encode()) <= SIZE_LIMIT
    page = Page(source)
    assert page.open == []
    assert not {"nan", "inf", "null"} & set(re.findall(r"\w+", page.text.lower()))
    return page


def test_one_group_has_estimates_and_nothing_to_compare(tmp_path: Path) -> None:
    text = page_of(scored(tmp_path, [GOOD, BAD] * 10, ["red"] * 20)).text
    assert "Nothing could be compared" in text
    assert "50.0 %" in text


def test_one_cluster_cannot_be_tested_and_says_why(tmp_path: Path) -> None:
    text = page_of(scored(tmp_path, [GOOD, BAD] * 10, ["red", "blue"] * 10, ["one"] * 20)).text
    assert "No gap could be tested" in text
    assert "one cluster" in text


def test_texts_that_are_all_empty_leave_no_number(tmp_path: Path) -> None:
    text = page_of(scored(tmp_path, [" "] * 20, ["red", "blue"] * 10)).text
    assert "No gap could be tested" in text
    assert "Not drawn, because none of their texts has a value: Sentiment by team." in text
    assert "empty" in text.split("Left out")[-1]


def test_equal_texts_have_no_gap_and_no_test(tmp_path: Path) -> None:
    text = page_of(scored(tmp_path, [GOOD] * 20, ["red", "blue"] * 10)).text
    assert "no variation" in text
    assert "No gap could be tested" in text


def test_tables_that_do_not_fit_stay_in_the_run_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = scored(tmp_path, [GOOD, BAD, BAD] * 10, ["red", "blue", "green"] * 10)
    assert 'class="cut js-only"' in format_report(run, "html")
    monkeypatch.setattr("evenhand.report.html._MOST_BYTES", 100)
    source = format_report(run, "html")
    assert 'class="cut js-only"' not in source
    assert 'data-download="comparisons"' not in source
    assert Page(source).open == []


NAMES = ("<script>alert(1)</script>", "👩🏽\u200d🚀 & 'quotes'", "</style>", "a|b `c` @all https://x.example")


def test_names_with_markup_and_emoji_are_names(tmp_path: Path) -> None:
    run = scored(tmp_path, [GOOD, BAD, BAD, GOOD] * 10, list(NAMES) * 10)
    page = page_of(run)
    assert all(name in page.text for name in NAMES)
    assert page.tags.count("script") == 4
    plain = format_report(run, "md")
    assert "<script" not in plain.replace("\\<", "")
    assert "@all" not in plain
    assert "https://" not in plain


@pytest.mark.parametrize("groups", [500])
def test_five_hundred_groups_make_one_page(tmp_path: Path, groups: int) -> None:
    texts = [GOOD if number % 3 else BAD for number in range(groups * 4)]
    run = scored(tmp_path, texts, [f"group {number % groups}" for number in range(groups * 4)])
    assert "differ between 500 groups?" in page_of(run).text
    assert run.table("cuts").height > 0


def test_no_control_character_reaches_a_reader(tmp_path: Path) -> None:
    steering = "\x1b[2J\u202enews\x7f"
    run = small_run(tmp_path, [comparison()], [group_row(), group_row(group=steering)], warnings=[steering])
    for name in ("html", "md"):
        text = format_report(run, name)
        assert not set("\x1b\u202e\x7f") & set(text)
        assert "\ufffd[2J\ufffdnews\ufffd".replace("[", "\\[" if name == "md" else "[") in text
