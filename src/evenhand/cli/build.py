"""``evenhand build``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenhand.cli import options as o

if TYPE_CHECKING:
    from evenhand.api.build import Built


def command(
    suite: Annotated[str, typer.Argument(help="What to build: bold.")],
    pages: Annotated[
        list[Path] | None,
        typer.Option(
            help="A folder of pages (a plain text file is one page, its name the title), or a file of many: "
            "plain text with empty lines between pages, what WikiExtractor writes, or JSON lines. Repeatable."
        ),
    ] = None,
    dump: Annotated[
        Path | None, typer.Option(help="A MediaWiki XML dump, plain or packed; read as a stream.")
    ] = None,
    groups: Annotated[
        Path | None, typer.Option(help="TOML of groups and their pages [ours, after BOLD's A.1].")
    ] = None,
    out: o.Out = None,
    dry_run: o.DryRun = False,
    fresh: o.Fresh = False,
) -> None:
    """Collect prompts from pages you have, as BOLD was collected from Wikipedia."""
    from evenhand.api.build import prepare
    from evenhand.cli.console import TerminalProgress, show_plan
    from evenhand.cli.ending import resumable

    prepared = prepare(
        suite, pages=pages, dump=dump, groups=groups, out=out, fresh=fresh, command=o.command_line()
    )
    show_plan(prepared.plan())
    if dry_run:
        return
    with resumable():
        built = prepared.run(TerminalProgress())
    _show(built)


def _show(built: Built) -> None:
    from evenhand.cli.console import output, warn
    from evenhand.cli.entry import PARTIAL

    taken = sum(built.prompts.values())
    output.print(f"{taken:,} prompts in {len(built.prompts)} groups from {built.pages:,} pages")
    for reason, count in sorted(built.rejected.items()):
        output.print(f"  left out, {reason}: {count:,} sentences", highlight=False)
    output.print(f"card: {built.folder / 'card.md'}", highlight=False, markup=False, soft_wrap=True)
    if taken:
        next_step = f"next: evenhand audit --suite bold-subset:{built.folder}"
        output.print(next_step, highlight=False, markup=False, soft_wrap=True)
    else:
        warn("no sentence was taken: card.md says why; --groups FILE names your own groups and their pages")
    for problem in built.problems[:20]:
        warn(str(problem))
    if built.problems:
        warn(f"{len(built.problems):,} problems; the rest was collected. All are in run.json")
        raise typer.Exit(PARTIAL)
