"""The page of a comparison: what a line says, where it is drawn, which runs are tied."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.audits.report.test_html import Page
from tests.audits.texts import run

from evenhand import compare
from evenhand.audits.report.compare_report import (
    build_board,
    build_lines,
    build_report,
    find_scale,
    format_ranks,
)
from evenhand.audits.report.measures import Measure, MeasureKey
from evenhand.core.digests import Json
from evenhand.report.charts import draw_pieces
from evenhand.report.document import Report, Tally
from evenhand.report.render_run import format_report
from evenhand.store.run import Run

SHARE = Measure(
    metric="tone",
    output="negative",
    kind="share",
    label="negative",
    title="negative",
    full_title="tone, negative",
    unit=" points",
    span=1.0,
    primary=True,
)
UNBOUNDED = Measure(
    metric="length",
    output="words",
    kind="mean",
    label="words",
    title="mean words",
    full_title="length, mean words",
    primary=True,
)
KNOWN: dict[MeasureKey, Measure] = {("tone", "negative"): SHARE, ("length", "words"): UNBOUNDED}


def change(**changes: Json) -> dict[str, Json]:
    """A gap of 10 points that became 30, unless changed."""
    row: dict[str, Json] = {
        "suite": "s",
        "run": "new",
        "reference": "old",
        "axis": "gender",
        "group": "women",
        "baseline": "men",
        "metric": "tone",
        "output": "negative",
        "effect": "gap",
        "estimate": 0.2,
        "low": 0.1,
        "high": 0.3,
        "p_adjusted": 0.001,
        "min_detectable": 0.05,
        "run_value": 0.3,
        "reference_value": 0.1,
        "widens": 0.2,
        "widens_low": 0.1,
        "widens_high": 0.3,
        "exploratory": False,
        "null_reason": None,
    }
    return row | changes


def test_a_line_says_what_was_and_what_is() -> None:
    (line,) = build_lines([change()], KNOWN, "gap")
    assert (*line.sides, line.change.text, line.change.flag) == (
        *("+10.0", "+30.0"),
        *("+20.0", " points"),
    )
    assert line.claim == "women against men: wider (tone, negative) under new"
    assert line.tone == "higher"


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"widens": -0.2, "widens_low": -0.3, "widens_high": -0.1}, "narrower"),
        ({"widens": 0.01, "widens_low": -0.1, "widens_high": 0.1}, "moved"),
        ({"p_adjusted": 0.2}, "inconclusive"),
        ({"p_adjusted": None}, "not testable"),
    ],
)
def test_a_change_of_size_decides_the_word(changes: dict[str, Json], verdict: str) -> None:
    assert build_lines([change(**changes)], KNOWN, "gap")[0].verdict == verdict


def test_both_ends_are_drawn_on_one_scale_with_zero() -> None:
    lines = build_lines([change(), change(group="elders", reference_value=-0.1, run_value=0.1)], KNOWN, "gap")
    drawings = {line.words("group"): line.draw(find_scale(lines)) for line in lines}
    # From -0.1 to 0.3 of the range, 2 to 98 percent: 0 is a quarter of the way, at 2 + 96 / 4.
    assert all('class="ref" x="26.0%"' in drawing for drawing in drawings.values())
    women = drawings["women"]
    assert 'class="before" cx="50.0%"' in women
    assert 'class="after" cx="98.0%"' in women
    assert 'class="way" x="50.0%" width="48.00%"' in women


def test_a_measure_without_a_range_never_stands_before_one_that_has_a_range() -> None:
    long = change(metric="length", output="words", estimate=40.0, run_value=50.0, reference_value=10.0)
    lines = build_lines([long, change()], KNOWN, "gap")
    assert [line.text("metric") for line in lines] == ["tone", "length"]
    assert not lines[1].draw(find_scale(lines))


def test_a_gap_that_changed_its_sign_is_said_to_have() -> None:
    (line,) = build_lines([change(reference_value=-0.1)], KNOWN, "gap")
    assert line.claim == "women against men: wider, with the sign reversed (tone, negative) under new"


def test_an_undecided_change_says_what_it_leaves_open() -> None:
    (line,) = build_lines([change(p_adjusted=0.3, low=-0.1)], KNOWN, "gap")
    assert line.doubt == (
        "women against men, tone, negative, under new: the change may be anywhere from −10.0 to +30.0 "
        "points; it had to reach 5.0 points to be detected after correction"
    )


def test_what_is_missing_leaves_no_unit_behind() -> None:
    empty = change(estimate=None, p_adjusted=None, run_value=None, null_reason="no_values")
    (line,) = build_lines([empty], KNOWN, "gap")
    assert (line.change.text, line.change.flag, line.sides[1], line.p, line.ends) == ("", "", "", "", None)
    assert line.verdict_words == "not testable: no values"


def place(run: str, rank: int | None, tied: list[Json]) -> dict[str, Json]:
    row: dict[str, Json] = {
        "suite": "s",
        "axis": "gender",
        "metric": "tone",
        "output": "negative",
        "run": run,
    }
    numbers: dict[str, Json] = {"rank": rank, "spread": 0.1, "low": 0.0, "high": 0.2}
    return row | numbers | {"tied_with": tied, "exploratory": False, "null_reason": None}


def test_only_runs_that_are_told_apart_have_a_colour() -> None:
    rows = [place("a", 1, ["b"]), place("b", 1, ["a", "c"]), place("c", 2, ["b"])]
    heading, *board = build_board(rows, SHARE)
    assert heading.is_heading
    assert [(row.cells[3], row.tone) for row in board] == [
        ("1=", "lower clear"),
        ("1=", ""),
        ("2", "higher clear"),
    ]
    # Half of 0 to 0.2 is the middle of the chart; the bar reaches from edge to edge.
    chart = board[0].cells[1].chart  # type: ignore[union-attr]
    assert 'class="bar" x="2.0%" width="96.0%"' in chart
    assert 'cx="50.0%"' in chart


def test_ranks_show_ties() -> None:
    assert format_ranks([1, 2, 2, None]) == ["1", "2=", "2=", ""]


def test_the_bar_of_a_standing_is_whole() -> None:
    bar = draw_pieces({"lower": 2, "tied": 1, "null": 0, "higher": 1}, style="share")
    assert 'class="lower" x="0.0%" width="50.0%"' in bar
    assert 'class="tied" x="50.0%" width="25.0%"' in bar
    assert 'class="higher" x="75.0%" width="25.0%"' in bar
    assert "null" not in bar


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("runs")
    even = run(folder, "even", {"women": 0.3, "men": 0.3})
    wide = run(folder, "<b>wide", {"women": 0.9, "men": 0.2}, seed=1)
    return compare(even, wide, out=folder / "c")


@pytest.fixture(scope="module")
def found(compared: Run) -> Report:
    return build_report(compared)


def test_the_question_names_the_runs(compared: Run, found: Report) -> None:
    assert found.question == "Do the gaps of <b>wide.csv differ from those of even.csv?"
    assert found.details == (
        "<b>wide.csv against even.csv, the reference, measured by sentiment. Runs are paired by prompt."
    )
    (tally,) = (block for block in found.opening if isinstance(block, Tally))
    gaps = compared.table("changes").filter(effect="gap", exploratory=False)
    assert sum(count.amount for count in tally.counts) == gaps.height


def test_the_page_is_whole_and_carries_its_tables(compared: Run) -> None:
    source = format_report(compared, "html")
    page = Page(source)
    assert page.open == []
    assert "Do the gaps of <b>wide.csv differ" in page.text
    assert "<b>wide" not in source
    for table in ("standings", "leaderboard", "changes"):
        assert f'data-download="{table}"' in source


def test_where_the_runs_came_from_can_be_repeated(found: Report) -> None:
    facts = {fact.name: fact.value for fact in found.facts}
    assert facts["Command to repeat"].startswith("evenhand compare ")
    assert "even.csv" in facts["Run 1"]
    assert "Run 2 was made by" in facts


def test_markdown_asks_and_answers(compared: Run) -> None:
    plain = format_report(compared, "md")
    assert plain.startswith("# Do the gaps of ")
    assert "narrowest over all: even.csv" in plain


def test_a_comparison_without_a_gap_says_so(tmp_path: Path) -> None:
    alone = {"women": 0.3}
    a, b = (run(tmp_path, label, alone, seed=seed, baseline=None) for seed, label in enumerate("ab"))
    page = Page(format_report(compare(a, b, out=tmp_path / "c"), "html"))
    assert page.open == []
    assert "Nothing could be compared: no gap of these runs can be tested" in page.text
