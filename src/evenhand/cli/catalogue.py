"""``evenhand list`` and ``evenhand show``."""

from __future__ import annotations

from textwrap import shorten

from evenhand.cli.commands import Argument, takes
from evenhand.cli.console import output
from evenhand.core.errors import InputError
from evenhand.core.options import NoOptions
from evenhand.core.registry import KINDS, Entry

OWN_PACKAGE = "evenhand"


@takes(
    NoOptions,
    Argument("kind", str | None, "suites, models, metrics or mitigations; all without.", None, "kinds"),
)
def list_command(kind: str | None) -> None:
    """List what is installed, with a line on each."""
    from evenhand.report.catalogue import available

    if kind is not None and kind not in KINDS:
        raise InputError(
            f"there is no kind {kind!r}", expected=", ".join(KINDS), fix="see `evenhand list --help`"
        )
    entries = available(kind)
    longest = max((len(entry.name) for entry in entries), default=0)
    for each in dict.fromkeys(entry.kind for entry in entries):
        output.print(each, style="bold", highlight=False)
        for entry in (entry for entry in entries if entry.kind == each):
            _print_line(f"  {entry.name:<{longest}}  ", _about(entry))


def _about(entry: Entry) -> str:
    origin = "" if entry.package == OWN_PACKAGE else f"(from {entry.package}) "
    return f"{origin}{entry.about}"


def _print_line(start: str, rest: str) -> None:
    """Print a line; on a terminal it ends with its last whole word that finds room."""
    if output.is_terminal:
        rest = shorten(rest, max(output.width - len(start), 20), placeholder=" ...")
    output.print(f"{start}{rest}", markup=False, highlight=False, soft_wrap=True)


@takes(NoOptions, Argument("name", str, "A name from `evenhand list`.", complete="names"))
def show_command(name: str) -> None:
    """Show the card of a suite, a metric, a model or a mitigation."""
    from rich.markdown import Markdown

    from evenhand.report.catalogue import card

    output.print(Markdown(card(name)))
