"""``evenhand score``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli import options as o

_COLUMNS = "Columns"


def command(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="JSONL, CSV, TSV, Parquet, lm-eval samples, an Inspect log. Without FILE: an example."
        ),
    ] = None,
    text: Annotated[str, typer.Option(help="Column of the texts.", rich_help_panel=_COLUMNS)] = "text",
    group: Annotated[
        list[str] | None,
        typer.Option(help="AXIS=COLUMN of the group a text speaks of; repeatable.", rich_help_panel=_COLUMNS),
    ] = None,
    prompt: Annotated[
        str | None, typer.Option(help="Column of the prompts.", rich_help_panel=_COLUMNS)
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(help="Column of what belongs together [the prompt].", rich_help_panel=_COLUMNS),
    ] = None,
    id_: Annotated[
        str | None, typer.Option("--id", help="Column of unique ids [row number].", rich_help_panel=_COLUMNS)
    ] = None,
    mentions: Annotated[
        str | None,
        typer.Option(help="Column of words to mask: a;b or a JSON list.", rich_help_panel=_COLUMNS),
    ] = None,
    join_prompt: Annotated[
        bool,
        typer.Option("--join-prompt", help="Read the prompt as part of the text.", rich_help_panel=_COLUMNS),
    ] = False,
    metrics: o.Metrics = None,
    mask: o.Mask = None,
    baseline: o.Baseline = None,
    level: o.Level = None,
    correction: o.Correction = None,
    test: o.Test = None,
    stratum: o.Strata = None,
    pairs: o.Pairs = False,
    check: o.Check = None,
    seed: o.Seed = None,
    out: o.Out = None,
    log: o.Log = None,
    log_texts: o.LogTexts = False,
    config: o.Config = None,
    device: o.Device = None,
    batch: o.Batch = None,
    engine: o.Engine = None,
    workers: o.Workers = None,
    address: o.Address = None,
    offline: o.Offline = False,
    dry_run: o.DryRun = False,
    fresh: o.Fresh = False,
) -> None:
    """Score and compare texts you already have."""
    from evenhand.api.score import prepare
    from evenhand.cli.ending import carry_out

    prepared = prepare(
        file,
        text=text,
        group=group or [],
        prompt=prompt,
        cluster=cluster,
        id=id_,
        mentions=mentions,
        join_prompt=join_prompt,
        metrics=metrics,
        mask=mask,
        baseline=o.baselines(baseline),
        level=level,
        correction=correction,
        test=test,
        strata=stratum,
        pairs=pairs or None,
        check=check,
        seed=seed,
        out=out,
        log=log,
        log_texts=log_texts,
        config=config,
        device=device,
        batch=batch,
        engine=engine,
        workers=workers,
        address=address,
        offline=offline or None,
        fresh=fresh,
        command=o.command_line(),
    )
    carry_out(prepared, dry_run=dry_run)
