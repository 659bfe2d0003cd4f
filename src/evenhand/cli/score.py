"""``evenhand score``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evenhand.cli.commands import Argument, takes
from evenhand.run_options import ScoreOptions


@takes(
    ScoreOptions,
    Argument(
        "file",
        Path | None,
        "JSONL, CSV, TSV, Parquet, lm-eval samples, an Inspect log. Without FILE: an example.",
        None,
    ),
)
def command(file: Path | None, *, dry_run: bool, **options: Any) -> None:
    """Score and compare texts you already have."""
    from evenhand.audits.score import prepare
    from evenhand.cli.run_command import run_job

    run_job(prepare(file, **options), dry_run=dry_run)
