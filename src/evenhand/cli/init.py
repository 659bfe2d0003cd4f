"""``evenhand init``."""

from __future__ import annotations

from pathlib import Path

from evenhand.cli.commands import Argument, takes
from evenhand.cli.console import print_path
from evenhand.core.errors import InputError
from evenhand.core.options import NoOptions


@takes(NoOptions, Argument("path", Path, "Where to write (default evenhand.toml).", Path("evenhand.toml")))
def command(path: Path) -> None:
    """Write a commented settings file."""
    from evenhand.core.files import asset_path
    from evenhand.store.atomic_writes import write_text

    if path.exists():
        raise InputError(
            f"{path} exists already", expected="a new file", fix="delete it or name another path"
        )
    write_text(path, asset_path("settings", "evenhand.toml").read_text(encoding="utf-8"))
    print_path(path, "wrote ", f": evenhand audit --config {path}")
