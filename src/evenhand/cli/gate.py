"""``evenhand gate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.markup import escape

from evenhand.audits.options import GateOptions
from evenhand.cli.commands import Argument, takes
from evenhand.cli.console import errors, output, print_warning
from evenhand.cli.entry import GateNotPassedError
from evenhand.cli.streams import escape_output, write_command
from evenhand.core.options import Option

if TYPE_CHECKING:
    from evenhand.audits.gate import GateResult

_WORDS = {"passes": "pass", "fails": "fail", "cannot tell": "cannot tell"}


class _Options(GateOptions, total=False):
    github: Annotated[bool, Option("Print annotations of GitHub Actions.")]


@takes(_Options, Argument("run", Path, "A run folder of audit or score."))
def command(run: Path, *, dry_run: bool, github: bool = False, **options: Any) -> None:
    """Hold a run against limits: exit 1 where an interval excludes its limit (--strict: or touches it).

    Exit codes: 0 passed, or inconclusive without --strict; 1 not passed, and nothing else; 2 an error.
    """
    from evenhand.audits.gate import gate

    if github:
        # Names of groups come from the data, and the runner reads every line of both streams.
        escape_output()
    found = gate(run, **{**options, **({"junit": None} if dry_run else {})})
    _announce(found)
    if dry_run:
        return
    _show(found)
    for line in found.annotations() if github else ():
        write_command(line)
    if found.exit_code:
        raise GateNotPassedError


def _announce(found: GateResult) -> None:
    limits = dict.fromkeys(f"{check.rule.kind} {check.rule}" for check in found.checks)
    errors.print(f"[bold]gate {escape(str(found.run.path))}[/]", highlight=False)
    for limit in limits:
        errors.print(f"  limit  {escape(limit)}", highlight=False, soft_wrap=True)
    errors.print(f"  checks {len(found.checks):,}", highlight=False)


def _show(found: GateResult) -> None:
    from evenhand.audits.report.gate_formats import to_terminal_table

    output.print(to_terminal_table(found.checks))
    counts = ", ".join(f"{count:,} {_WORDS[verdict]}" for verdict, count in found.counts.items())
    inconclusive = found.verdict == "cannot tell"
    code = f"exit code {found.exit_code}{', inconclusive' if inconclusive else ''}"
    output.print(f"the gate {found.verdict}: {counts}; {code}", highlight=False)
    if inconclusive and not found.strict:
        print_warning(
            "limits are neither clearly kept nor clearly broken, which passes; --strict ends with 1"
        )
    for note in found.warnings:
        print_warning(note)
    if found.expected_false_failures >= 1:
        print_warning(
            f"up to {found.expected_false_failures:.0f} of {len(found.checks):,} checks would fail by chance "
            "if every gap stood exactly at its limit"
        )
