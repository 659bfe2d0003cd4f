"""Commands inside sentences and tables: nobody runs them, but each names a command and options that exist."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from tests.docs.pages import name_of, pages
from typer.main import get_command

from evenhand.cli.app import app

START = "evenhand "
COMMANDS: Any = get_command(app)


def spans(path: Path) -> Iterator[str]:
    """What a page prints as code inside of text, where it is a command of ours."""
    for token in MarkdownIt().enable("table").parse(path.read_text(encoding="utf-8")):
        for child in token.children or ():
            if child.type == "code_inline" and child.content.startswith(START):
                yield child.content


def parse(words: list[str]) -> None:
    """An error where a command, or an option of it, does not exist; values may be left out."""
    if words and words[-1].startswith("--"):
        words = [*words, "VALUE"]
    command = COMMANDS
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        name, *words = words
        command = command.commands[name]
    command.make_parser(command.context_class(command)).parse_args(args=words)


WITH_SPANS = [path for path in pages() if any(spans(path))]


@pytest.mark.parametrize("page", WITH_SPANS, ids=name_of)
def test_commands_inside_of_text_exist(page: Path) -> None:
    for span in spans(page):
        try:
            parse(shlex.split(span.replace("...", ""))[1:])
        except Exception as error:
            pytest.fail(f"{name_of(page)}: `{span}`: {error!r}")


def test_the_readme_has_a_table_of_commands() -> None:
    assert len(list(spans(pages()[0]))) > 12


@pytest.mark.parametrize("words", [["audti"], ["audit", "--sampels", "3"], ["annotate", "inti"]])
def test_a_misspelt_command_is_seen(words: list[str]) -> None:
    with pytest.raises(Exception, match=words[-1] if len(words) < 3 else "sampels"):
        parse(words)
