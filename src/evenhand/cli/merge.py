"""``evenhand merge``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli import options as o


def command(
    runs: Annotated[list[Path], typer.Argument(help="Every part of a run made with --shard I/N.")],
    out: o.Out = None,
    dry_run: o.DryRun = False,
    fresh: o.Fresh = False,
) -> None:
    """Join the parts of an audit made with `--shard I/N` into the one run they are parts of."""
    from evenhand.api.merge import prepare
    from evenhand.cli.ending import carry_out

    carry_out(prepare(*runs, out=out, fresh=fresh), dry_run=dry_run)
