"""``evenhand compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evenhand.audits.result_options import CompareOptions
from evenhand.cli.commands import Argument, takes


@takes(CompareOptions, Argument("runs", list[Path], "Run folders, two or more; the first is the reference."))
def command(runs: list[Path], *, dry_run: bool, **options: Any) -> None:
    """Set models or mitigations side by side, paired by prompt: gaps of gaps and a leaderboard with ties."""
    from evenhand.audits.compare import prepare
    from evenhand.cli.run_command import run_job

    run_job(prepare(*runs, **options), dry_run=dry_run)
