"""What names of files, columns and groups may do to a terminal: nothing."""

from __future__ import annotations

import ast
import io
import logging
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text

import evenhand.cli
from evenhand.cli import console
from evenhand.core.printable import PrintableFormatter

EVIL = "[/x]\x1b]0;title\x9b31m\u202eb\u2066c\udcffd"
SHOWN = "[/x]\ufffd]0;title\ufffd31m\ufffdb\ufffdc\ufffdd"


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What a terminal is given on standard error."""
    stream = io.StringIO()
    shown = console._Console(file=stream, force_terminal=True, width=200, color_system=None)
    monkeypatch.setattr(console, "errors", shown)
    return stream


def test_renderables_hold_text_alone(terminal: io.StringIO) -> None:
    table = Table(title=Text(EVIL))
    table.add_column(Text(EVIL))
    table.add_row(Text(EVIL))
    for each in (EVIL, Text(EVIL), table, Markdown(EVIL)):
        console.errors.print(each, markup=False, soft_wrap=True)
    assert terminal.getvalue().count(SHOWN) == 4
    assert terminal.getvalue().count(SHOWN[:14]) == 6
    assert not set(terminal.getvalue()) & set("\x1b\x9b\u202e\u2066\udcff")


def test_a_step_is_called_what_it_is_called(terminal: io.StringIO) -> None:
    with console.TerminalProgress().step(f"scoring {EVIL}", 1) as advance:
        advance(1)
    assert "scoring [/x]\ufffd]0;title" in terminal.getvalue()
    assert "\x1b]0" not in terminal.getvalue()


def test_a_message_is_one_line(terminal: io.StringIO) -> None:
    console.print_warning(f"the group {EVIL}\nerror: none")
    assert terminal.getvalue() == f"note: the group {SHOWN}\\nerror: none\n"


def test_log_messages_too() -> None:
    record = logging.LogRecord("x", logging.WARNING, "x", 1, "%s is damaged", (EVIL,), None)
    assert PrintableFormatter("%(message)s").format(record) == f"{SHOWN} is damaged"


def test_commands_show_names_of_files_and_groups_as_text(
    evenhand: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    name = "t\x1b[2J\u202e\nx.csv"
    lines = [f"axis\x1b[2J,text\nwomen\x1b]0;x,A {mood} day.\n" for mood in ("happy", "sad")]
    (tmp_path / name).write_text("".join(lines))
    for arguments in (
        ("score", name, "--group", "axis\x1b[2J", "--metrics", "sentiment", "--out", "run\x1b[2J"),
        ("score", name, "--group", "axis\x1b[2J", "--metrics", "sentiment\x1b[2J"),
        ("score", name, "--group", "none\x1b[2J"),
        ("score", f"{name}\x9b", "--group", "x"),
        ("report", "run\x1b[2J"),
        ("compare", "run\x1b[2J", "run\x1b[2J"),
        ("gate", "run\x1b[2J", "--max", "sentiment axis\x1b[2J 0.1"),
        ("annotate", "init", "study\x1b[2J", "--from", name, "--group", "axis\x1b[2J", "--items", 1),
        ("annotate", "status", "study\x1b[2J"),
        ("audit", "stub\x1b[2J"),
        ("audit", "stub", "extra\x1b[2J"),
    ):
        done = evenhand(*arguments)
        said = done.stdout + done.stderr
        assert said, arguments
        assert not set(said) & set("\x1b\x9b\u202e"), arguments


def test_only_one_module_makes_consoles() -> None:
    for path in Path(str(evenhand.cli.__file__)).parent.glob("*.py"):
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        makes = any(ast.unparse(call.func).endswith("Console") for call in calls)
        assert makes == (path.name == "console.py"), path.name
