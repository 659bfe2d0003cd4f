"""The page of a comparison: what a line says, where it is drawn, which runs are tied."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.audits.report.test_html import Page
from tests.audits.texts import run

from evenhand import compare
from evenhand.audits.report.compare_leaderboard import RunStanding, build_leaderboards, format_ranks
from evenhand.audits.report.compare_lines import build_lines
from evenhand.audits.report.compare_page import CompareReport, build_report
from evenhand.audits.report.compare_report import compare_html, compare_markdown
from evenhand.audits.report.measures import Measure, MeasureKey
from evenhand.core.digests import Json
from evenhand.store.run import Run

SHARE = Measure("tone", "negative", "share", "negative", "", "", 1.0, primary=True)
UNBOUNDED = Measure("length", "words", "mean", "words", "", "more words", None, primary=True)
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
    assert (line.before, line.after, line.full_change) == ("+10.0", "+30.0", "+20.0 points")
    assert line.claim == "women against men: wider (tone, negative) under new"
    assert line.tone == "higher"


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"widens": -0.2, "widens_low": -0.3, "widens_high": -0.1}, "narrower"),
        ({"widens": 0.01, "widens_low": -0.1, "widens_high": 0.1}, "moved"),
        ({"p_adjusted": 0.2}, "cannot tell"),
        ({"p_adjusted": None}, "not testable"),
    ],
)
def test_a_change_of_size_decides_the_word(changes: dict[str, Json], verdict: str) -> None:
    assert build_lines([change(**changes)], KNOWN, "gap")[0].verdict == verdict


def test_both_ends_are_drawn_on_one_scale_with_zero() -> None:
    first, second = build_lines(
        [change(), change(group="elders", reference_value=-0.1, run_value=0.1)], KNOWN, "gap"
    )
    # From -0.1 to 0.3 of the range, 3 to 97 percent: 0 is a quarter of the way, at 3 + 94 / 4.
    assert first.move is not None
    assert second.move is not None
    assert {first.move.zero, second.move.zero} == {26.5}
    by_name = {line.group: line.move for line in (first, second)}
    assert by_name["women"] is not None
    assert (by_name["women"].before, by_name["women"].after, by_name["women"].width) == (50.0, 97.0, 47.0)


def test_a_measure_without_a_range_never_stands_before_one_that_has_a_range() -> None:
    long = change(metric="length", output="words", estimate=40.0, run_value=50.0, reference_value=10.0)
    found = build_lines([long, change()], KNOWN, "gap")
    assert [line.metric for line in found] == ["tone", "length"]
    assert found[1].move is None


def test_a_gap_that_changed_its_sign_is_said_to_have() -> None:
    (line,) = build_lines([change(reference_value=-0.1)], KNOWN, "gap")
    assert line.claim == "women against men: wider and the other way round (tone, negative) under new"


def test_an_undecided_change_says_what_it_leaves_open() -> None:
    (line,) = build_lines([change(p_adjusted=0.3, low=-0.1)], KNOWN, "gap")
    assert line.doubt == (
        "women against men, tone, negative, under new: the change may be anywhere from −10.0 to +30.0 "
        "points; it had to reach 5.0 points to be seen"
    )


def test_what_is_missing_leaves_no_unit_behind() -> None:
    empty = change(estimate=None, p_adjusted=None, run_value=None, null_reason="no_values")
    (line,) = build_lines([empty], KNOWN, "gap")
    assert (line.full_change, line.after, line.p, line.move) == ("", "", "", None)
    assert line.reason == "no values"


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
    (board,) = build_leaderboards(
        [place("a", 1, ["b"]), place("b", 1, ["a", "c"]), place("c", 2, ["b"])], KNOWN
    )
    assert [(item.rank, item.tone) for item in board.places] == [("1=", "lower"), ("1=", ""), ("2", "higher")]
    # Half of 0 to 0.2 is the middle of the chart; the bar reaches from edge to edge.
    assert (board.places[0].dot, board.places[0].bar) == (50.0, (2.0, 96.0))


def test_ranks_show_ties() -> None:
    assert format_ranks([1, 2, 2, None]) == ["1", "2=", "2=", ""]


def test_the_bar_of_a_standing_is_whole() -> None:
    pieces = RunStanding("1", "a", narrower=2, wider=1, tied=1, null=0).pieces
    assert pieces == [("lower", 0.0, 50.0), ("tied", 50.0, 25.0), ("higher", 75.0, 25.0)]


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("runs")
    even = run(folder, "even", {"women": 0.3, "men": 0.3})
    wide = run(folder, "<b>wide", {"women": 0.9, "men": 0.2}, seed=1)
    return compare(even, wide, out=folder / "c")


@pytest.fixture(scope="module")
def found(compared: Run) -> CompareReport:
    return build_report(compared)


def test_the_question_names_the_runs(found: CompareReport) -> None:
    assert found.question == "Do the gaps of <b>wide.csv differ from those of even.csv?"
    assert found.details == (
        "<b>wide.csv against even.csv, the reference, measured by sentiment. "
        "Every prompt is compared with itself."
    )
    assert sum(tally.amount for tally in found.tallies) == sum(not line.exploratory for line in found.gaps)


def test_the_page_is_whole_and_carries_its_tables(compared: Run) -> None:
    source = compare_html(compared)
    page = Page(source)
    assert page.open == []
    assert "Do the gaps of <b>wide.csv differ" in page.text
    assert "<b>wide" not in source
    for table in ("standings", "leaderboard", "changes"):
        assert f'data-download="{table}"' in source


def test_where_the_runs_came_from_can_be_repeated(found: CompareReport) -> None:
    facts = {fact.name: fact.value for fact in found.facts}
    assert facts["Command to repeat"].startswith("evenhand compare ")
    assert "even.csv" in facts["Run 1"]
    assert "Run 2 was made by" in facts


def test_markdown_asks_and_answers(compared: Run) -> None:
    plain = compare_markdown(compared)
    assert plain.startswith("# Do the gaps of ")
    assert "narrowest over all: even.csv" in plain


def test_a_comparison_without_a_gap_says_so(tmp_path: Path) -> None:
    alone = {"women": 0.3}
    a, b = (run(tmp_path, label, alone, seed=seed, baseline=None) for seed, label in enumerate("ab"))
    page = Page(compare_html(compare(a, b, out=tmp_path / "c")))
    assert page.open == []
    assert "Nothing could be compared: no gap of these runs can be tested" in page.text
