"""A run on the terminal: the plan before it, what it measured after it, the exit code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

import typer

from evenhand.cli.console import TerminalProgress, output, print_path, print_plan, print_warning
from evenhand.cli.entry import INTERRUPTED, PARTIAL
from evenhand.core.protocols import Progress

if TYPE_CHECKING:
    from evenhand.audits.run_setup import RunPlan
    from evenhand.store.run import Run

T = TypeVar("T", covariant=True)
_SHOWN = 20


class TerminalJob(Protocol[T]):
    """Work that is ready to start."""

    def plan(self) -> RunPlan:
        """What will be done."""

    def run(self, progress: Progress) -> T:
        """Do it."""


def run_job(job: TerminalJob[Run], *, dry_run: bool) -> None:
    """Show the plan, do the work, and print the summary."""
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
    """Show the plan and do the work, which Ctrl-C may stop; None for a plan alone."""
    print_plan(job.plan())
    if dry_run:
        return None
    try:
        return job.run(TerminalProgress())
    except KeyboardInterrupt:
        print_warning(f"stopped. Finished {unit} are kept: the same command goes on from here.")
        raise typer.Exit(INTERRUPTED) from None


def print_summary(run: Run) -> None:
    """Print what a run measured, its warnings and where its report is."""
    from evenhand.report.render_run import summarise_run

    output.print(summarise_run(run))
    for warning in run.manifest["warnings"]:
        print_warning(warning)
    print_path(run.path / "report.html", "report: ")


def end_with_problems(problems: Sequence[object], rest: str) -> None:
    """Print problems, the first of them in full, and end the command as done in part; nothing without any."""
    for problem in problems[:_SHOWN]:
        print_warning(str(problem))
    if problems:
        print_warning(f"{len(problems):,} problems; {rest}")
        raise typer.Exit(PARTIAL)
