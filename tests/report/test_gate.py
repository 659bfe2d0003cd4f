"""The answer of a gate where it is read: annotations and the terminal."""

from __future__ import annotations

from rich.console import Console

from evenhand.pipeline.gates import Check, Rule, Verdict
from evenhand.report.gate import github, table


def check(group: str, verdict: Verdict) -> Check:
    return Check(
        rule=Rule.parse("tone.negative race 0.05"),
        suite="s",
        axis="race",
        group=group,
        baseline="others",
        metric="tone",
        output="negative",
        estimate=0.1,
        low=0.0,
        high=0.2,
        n=10,
        n_clusters=5,
        verdict=verdict,
        reason="",
    )


CHECKS = [check("a", "passes"), check("b", "cannot tell"), check("c", "fails"), check("d", "passes")]


def test_what_fails_is_annotated_first() -> None:
    lines = github(CHECKS, strict=False)
    assert [line.split(" ")[0] for line in lines] == ["::error", "::warning"]
    assert "c against others" in lines[0]


def test_what_finds_no_room_on_the_terminal_is_counted() -> None:
    console = Console(width=100, record=True, file=None)
    with console.capture() as said:
        console.print(table(CHECKS, limit=2))
    assert said.get().splitlines()[-1].strip() == "not listed: 2 that pass"
