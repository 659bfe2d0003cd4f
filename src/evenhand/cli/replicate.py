"""``evenhand replicate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli import completion
from evenhand.cli import options as o


def command(
    paper: Annotated[
        str,
        typer.Argument(help="bold, regard, affective or political.", autocompletion=completion.papers),
    ],
    data: Annotated[Path | None, typer.Option(help="Folder with the paper's published data.")] = None,
    tables: Annotated[
        list[str] | None,
        typer.Option(help="Only these: 3 or table_3, figure_2; repeated or comma-separated."),
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option(help="A source to run, as `audit` takes it; repeat for several.")
    ] = None,
    metrics: o.Metrics = None,
    suite: Annotated[
        str | None,
        typer.Option(
            help="regard: a TOML file with demographics and contexts of your own, which the models named are "
            "asked about too."
        ),
    ] = None,
    human: Annotated[Path | None, typer.Option(help="Human labels, for the tables that need them.")] = None,
    max_new_tokens: Annotated[
        int | None,
        typer.Option(min=1, help="bold: how many tokens a model that writes forward adds [30; not printed]."),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="All of the paper's prompts, not the stated subset.")
    ] = False,
    seed: o.Seed = None,
    device: o.Device = None,
    batch: o.Batch = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="political: conditions at once, each in a process of its own [1]."),
    ] = None,
    offline: o.Offline = False,
    out: o.Out = None,
    dry_run: o.DryRun = False,
    fresh: o.Fresh = False,
) -> None:
    """Write a paper's tables and figures for any model, the printed numbers beside ours."""
    from evenhand.cli.console import TerminalProgress, output, show_plan, warn
    from evenhand.cli.ending import resumable
    from evenhand.papers.replicate import prepare

    prepared = prepare(
        paper,
        data=data,
        tables=tables,
        model=model,
        metrics=metrics,
        suite=suite,
        human=human,
        max_new_tokens=max_new_tokens,
        full=full,
        seed=seed,
        device=device,
        batch=batch,
        jobs=jobs,
        offline=offline,
        out=out,
        fresh=fresh,
        command=o.command_line(),
    )
    show_plan(prepared.plan())
    if dry_run:
        return
    with resumable():
        run = prepared.run(TerminalProgress())
    for warning in run.manifest["warnings"]:
        warn(warning)
    files = run.manifest["stages"]["replicate"]["files"]
    output.print(
        f"{len(files)} files in {run.path}; read report.html first",
        highlight=False,
        soft_wrap=True,
        markup=False,
    )
