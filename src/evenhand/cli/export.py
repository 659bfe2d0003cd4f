"""``evenhand export``."""

from __future__ import annotations

from pathlib import Path

from evenhand.cli.commands import Argument, takes
from evenhand.cli.console import print_path
from evenhand.core.options import NoOptions


@takes(
    NoOptions,
    Argument("model", str, "builtin or builtin:masked."),
    Argument("folder", Path, "A new or empty folder."),
)
def command(model: str, folder: Path) -> None:
    """Write an embedded model in the Hub's layout, for transformers and other tools."""
    from evenhand.models.export import export

    print_path(export(model, folder), "wrote ")
