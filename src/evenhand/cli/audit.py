"""``evenhand audit``."""

from __future__ import annotations

from typing import Any

from evenhand.api.run_options import AuditOptions
from evenhand.cli.commands import Argument, takes


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
    from evenhand.api.audit import prepare
    from evenhand.cli.ending import carry_out

    carry_out(prepare(model, **options), dry_run=dry_run)
