"""The answer of a gate where it is read: annotations and the terminal."""

from __future__ import annotations

from rich.console import Console

from evenhand.audits.gate import GateCheck, GateRule, GateVerdict
from evenhand.audits.report.gate_formats import to_annotations, to_junit, to_terminal_table


def check(group: str, verdict: GateVerdict, *, is_share: bool = True) -> GateCheck:
    return GateCheck(
        rule=GateRule.parse("tone.negative race 0.05"),
        suite="s",
        axis="race",
        group=group,
        baseline="others",
        metric="tone",
        output="negative",
        estimate=0.1,
        low=-0.0004,
        high=0.2,
        n=10,
        n_clusters=5,
        verdict=verdict,
        reason="",
        is_share=is_share,
    )


CHECKS = [check("a", "passes"), check("b", "inconclusive"), check("c", "fails"), check("d", "passes")]


def test_what_fails_is_annotated_first() -> None:
    lines = to_annotations(CHECKS, strict=False)
    assert [line.split(" ")[0] for line in lines] == ["::error", "::warning"]
    assert "c against others" in lines[0]


def test_what_finds_no_room_on_the_terminal_is_counted() -> None:
    console = Console(width=100, record=True, file=None)
    with console.capture() as said:
        console.print(to_terminal_table(CHECKS, limit=2))
    assert said.get().splitlines()[-1].strip() == "not listed: 2 pass"


def test_gaps_of_shares_are_in_points_for_people_and_as_they_are_for_tools() -> None:
    (line,) = to_annotations([check("c", "fails")], strict=False)
    assert line.endswith(
        "::tone.negative race: c against others, at most 5 points (0.05): gap +10.0 points (-0.04 to +20.0; "
        "10 texts, 5 clusters)"
    )
    (line,) = to_annotations([check("c", "fails", is_share=False)], strict=False)
    assert line.endswith("at most 0.05: gap +0.100 (0.000 to +0.200; 10 texts, 5 clusters)")
    xml = to_junit([check("c", "fails")], strict=False, name="run")
    assert 'name="tone.negative race: c against others, at most 0.05"' in xml
    assert 'message="fails: gap +0.1000 (-0.0004 to +0.2000; 10 texts, 5 clusters)"' in xml
