"""``evenhand validate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli import answers as a
from evenhand.cli import completion
from evenhand.cli import options as o

_MATCHING = "Matching labels"


def command(
    metric: Annotated[
        str,
        typer.Argument(
            help="A metric: sentiment, regard=ORG/NAME@REV .. (see `evenhand list metrics`).",
            autocompletion=completion.metrics,
        ),
    ],
    human: Annotated[
        Path,
        typer.Option(
            help="What people said: a study folder, an export, or a table of texts and labels (JSONL, CSV, "
            "TSV, Parquet; JSON of Label Studio or Argilla)."
        ),
    ],
    output: Annotated[
        list[str] | None,
        typer.Option(help="Outputs of the metric; repeatable [all that fit].", rich_help_panel=_MATCHING),
    ] = None,
    renamed: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            help="What a label of people is called by the metric: THEIRS=OURS; nothing after = leaves it "
            "out; repeatable.",
            rich_help_panel=_MATCHING,
        ),
    ] = None,
    question: a.Question = None,
    item: a.Item = None,
    text: a.TextColumn = None,
    annotator: a.Annotator = None,
    label: a.Label = None,
    cluster: Annotated[
        str | None, typer.Option(help="Column of what belongs together [a study's prompts].")
    ] = None,
    scale: a.ScaleOption = None,
    database: a.Database = None,
    consensus: a.Consensus = "majority",
    agreement: a.AgreementShare = 0.5,
    least: a.Least = 1,
    onto_card: Annotated[
        bool, typer.Option("--onto-card", help="Keep the result for the metric's card (`evenhand show`).")
    ] = False,
    level: o.Level = None,
    seed: o.Seed = None,
    out: o.Out = None,
    config: o.Config = None,
    device: o.Device = None,
    batch: o.Batch = None,
    offline: o.Offline = False,
    dry_run: o.DryRun = False,
    fresh: o.Fresh = False,
) -> None:
    """Set a metric against people: rank correlation, accuracy, precision, recall, F1, and the best cut."""
    from evenhand.api.validate import prepare
    from evenhand.cli.ending import carry_out
    from evenhand.report.people.validate import FORMS

    prepared = prepare(
        metric,
        human,
        output=output,
        renamed=renamed,
        question=question,
        item=item,
        text=text,
        annotator=annotator,
        label=label,
        cluster=cluster,
        scale=scale,
        database=database,
        consensus=consensus,
        agreement=agreement,
        least=least,
        onto_card=onto_card,
        level=0.95 if level is None else level,
        seed=seed or 0,
        out=out,
        config=config,
        device=device,
        batch=batch,
        offline=offline or None,
        fresh=fresh,
        command=a.told_command(database),
    )
    carry_out(prepared, dry_run=dry_run, found=FORMS.summary)
