"""``evenhand export-task``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli import options as o
from evenhand.cli.console import output, show_plan


def command(
    suite: Annotated[str, typer.Argument(help="A suite, such as starter or templates:FILE.")],
    folder: Annotated[Path, typer.Argument(help="Where the files of the task go.")],
    metrics: o.Metrics = None,
    samples: Annotated[int | None, typer.Option(help="Texts a prompt [the suite's number].")] = None,
    limit: Annotated[int | None, typer.Option(help="So many prompts, spread over the groups.")] = None,
    offline: o.Offline = False,
    dry_run: o.DryRun = False,
) -> None:
    """Write a suite as a task of lm-eval, measured with evenhand's metrics."""
    from evenhand.adapters.task_files import TaskFiles

    task = TaskFiles(suite, folder, metrics=metrics, samples=samples, limit=limit, offline=offline)
    show_plan(task.plan())
    if not dry_run:
        output.print(f"wrote {task.run()}", highlight=False, markup=False, soft_wrap=True)
