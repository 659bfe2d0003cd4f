"""``evenhand audit``."""

from __future__ import annotations

from typing import Any

from evenhand.cli.commands import Argument, takes
from evenhand.run_options import AuditOptions


@takes(
    AuditOptions,
    Argument(
        "model",
        str | None,
        "builtin, builtin:masked, a folder, a Hub id, a .gguf file, endpoint:URL#MODEL, replay:FILE.",
        None,
        "models",
    ),
)
def command(model: str | None, *, dry_run: bool, **options: Any) -> None:
    """Let a model continue prompts about groups; score, compare and report what it writes."""
    from evenhand.audits.audit import prepare
    from evenhand.cli.run_command import run_job

    run_job(prepare(model, **options), dry_run=dry_run)
