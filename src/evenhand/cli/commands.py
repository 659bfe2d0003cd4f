"""Builds commands from the options that Python functions declare, with completions for the shell.

Completions are read without importing what they name. ``evenhand --install-completion`` installs the script
for bash, zsh, fish or PowerShell; ``--show-completion`` prints it.
"""

from __future__ import annotations

import inspect
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args, get_origin

import typer

from evenhand.core.options import NoOptions, Option, fields_of
from evenhand.core.registry import KINDS, list_entries
from evenhand.run_options import RUNNING

_DRY_RUN = typer.Option("--dry-run", help="Show the plan without running it.", rich_help_panel=RUNNING)
Command = Callable[..., None]
_parameter = partial(inspect.Parameter, kind=inspect.Parameter.KEYWORD_ONLY)

CHOICES: Mapping[str, tuple[str, ...]] = {
    "kinds": KINDS,
    "modes": ("embedding", "classifier", "naive", "in-glove"),
    "papers": ("bold", "regard", "affective", "political"),
    "tasks": ("regard", "toxicity", "emotion", "ideology", "norms", "embeddings", "calibrator"),
}
"""Completions for kinds whose names are not in the registry."""
_NEEDS_REST = frozenset({"endpoint", "replay", "wikipedia"})
"""Back-ends that need a value after the colon."""


class Argument(NamedTuple):
    """A positional argument of a command; required if it has no default."""

    name: str
    kind: Any
    help: str
    default: object = inspect.Parameter.empty
    complete: str = ""


def takes(options: type = NoOptions, *arguments: Argument) -> Callable[[Command], Command]:
    """A decorator that makes a function a command with these arguments and options.

    ``--dry-run`` is added if the function accepts it, and ``command`` is the command line as typed.
    """
    fields = fields_of(options)

    def decorate(function: Command) -> Command:
        @wraps(function)
        def command(**values: Any) -> None:
            positional = [values.pop(one.name) for one in arguments]
            dry_run = {name: values.pop(name) for name in ("dry_run",) if name in values}
            options = {name: value for name, value in values.items() if value not in (None, [])}
            if "command" in fields:
                options["command"] = command_line(secret=options.get("database"))
            function(*positional, **options, **dry_run)

        parameters = [
            *map(_argument, arguments),
            *(_option(one) for one in fields.values() if one.has_flag),
        ]
        if "dry_run" in inspect.signature(function).parameters:
            parameters.append(_parameter("dry_run", annotation=Annotated[bool, _DRY_RUN], default=False))
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {one.name: one.annotation for one in parameters}
        return command

    return decorate


def command_line(*, secret: str | None = None) -> str:
    """The command as typed, for the report; a secret URL in it becomes ``URL``."""
    # Before words are quoted, which would change a quotation mark inside the secret.
    words = (word.replace(secret, "URL") if secret else word for word in sys.argv[1:])
    return shlex.join(["evenhand", *words])


def complete(kind: str) -> Callable[[str], list[str]] | None:
    """The completion function for a kind of names, such as ``metrics``; None if there is no kind."""
    if not kind:
        return None

    def complete_word(incomplete: str) -> list[str]:
        # In a comma-separated list the last name is completed, and names already listed are not offered.
        before, comma, word = (
            incomplete.rpartition(",") if kind in ("metrics", "suites") else ("", "", incomplete)
        )
        names = {name for name in _names(kind) if name.startswith(word)} - set(before.split(","))
        return [f"{before}{comma}{name}" for name in sorted(names)]

    return complete_word


def _names(kind: str) -> Iterator[str]:
    if kind in CHOICES:
        yield from CHOICES[kind]
    names = [entry.name for one in KINDS if kind in (one, "names") for entry in list_entries(one)]
    if kind == "models":
        # Files and folders are completed by the shell.
        names = [f"{name}:" if name in _NEEDS_REST else name for name in names if name != "hub"]
        yield "builtin:masked"
    yield from names


def _argument(one: Argument) -> inspect.Parameter:
    about = typer.Argument(help=one.help, autocompletion=complete(one.complete), show_default=False)
    return _parameter(one.name, annotation=Annotated[one.kind, about], default=one.default)


def _option(option: Option) -> inspect.Parameter:
    kind = option.flag_type or _kind(option.kinds)
    about = typer.Option(
        option.flag + (f"/--no-{option.flag.removeprefix('--')}" if option.has_negation else ""),
        help=option.text,
        rich_help_panel=option.panel or None,
        autocompletion=complete(option.complete),
    )
    if option.is_required:
        return _parameter(option.name, annotation=Annotated[kind, about])
    return _parameter(option.name, annotation=Annotated[kind | None, about], default=None)


def _kind(kinds: Sequence[Any]) -> Any:
    """The command-line type of an option: a list if Python accepts several values or a mapping."""
    several = any(get_origin(kind) in (Sequence, Mapping) for kind in kinds)
    basic = list(_basic(kinds))
    one = next((kind for kind in (bool, Path, float, int) if kind in basic), str)
    return list[one] if several else one  # type: ignore[valid-type]


def _basic(kinds: Sequence[Any]) -> Iterator[Any]:
    """The basic types inside unions and sequences."""
    for kind in kinds:
        yield kind
        if get_origin(kind) is not Mapping:
            yield from _basic([one for one in get_args(kind) if isinstance(one, type) or get_args(one)])
