"""``evenhand report``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evenhand.audits.options import ReportOptions
from evenhand.cli.commands import Argument, takes
from evenhand.cli.console import print_path


@takes(ReportOptions, Argument("run", Path, "A run folder."))
def command(run: Path, **options: Any) -> None:
    """Write the report of a run again."""
    from evenhand.report.render_run import render

    for path in render(run, **options).values():
        print_path(path)
