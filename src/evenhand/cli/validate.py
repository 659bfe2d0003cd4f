"""``evenhand validate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from evenhand.annotate.options import ValidateOptions
from evenhand.cli.commands import Argument, takes
from evenhand.core.options import Option


class _Options(ValidateOptions, total=False):
    human: Annotated[
        Path,
        Option(
            "What people said: a study folder, an export, or a table of texts and labels (JSONL, CSV, "
            "TSV, Parquet; JSON of Label Studio or Argilla).",
            is_required=True,
        ),
    ]


@takes(
    _Options,
    Argument(
        "metric",
        str,
        "A metric: sentiment, regard=ORG/NAME@REV .. (see `evenhand list metrics`).",
        complete="metrics",
    ),
)
def command(metric: str, *, human: Path, dry_run: bool, **options: Any) -> None:
    """Set a metric against people: rank correlation, accuracy, precision, recall, F1, and the best cut."""
    from evenhand.annotate.validate import prepare
    from evenhand.cli.run_command import run_job

    run_job(prepare(metric, human, **options), dry_run=dry_run)
