"""Writes ``docs/reference/command-line.md`` from the commands' own help; a test fails when it is stale."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer
from typer.cli import get_docs_for_click

from evenhand.cli.app import app

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "command-line.md"


def page() -> str:
    """The page as it should be."""
    command = typer.main.get_command(app)
    _tell_whole(command)
    text = get_docs_for_click(obj=command, ctx=typer.Context(command), name="evenhand", title="Command line")
    return "\n".join(line.rstrip() for line in text.splitlines()).strip() + "\n"


def _tell_whole(command: Any) -> None:
    """Let every list of commands print first sentences to their end: on a page there is room."""
    for one in getattr(command, "commands", {}).values():
        one.short_help = one.get_short_help_str(limit=1000)
        _tell_whole(one)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
