"""``evenhand init``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli.console import output
from evenhand.core.errors import InputError


def command(
    path: Annotated[Path, typer.Argument(help="Where to write.")] = Path("evenhand.toml"),
) -> None:
    """Write a commented settings file."""
    from evenhand.core.assets import asset
    from evenhand.store.atomic import write_text

    if path.exists():
        raise InputError(
            f"{path} exists already", accepted="a new file", todo="delete it or name another path"
        )
    write_text(path, asset("settings", "evenhand.toml").read_text(encoding="utf-8"))
    output.print(
        f"wrote {path}: evenhand audit --config {path}", highlight=False, markup=False, soft_wrap=True
    )
