"""Where the commands print: results to standard output, everything else to standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.text import Text

if TYPE_CHECKING:
    from evenhand.api.parts import Plan

output = Console()
errors = Console(stderr=True)


def print_path(path: Path, before: str = "", after: str = "") -> None:
    """Print a line with a path in it, which no width breaks."""
    output.print(f"{before}{path}{after}", highlight=False, soft_wrap=True, markup=False)


def warn(message: str) -> None:
    """Print a warning."""
    say("note", "yellow", message)


def say(word: str, style: str, message: str) -> None:
    """Print a message to standard error as text; control characters are shown, not obeyed."""
    visible = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in message)
    errors.print(Text.assemble((word, style), ": ", visible), soft_wrap=True)


def show_plan(plan: Plan) -> None:
    """Say what is about to be done."""
    errors.print(f"[bold]{escape(plan.title)}[/]", highlight=False)
    for line in plan.lines:
        errors.print("  " + escape(line), highlight=False, soft_wrap=True)


class TerminalProgress:
    """Progress bars on a terminal, nothing in a pipe."""

    @contextmanager
    def step(self, label: str, total: int | None) -> Iterator[Callable[[int], None]]:
        """A bar for one step."""
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("  {task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
        )
        with Progress(*columns, console=errors, disable=not errors.is_terminal) as progress:
            task = progress.add_task(label, total=total)

            def advance(done: int) -> None:
                progress.advance(task, done)

            yield advance
            if total is None:
                progress.update(task, total=1, completed=1)
