"""``evenhand merge``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evenhand.audits.options import MergeOptions
from evenhand.cli.commands import Argument, takes


@takes(MergeOptions, Argument("runs", list[Path], "Every part of a run made with --shard I/N."))
def command(runs: list[Path], *, dry_run: bool, **options: Any) -> None:
    """Join the parts of an audit made with `--shard I/N` into the one run they are parts of."""
    from evenhand.audits.merge import prepare
    from evenhand.cli.run_command import run_job

    run_job(prepare(*runs, **options), dry_run=dry_run)
