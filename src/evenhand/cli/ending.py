"""How a run ends on the terminal: verdict, table, notes, the path of the report, the exit code."""

from __future__ import annotations

import typer

from evenhand.cli.console import output, warn
from evenhand.report.terminal import summary
from evenhand.store.run import Run

PARTIAL = 3


def end(run: Run) -> None:
    """Print what was found, and exit with 3 where a part of the work failed."""
    output.print(summary(run))
    for warning in run.manifest["warnings"]:
        warn(warning)
    output.print(f"report: {run.path / 'report.html'}", highlight=False, soft_wrap=True, markup=False)
    failed = sum(int(stage.get("failed") or 0) for stage in run.manifest["stages"].values())
    if failed:
        warn(f"{failed} items failed; they are counted by reason in the report and in exclusions.parquet")
        raise typer.Exit(PARTIAL)
