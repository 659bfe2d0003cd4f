"""``evenhand power``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evenhand.audits.options import PowerOptions
from evenhand.cli.commands import Argument, takes
from evenhand.cli.console import output


@takes(
    PowerOptions,
    Argument("run", Path | None, "A pilot run of audit or score. Without RUN: from a guess.", None),
)
def command(run: Path | None, **options: Any) -> None:
    """Plan how many prompts and samples show a gap, from a pilot run or from a guess."""
    from evenhand.audits.power import power, summarise_plan

    plan = power(run, **options)
    output.print(summarise_plan(plan.table, gap=plan.gap, power=plan.power, has_pilot=run is not None))
