"""``evenhand compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evenhand.api.result_options import CompareOptions
from evenhand.cli.commands import Argument, takes


@takes(CompareOptions, Argument("runs", list[Path], "Run folders, two or more; the first is the reference."))
def command(runs: list[Path], *, dry_run: bool, **options: Any) -> None:
    """Set models or mitigations side by side, paired by prompt: gaps of gaps and a leaderboard with ties."""
    from evenhand.api.associate import Associating
    from evenhand.api.compare import prepare
    from evenhand.cli.ending import carry_out
    from evenhand.report.associate.draw import associate_summary
    from evenhand.report.compare.draw import compare_summary

    prepared = prepare(*runs, **options)
    is_mixed = isinstance(prepared, Associating)
    carry_out(prepared, dry_run=dry_run, found=associate_summary if is_mixed else compare_summary)
