"""Console output of the commands: results to standard output, everything else to standard error.

A run shows its plan before it starts and its measurements afterwards, and ends with the exit code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from evenhand.cli.entry import INTERRUPTED, PARTIAL
from evenhand.core import protocols
from evenhand.core.printable import printable

if TYPE_CHECKING:
    from evenhand.audits.run_setup import RunPlan
    from evenhand.store.run import Run

T = TypeVar("T", covariant=True)
_SHOWN = 20


class _Console(Console):
    """A console that prints names of files, models and groups literally, whatever characters they contain."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))


output = _Console()
errors = _Console(stderr=True)


def print_lines(*lines: str, console: Console = output) -> None:
    """Print lines unchanged, without wrapping."""
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True, markup=False)


def print_path(path: Path, before: str = "", after: str = "") -> None:
    """Print a line that contains a path."""
    print_lines(f"{before}{path}{after}")


def print_warning(message: str) -> None:
    """Print a warning."""
    print_message("note", "yellow", message)


def print_message(word: str, style: str, message: str) -> None:
    """Print a message to standard error, on one line."""
    errors.print(Text.assemble((word, style), ": ", message.replace("\n", "\\n")), soft_wrap=True)


def print_plan(plan: RunPlan) -> None:
    """Print what is about to be done."""
    # Without line ends, so that a file name cannot look like one of our lines.
    title, *lines = (line.replace("\n", "\\n") for line in (plan.title, *plan.lines))
    errors.print(Text(title, style="bold"))
    for line in lines:
        errors.print(Text(f"  {line}"), soft_wrap=True)


class TerminalProgress:
    """Progress bars on a terminal; none if output is piped."""

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


class TerminalJob(Protocol[T]):
    """A job that is ready to run."""

    def plan(self) -> RunPlan:
        """What the job will do."""

    def run(self, progress: protocols.Progress) -> T:
        """Run the job."""


def run_job(job: TerminalJob[Run], *, dry_run: bool) -> None:
    """Show the plan, run the job, and print the summary."""
    run = run_to_end(job, dry_run=dry_run)
    if run is None:
        return
    print_summary(run)
    failed = sum(int(stage.get("failed") or 0) for stage in run.manifest["stages"].values())
    if failed:
        print_warning(
            f"{failed:,} items failed; they are counted by reason in the report and in exclusions.parquet"
        )
        raise typer.Exit(PARTIAL)


def run_to_end(job: TerminalJob[T], *, dry_run: bool, unit: str = "shards") -> T | None:
    """Show the plan and run the job, which Ctrl-C can stop; None if only the plan was shown."""
    print_plan(job.plan())
    if dry_run:
        return None
    try:
        return job.run(TerminalProgress())
    except KeyboardInterrupt:
        print_warning(f"stopped. Finished {unit} are kept: the same command resumes from here.")
        raise typer.Exit(INTERRUPTED) from None


def print_summary(run: Run) -> None:
    """Print a run's results, its warnings and the location of its report."""
    from evenhand.report.render_run import summarise_run

    output.print(summarise_run(run))
    for warning in run.manifest["warnings"]:
        print_warning(warning)
    print_path(run.path / "report.html", "report: ")


def end_with_problems(problems: Sequence[object], rest: str) -> None:
    """Print the problems, the first one in full, and exit as partly done; do nothing if there are none."""
    for problem in problems[:_SHOWN]:
        print_warning(str(problem))
    if problems:
        noun = "problem" if len(problems) == 1 else "problems"
        print_warning(f"{len(problems):,} {noun}; {rest}")
        raise typer.Exit(PARTIAL)
