"""``evenhand list`` and ``evenhand show``."""

from __future__ import annotations

from textwrap import shorten
from typing import Annotated

import typer

from evenhand.cli import completion
from evenhand.cli.console import output
from evenhand.core.errors import InputError
from evenhand.core.registry import KINDS, Entry

OURS = "evenhand"


def list_command(
    kind: Annotated[
        str | None,
        typer.Argument(
            help="suites, models, metrics or mitigations; all without.", autocompletion=completion.kinds
        ),
    ] = None,
) -> None:
    """List what is installed, with a line on each."""
    from evenhand.api.catalogue import available

    if kind is not None and kind not in KINDS:
        raise InputError(
            f"there is no kind {kind!r}", accepted=", ".join(KINDS), todo="see `evenhand list --help`"
        )
    entries = available(kind)
    longest = max((len(entry.name) for entry in entries), default=0)
    for each in dict.fromkeys(entry.kind for entry in entries):
        output.print(each, style="bold", highlight=False)
        for entry in (entry for entry in entries if entry.kind == each):
            _print_line(f"  {entry.name:<{longest}}  ", _about(entry))


def _about(entry: Entry) -> str:
    origin = "" if entry.package == OURS else f"(from {entry.package}) "
    return f"{origin}{entry.about}"


def _print_line(start: str, rest: str) -> None:
    """Print a line; on a terminal it ends with its last whole word that finds room."""
    if output.is_terminal:
        rest = shorten(rest, max(output.width - len(start), 20), placeholder=" ...")
    output.print(f"{start}{rest}", markup=False, highlight=False, soft_wrap=True)


def show_command(
    name: Annotated[
        str, typer.Argument(help="A name from `evenhand list`.", autocompletion=completion.anything)
    ],
) -> None:
    """Show the card of a suite, a metric, a model or a mitigation."""
    from rich.markdown import Markdown

    from evenhand.api.catalogue import card

    output.print(Markdown(card(name)))
