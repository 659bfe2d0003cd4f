"""``evenhand probe``."""

from __future__ import annotations

from typing import Any

from evenhand.api.probe_options import ProbeOptions
from evenhand.cli.commands import Argument, takes


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
    from evenhand.api.probe import prepare
    from evenhand.cli.ending import carry_out
    from evenhand.report.probe.terminal import probe_summary

    carry_out(prepare(classifier, **options), dry_run=dry_run, found=probe_summary)
