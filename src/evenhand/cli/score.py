"""``evenhand score``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evenhand.api.run_options import ScoreOptions
from evenhand.cli.commands import Argument, takes


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
    from evenhand.api.score import prepare
    from evenhand.cli.ending import carry_out

    carry_out(prepare(file, **options), dry_run=dry_run)
