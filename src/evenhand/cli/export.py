"""``evenhand export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli.console import output


def command(
    model: Annotated[str, typer.Argument(help="builtin or builtin:masked.")],
    folder: Annotated[Path, typer.Argument(help="A new or empty folder.")],
) -> None:
    """Write an embedded model in the Hub's layout, for transformers and other tools."""
    from evenhand.api.export import export

    target = export(model, folder)
    output.print(f"wrote {target}", highlight=False, markup=False, soft_wrap=True)
