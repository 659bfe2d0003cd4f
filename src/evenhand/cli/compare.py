"""``evenhand compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli import options as o


def command(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, two or more; the first is the reference.")],
    level: o.Level = None,
    correction: o.Correction = None,
    out: o.Out = None,
    config: o.Config = None,
    dry_run: o.DryRun = False,
    fresh: o.Fresh = False,
) -> None:
    """Set models or mitigations side by side, paired by prompt: gaps of gaps and a leaderboard with ties."""
    from evenhand.api.associate import Associating
    from evenhand.api.compare import prepare
    from evenhand.cli.ending import carry_out
    from evenhand.report.associate.draw import associate_summary
    from evenhand.report.compare.draw import compare_summary

    prepared = prepare(
        *runs,
        level=level,
        correction=correction,
        out=out,
        config=config,
        fresh=fresh,
        command=o.command_line(),
    )
    is_mixed = isinstance(prepared, Associating)
    carry_out(prepared, dry_run=dry_run, found=associate_summary if is_mixed else compare_summary)
