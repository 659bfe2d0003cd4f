"""Keyword arguments of public functions: an unknown one is an error that names the nearest known one.

Options arrive as ``**options: Unpack[SomeOptions]``, which binds type checkers alone: at run time Python
accepts any name, and a misspelt option would silently leave its default in place.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from difflib import get_close_matches
from functools import cache, wraps
from typing import TypedDict, TypeVar, cast, get_args

from evenhand.core.errors import UnknownKeywordError

F = TypeVar("F", bound=Callable[..., object])


def checks_keywords(function: F) -> F:
    """The function, which refuses keyword arguments that it does not declare."""

    @wraps(function)
    def checked(*args: object, **given: object) -> object:
        accepted = keywords_of(function)
        for name in given:
            if name not in accepted:
                raise _unknown(function, name, accepted)
        return function(*args, **given)

    return cast(F, checked)


@cache
def keywords_of(function: Callable[..., object]) -> tuple[str, ...]:
    """The keywords of a function: its parameters, and the fields of what it unpacks."""
    names: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            names += options_of(function).__annotations__
        elif parameter.kind is not inspect.Parameter.VAR_POSITIONAL:
            names.append(parameter.name)
    return tuple(names)


def options_of(function: Callable[..., object]) -> type:
    """The typed dictionary that a function unpacks its keyword arguments to; an empty one without."""
    function = inspect.unwrap(function)
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            # That annotation alone: others may name what is imported for type checkers only.
            unpacked = eval(parameter.annotation, function.__globals__)
            return cast(type, get_args(unpacked)[0])
    return NoOptions


class NoOptions(TypedDict):
    """Of a function whose parameters are all in its signature."""


def _unknown(function: Callable[..., object], name: str, accepted: tuple[str, ...]) -> UnknownKeywordError:
    near = get_close_matches(name, accepted, n=1)
    return UnknownKeywordError(
        f"{function.__name__}() has no argument {name!r}",
        accepted=", ".join(accepted),
        todo=f"did you mean {near[0]!r}?" if near else "use one of these",
    )
