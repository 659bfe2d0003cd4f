"""``evenhand report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli.console import output


def command(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    formats: Annotated[
        list[str] | None, typer.Option("--format", help="html, md, json, lm-eval, model-card; repeatable.")
    ] = None,
) -> None:
    """Write the report of a run again."""
    from evenhand.api.parts import split_names
    from evenhand.api.render import render

    for path in render(run, split_names(formats) or ("html", "json")).values():
        output.print(str(path), highlight=False, soft_wrap=True, markup=False)
