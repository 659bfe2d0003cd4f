"""``evenhand power``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli.console import output


def command(
    run: Annotated[
        Path | None, typer.Argument(help="A pilot run of audit or score. Without RUN: from a guess.")
    ] = None,
    gap: Annotated[float, typer.Option(help="The gap that must not be missed.")] = 0.05,
    power: Annotated[float, typer.Option(help="The chance of seeing it.")] = 0.8,
    level: Annotated[float, typer.Option(help="Level of intervals.")] = 0.95,
    share: Annotated[float, typer.Option(help="Without RUN: the share of texts with the label.")] = 0.2,
    icc: Annotated[
        float, typer.Option(help="Without RUN: how alike the texts of a prompt are, 0 to 1.")
    ] = 0.2,
    samples: Annotated[int, typer.Option(help="Without RUN: texts a prompt.")] = 5,
) -> None:
    """Plan how many prompts and samples show a gap, from a pilot run or from a guess."""
    from evenhand.api.power import power as plan
    from evenhand.report.power import summary

    found = plan(run, gap=gap, power=power, level=level, share=share, icc=icc, samples=samples)
    output.print(summary(found.table, gap=gap, power=power, has_pilot=run is not None))
