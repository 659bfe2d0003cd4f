"""Where the commands print: results to standard output, everything else to standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from evenhand.core.printable import printable

if TYPE_CHECKING:
    from evenhand.audits.run_setup import RunPlan


class _Console(Console):
    """A console on which the names of files, models and groups are text, whatever characters they hold."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))


output = _Console()
errors = _Console(stderr=True)


def print_lines(*lines: str, console: Console = output) -> None:
    """Print lines as they are, which no width breaks."""
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True, markup=False)


def print_path(path: Path, before: str = "", after: str = "") -> None:
    """Print a line with a path in it."""
    print_lines(f"{before}{path}{after}")


def print_warning(message: str) -> None:
    """Print a warning."""
    print_message("note", "yellow", message)


def print_message(word: str, style: str, message: str) -> None:
    """Print a message to standard error, on one line."""
    errors.print(Text.assemble((word, style), ": ", message.replace("\n", "\\n")), soft_wrap=True)


def print_plan(plan: RunPlan) -> None:
    """Say what is about to be done."""
    # Without line ends: the name of a file must not look like a line of ours.
    title, *lines = (line.replace("\n", "\\n") for line in (plan.title, *plan.lines))
    errors.print(Text(title, style="bold"))
    for line in lines:
        errors.print(Text(f"  {line}"), soft_wrap=True)


class TerminalProgress:
    """Progress bars on a terminal, nothing in a pipe."""

    @contextmanager
    def step(self, label: str, total: int | None) -> Iterator[Callable[[int], None]]:
        """A bar for one step."""
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("  {task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
        )
        with Progress(*columns, console=errors, disable=not errors.is_terminal) as progress:
            task = progress.add_task(label, total=total)

            yield partial(progress.advance, task)
            if total is None:
                progress.update(task, total=1, completed=1)
