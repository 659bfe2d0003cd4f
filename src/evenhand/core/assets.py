"""Files shipped inside the package: where they are."""

from __future__ import annotations

from pathlib import Path

from evenhand.core.errors import InputError

ROOT = Path(__file__).resolve().parent.parent / "assets"


def asset(*parts: str) -> Path:
    """The path of an embedded file; an error if this installation lacks it."""
    path = ROOT.joinpath(*parts)
    if not path.exists():
        raise InputError(
            f"the embedded file {'/'.join(parts)} is missing from this installation",
            accepted="a complete wheel, or a checkout after `make setup`",
            todo="install evenhand again",
        )
    return path
