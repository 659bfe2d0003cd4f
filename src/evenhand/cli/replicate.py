"""``evenhand replicate``."""

from __future__ import annotations

from typing import Any

from evenhand.cli.commands import Argument, takes
from evenhand.papers import ReplicateOptions


@takes(
    ReplicateOptions,
    Argument("paper", str, "bold, regard, affective or political.", complete="papers"),
)
def command(paper: str, *, dry_run: bool, **options: Any) -> None:
    """Write a paper's tables and figures for any model, the printed numbers beside ours."""
    from evenhand.cli.console import print_path, print_warning
    from evenhand.cli.run_command import finished
    from evenhand.papers.replicate import prepare

    run = finished(prepare(paper, **options), dry_run=dry_run)
    if run is None:
        return
    for warning in run.manifest["warnings"]:
        print_warning(warning)
    files = run.manifest["stages"]["replicate"]["files"]
    print_path(run.path, f"{len(files)} files in ", "; read report.html first")
