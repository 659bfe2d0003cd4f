"""A run on the terminal: the plan before it, what was found after it, the exit code."""

from __future__ import annotations

from typing import Protocol, TypeVar

import typer

from evenhand.audits.run_setup import RunPlan
from evenhand.cli.console import TerminalProgress, output, print_path, print_plan, print_warning
from evenhand.cli.entry import INTERRUPTED, PARTIAL
from evenhand.core.protocols import Progress
from evenhand.report.render_run import summarise_run
from evenhand.store.run import Run

T = TypeVar("T", covariant=True)


class TerminalJob(Protocol[T]):
    """Work that is ready to start."""

    def plan(self) -> RunPlan:
        """What will be done."""
        ...

    def run(self, progress: Progress) -> T:
        """Do it."""
        ...


def run_job(prepared: TerminalJob[Run], *, dry_run: bool) -> None:
    """Show the plan, do the work, and print the summary of the run."""
    if run := finished(prepared, dry_run=dry_run):
        _end(run)


def finished(prepared: TerminalJob[T], *, dry_run: bool, kept: str = "shards") -> T | None:
    """Show the plan and do the work, which Ctrl-C may stop; None for a plan alone."""
    print_plan(prepared.plan())
    if dry_run:
        return None
    try:
        return prepared.run(TerminalProgress())
    except KeyboardInterrupt:
        print_warning(f"stopped. Finished {kept} are kept: the same command goes on from here.")
        raise typer.Exit(INTERRUPTED) from None


def _end(run: Run) -> None:
    output.print(summarise_run(run))
    for warning in run.manifest["warnings"]:
        print_warning(warning)
    print_path(run.path / "report.html", "report: ")
    failed = sum(int(stage.get("failed") or 0) for stage in run.manifest["stages"].values())
    if failed:
        print_warning(
            f"{failed:,} items failed; they are counted by reason in the report and in exclusions.parquet"
        )
        raise typer.Exit(PARTIAL)
