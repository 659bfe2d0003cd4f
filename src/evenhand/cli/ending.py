"""A run on the terminal: the plan before it, what was found after it, the exit code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import typer
from rich.console import RenderableType

from evenhand.api.parts import Plan
from evenhand.cli.console import TerminalProgress, output, show_plan, warn
from evenhand.cli.entry import INTERRUPTED, PARTIAL
from evenhand.core.protocols import Progress
from evenhand.report.terminal import summary
from evenhand.store.run import Run


class Prepared(Protocol):
    """A run that is ready to start."""

    def plan(self) -> Plan:
        """What will be done."""
        ...

    def run(self, progress: Progress) -> Run:
        """Do it."""
        ...


def carry_out(
    prepared: Prepared,
    *,
    dry_run: bool,
    found: Callable[[Run], RenderableType] = summary,
) -> None:
    """Say what will be done, do it, and print what was found."""
    show_plan(prepared.plan())
    if dry_run:
        return
    with resumable():
        run = prepared.run(TerminalProgress())
    _end(run, found)


@contextmanager
def resumable(kept: str = "shards") -> Iterator[None]:
    """Work that Ctrl-C may stop: what is finished is kept, and the user is told."""
    try:
        yield
    except KeyboardInterrupt:
        warn(f"stopped. Finished {kept} are kept: the same command goes on from here.")
        raise typer.Exit(INTERRUPTED) from None


def _end(run: Run, found: Callable[[Run], RenderableType]) -> None:
    output.print(found(run))
    for warning in run.manifest["warnings"]:
        warn(warning)
    output.print(f"report: {run.path / 'report.html'}", highlight=False, soft_wrap=True, markup=False)
    failed = sum(int(stage.get("failed") or 0) for stage in run.manifest["stages"].values())
    if failed:
        warn(f"{failed:,} items failed; they are counted by reason in the report and in exclusions.parquet")
        raise typer.Exit(PARTIAL)
