"""``evenhand probe``."""

from __future__ import annotations

from typing import Any

from evenhand.cli.commands import Argument, takes
from evenhand.probes.options import ProbeOptions


@takes(
    ProbeOptions,
    Argument(
        "classifier",
        str,
        "An emotion classifier: a Hub id or folder, replay:FILE with predictions, endpoint:URL, or the "
        "embedded one (default emotion).",
        "emotion",
    ),
)
def command(classifier: str, *, dry_run: bool, **options: Any) -> None:
    """Compare what an emotion classifier finds in the same sentence for different groups."""
    from evenhand.cli.run_command import run_job
    from evenhand.probes.probe import prepare

    run_job(prepare(classifier, **options), dry_run=dry_run)
