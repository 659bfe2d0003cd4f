"""``evenhand tradeoff``."""

from __future__ import annotations

from typing import Any

from evenhand.audits.options import TradeoffOptions
from evenhand.cli.commands import takes
from evenhand.cli.debias import MODEL


@takes(TradeoffOptions, MODEL)
def command(model: str, *, dry_run: bool, **options: Any) -> None:
    """Draw bias against perplexity as a mitigation grows stronger."""
    from evenhand.audits.tradeoff import prepare
    from evenhand.cli.console import output, print_path
    from evenhand.cli.run_command import finished

    if run := finished(prepare(model, **options), dry_run=dry_run):
        output.print((run.path / "tradeoff.md").read_text(encoding="utf-8"), highlight=False, markup=False)
        print_path(run.path / "tradeoff.svg", "drawn in ")
