"""``evenhand list`` and ``evenhand show``."""

from __future__ import annotations

from typing import Annotated

import typer

from evenhand.cli import completion
from evenhand.cli.console import output
from evenhand.core.errors import InputError
from evenhand.core.registry import KINDS


def list_command(
    kind: Annotated[
        str | None,
        typer.Argument(
            help="suites, models, metrics or mitigations; all without.", autocompletion=completion.kinds
        ),
    ] = None,
) -> None:
    """List what is installed."""
    from rich.table import Table

    from evenhand.api.catalogue import available

    if kind is not None and kind not in KINDS:
        raise InputError(
            f"there is no kind {kind!r}", accepted=", ".join(KINDS), todo="see `evenhand list --help`"
        )
    table = Table(box=None, pad_edge=False)
    for column in ("kind", "name", "from"):
        table.add_column(column)
    for entry in available(kind):
        table.add_row(entry.kind, entry.name, entry.package)
    output.print(table)


def show_command(
    name: Annotated[
        str, typer.Argument(help="A name from `evenhand list`.", autocompletion=completion.anything)
    ],
) -> None:
    """Show the card of a suite, a metric, a model or a mitigation."""
    from rich.markdown import Markdown

    from evenhand.api.catalogue import card

    output.print(Markdown(card(name)))
