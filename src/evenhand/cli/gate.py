"""``evenhand gate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from evenhand.api.result_options import GateOptions
from evenhand.cli.commands import Argument, takes
from evenhand.cli.console import errors, output, warn
from evenhand.core.options import Option

if TYPE_CHECKING:
    from evenhand.api.gate import Gate

_WORDS = {"passes": "pass", "fails": "fail", "cannot tell": "cannot tell"}


class _Options(GateOptions, total=False):
    github: Annotated[bool, Option("Print annotations of GitHub Actions.")]


@takes(_Options, Argument("run", Path, "A run folder of audit or score."))
def command(run: Path, *, dry_run: bool, github: bool = False, **options: Any) -> None:
    """Hold a run against limits: exit 1 where an interval excludes its limit (--strict: or touches it)."""
    from evenhand.api.gate import gate

    found = gate(run, **{**options, **({"junit": None} if dry_run else {})})
    _announce(found)
    if dry_run:
        return
    _show(found)
    for line in found.annotations() if github else ():
        typer.echo(line)
    raise typer.Exit(found.exit_code)


def _announce(found: Gate) -> None:
    limits = dict.fromkeys(f"{check.rule.kind} {check.rule}" for check in found.checks)
    errors.print(f"[bold]gate {escape(str(found.run.path))}[/]", highlight=False)
    for limit in limits:
        errors.print(f"  limit  {escape(limit)}", highlight=False, soft_wrap=True)
    errors.print(f"  checks {len(found.checks):,}", highlight=False)


def _show(found: Gate) -> None:
    from evenhand.report.gate import table

    output.print(table(found.checks))
    counts = ", ".join(f"{count:,} {_WORDS[verdict]}" for verdict, count in found.counts.items())
    output.print(f"the gate {found.verdict}: {counts}", highlight=False)
    for note in found.warnings:
        warn(note)
    if found.by_chance >= 1:
        warn(
            f"up to {found.by_chance:.0f} of {len(found.checks):,} checks would fail by chance if every gap "
            "stood exactly at its limit"
        )
