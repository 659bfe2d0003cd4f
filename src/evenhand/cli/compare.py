"""``evenhand compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evenhand.audits.options import CompareOptions
from evenhand.cli.commands import Argument, takes


@takes(CompareOptions, Argument("runs", list[Path], "Run folders, two or more; the first is the reference."))
def command(runs: list[Path], *, dry_run: bool, **options: Any) -> None:
    """Set models or mitigations side by side, paired by prompt: gaps of gaps and a leaderboard with ties."""
    from evenhand.audits.association import COMMAND
    from evenhand.audits.compare import prepare
    from evenhand.audits.report.association_report import associate_summary
    from evenhand.audits.report.compare_report import compare_summary
    from evenhand.cli.run_command import run_job

    prepared = prepare(*runs, **options)
    is_mixed = prepared.identity["command"] == COMMAND
    run_job(prepared, dry_run=dry_run, found=associate_summary if is_mixed else compare_summary)
