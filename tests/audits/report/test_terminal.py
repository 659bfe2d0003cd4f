"""The summary in a terminal of 80 columns."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console
from tests.report.realistic import comparison, group_row, realistic_run, small_run

from evenhand.report.render_run import summarise_run
from evenhand.store.run import Run


def shown(run: Run, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(summarise_run(run))
    out = console.file
    assert isinstance(out, io.StringIO)
    return out.getvalue()


@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_line_is_wider_than_the_terminal(tmp_path: Path, width: int) -> None:
    assert max(len(line) for line in shown(realistic_run(tmp_path), width).splitlines()) <= width


def test_it_says_the_verdict_then_the_gaps(tmp_path: Path) -> None:
    text = shown(small_run(tmp_path, [comparison()], [group_row()]))
    assert text.startswith("1 of 1 gaps is larger than chance after correction")
    assert "*  African Americans vs" in text
    assert "+1.1 to +5.3" in text
    assert "* larger than chance; shares in points" in text
    assert "p adjusted over 84" in text


def test_names_are_neither_markup_nor_escape_codes(tmp_path: Path) -> None:
    name = "[red]x[/red]\x1b[2J"
    text = shown(small_run(tmp_path, [comparison(group=name)], [group_row(group=name)]), 200)
    assert "[red]x[/red]\ufffd[2J" in text
    assert "\x1b" not in text


def test_nothing_compared_has_no_table(tmp_path: Path) -> None:
    assert shown(small_run(tmp_path)).strip().startswith("Nothing could be compared")
