"""Checks of options that several verbs have, with the message a command shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from evenhand.core.errors import InputError

_T = TypeVar("_T", bound=str)


def one_of(option: str, given: str | None, accepted: Sequence[_T]) -> _T | None:
    """What was given, if it is accepted; None where nothing was given."""
    if given is None:
        return None
    for one in accepted:
        if one == given:
            return one
    raise InputError(f"--{option} {given!r}", accepted=", ".join(accepted), todo="use one of these")


def checked_level(level: float | None) -> float:
    """The level of intervals, 0.95 where none is given; an error outside 0 to 1."""
    if level is None:
        return 0.95
    if not 0 < level < 1:
        raise InputError(f"--level {level:g}", accepted="above 0 and below 1", todo="try 0.95")
    return level
