"""``evenhand export-task``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evenhand.cli.commands import Argument, takes
from evenhand.cli.console import print_path, print_plan
from evenhand.run_options import TaskOptions


@takes(
    TaskOptions,
    Argument("suite", str, "A suite, such as starter or templates:FILE."),
    Argument("folder", Path, "Where the files of the task go."),
)
def command(suite: str, folder: Path, *, dry_run: bool, **options: Any) -> None:
    """Write a suite as a task of lm-eval, measured with evenhand's metrics."""
    from evenhand.adapters.lm_eval_task import prepare

    task = prepare(suite, folder, **options)
    print_plan(task.plan())
    if not dry_run:
        print_path(task.run(), "wrote ")
