"""A command follows from declared options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import pytest
import typer
from typer.testing import CliRunner

from evenhand.cli.commands import Argument, takes
from evenhand.core.options import Option


class Options(TypedDict, total=False):
    level: Annotated[float, Option("Level of intervals.", default=0.95, panel="Measuring")]
    names: Annotated[str | Sequence[str] | None, Option("Names; repeatable.", flag="name")]
    files: Annotated[Path | str | Sequence[Path | str] | None, Option("Files; repeatable.")]
    labels: Annotated[Mapping[str, str], Option("THEIRS=OURS; repeatable.", default={})]
    mask: Annotated[Literal["none", "paper"], Option("none or paper.", default="paper")]
    fresh: Annotated[bool, Option("Start again.")]
    strict: Annotated[bool, Option("Fail where the run is inconclusive.", has_negation=True)]
    least: Annotated[int, Option("Ratings a text needs.", is_required=True)]
    callbacks: Annotated[Sequence[object], Option("Python alone.", default=(), has_flag=False)]


CALLS: list[tuple[object, ...]] = []
app = typer.Typer()


@app.command()
@takes(Options, Argument("model", str | None, "A model.", None))
def command(model: str | None, *, dry_run: bool, **options: Any) -> None:
    """Measure."""
    CALLS.append((model, dry_run, options))


@pytest.mark.parametrize(
    ("words", "call"),
    [
        (["--least", "0"], (None, False, {"least": 0})),
        (["gpt2", "--least", "1", "--fresh", "--dry-run"], ("gpt2", True, {"least": 1, "fresh": True})),
        (["--least", "1", "--strict"], (None, False, {"least": 1, "strict": True})),
        (["--least", "1", "--no-strict"], (None, False, {"least": 1, "strict": False})),
        (["--least", "1", "--name", "a", "--name", "b"], (None, False, {"least": 1, "names": ["a", "b"]})),
        (["--least", "1", "--files", "a"], (None, False, {"least": 1, "files": [Path("a")]})),
        (["--least", "1", "--labels", "a=b"], (None, False, {"least": 1, "labels": ["a=b"]})),
        (["--least", "1", "--mask", "none"], (None, False, {"least": 1, "mask": "none"})),
        (["--least", "1", "--level", "0.9"], (None, False, {"least": 1, "level": 0.9})),
    ],
)
def test_what_is_given_reaches_the_function_and_nothing_else(
    words: list[str], call: tuple[object, ...]
) -> None:
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert CALLS.pop() == call


def test_the_help_has_defaults_and_panels() -> None:
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"}).output
    assert "Measuring" in shown
    assert "Level of intervals (default 0.95)." in shown
    assert "callbacks" not in shown


def test_a_required_option_is_asked_for() -> None:
    assert CliRunner().invoke(app, []).exit_code == 2
