"""``evenhand build``."""

from __future__ import annotations

from typing import Any

import typer

from evenhand.audits.options import BuildOptions
from evenhand.cli.commands import Argument, takes


@takes(BuildOptions, Argument("suite", str, "What to build: bold."))
def command(suite: str, *, dry_run: bool, **options: Any) -> None:
    """Collect prompts from pages you have, as BOLD was collected from Wikipedia."""
    from evenhand.cli.console import output, print_path, print_warning
    from evenhand.cli.entry import PARTIAL
    from evenhand.cli.run_command import finished
    from evenhand.collection.build import prepare

    built = finished(prepare(suite, **options), dry_run=dry_run)
    if built is None:
        return
    taken = sum(built.prompts.values())
    output.print(f"{taken:,} prompts in {len(built.prompts)} groups from {built.pages:,} pages")
    for reason, count in sorted(built.rejected.items()):
        output.print(f"  left out, {reason}: {count:,} sentences", highlight=False)
    print_path(built.folder / "card.md", "card: ")
    if taken:
        print_path(built.folder, "next: evenhand audit --suite bold-subset:")
    else:
        print_warning(
            "no sentence was taken: card.md says why; --groups FILE names your own groups and their pages"
        )
    for problem in built.problems[:20]:
        print_warning(str(problem))
    if built.problems:
        print_warning(f"{len(built.problems):,} problems; the rest was collected. All are in run.json")
        raise typer.Exit(PARTIAL)
