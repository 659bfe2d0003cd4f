"""``evenhand annotate agreement``, ``ratings``, ``export`` and ``import``: what people answered."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenhand.cli import options as o

if TYPE_CHECKING:
    from evenhand.api.exchange import Exchange

_READING, _LABEL = "Reading a file", "One label a text"

Source = Annotated[
    Path,
    typer.Argument(
        help="A study folder; an export; a table of ratings (JSONL, CSV, TSV, Parquet); JSON of Label Studio "
        "or Argilla."
    ),
]
Question = Annotated[
    list[str] | None, typer.Option(help="Questions to look at; repeatable [all].", rich_help_panel=_READING)
]
Item = Annotated[
    str | None,
    typer.Option(help="Column that tells texts apart [item_id, id, or the text].", rich_help_panel=_READING),
]
TextColumn = Annotated[
    str | None, typer.Option("--text", help="Column of the texts [text].", rich_help_panel=_READING)
]
Annotator = Annotated[
    str | None, typer.Option(help="Column that tells people apart [annotator].", rich_help_panel=_READING)
]
Label = Annotated[
    list[str] | None,
    typer.Option(
        help="Column of the labels [label, or the question's name]; several: a column an annotator.",
        rich_help_panel=_READING,
    ),
]
ScaleOption = Annotated[
    str | None,
    typer.Option(
        "--scale", help="The labels, lowest first: LOW,..,HIGH [known scales].", rich_help_panel=_READING
    ),
]
Database = Annotated[
    str | None,
    typer.Option(help="Database of a study by URL [the study's own file].", rich_help_panel=_READING),
]
Consensus = Annotated[
    str, typer.Option(help="majority, or dawid-skene (who errs how is estimated).", rich_help_panel=_LABEL)
]
Least = Annotated[int, typer.Option(help="Ratings a text needs.", rich_help_panel=_LABEL)]
AgreementShare = Annotated[
    float,
    typer.Option(
        "--agreement",
        help="Share of ratings, or probability, a label needs; a majority is more than half anyway.",
        rich_help_panel=_LABEL,
    ),
]


def told_command(database: str | None) -> str:
    """The command to repeat; a database's URL may hold a password and is not written down."""
    return o.command_line(secret=database)


def agreement_command(
    source: Source,
    question: Question = None,
    item: Item = None,
    text: TextColumn = None,
    annotator: Annotator = None,
    label: Label = None,
    scale: ScaleOption = None,
    database: Database = None,
    consensus: Consensus = "majority",
    agreement: AgreementShare = 0.5,
    least: Least = 1,
    level: o.Level = None,
    seed: o.Seed = None,
    out: o.Out = None,
    dry_run: o.DryRun = False,
    fresh: o.Fresh = False,
) -> None:
    """How far people agree, who differs from the others and where, and one label a text."""
    from evenhand.api.agreement import prepare
    from evenhand.cli.ending import carry_out
    from evenhand.report.people.agreement import FORMS

    prepared = prepare(
        source,
        question=question,
        item=item,
        text=text,
        annotator=annotator,
        label=label,
        scale=scale,
        database=database,
        consensus=consensus,
        agreement=agreement,
        least=least,
        level=0.95 if level is None else level,
        seed=seed or 0,
        out=out,
        fresh=fresh,
        command=told_command(database),
    )
    carry_out(prepared, dry_run=dry_run, found=FORMS.summary)


def ratings_command(
    source: Source,
    baseline: Annotated[
        str | None, typer.Option(help="The method the others are compared with [baseline, vanilla].")
    ] = None,
    question: Question = None,
    item: Item = None,
    text: TextColumn = None,
    annotator: Annotator = None,
    label: Label = None,
    scale: ScaleOption = None,
    database: Database = None,
    level: o.Level = None,
    out: o.Out = None,
    dry_run: o.DryRun = False,
    fresh: o.Fresh = False,
) -> None:
    """What people say of each method: means, and paired t tests against a baseline (a likert study)."""
    from evenhand.api.ratings import prepare
    from evenhand.cli.ending import carry_out
    from evenhand.report.people.ratings import FORMS

    prepared = prepare(
        source,
        baseline=baseline,
        question=question,
        item=item,
        text=text,
        annotator=annotator,
        label=label,
        scale=scale,
        database=database,
        level=0.95 if level is None else level,
        out=out,
        fresh=fresh,
        command=told_command(database),
    )
    carry_out(prepared, dry_run=dry_run, found=FORMS.summary)


def export_command(
    source: Source,
    kind: Annotated[str, typer.Option("--format", help="jsonl, csv, label-studio or argilla.")] = "jsonl",
    question: Question = None,
    item: Item = None,
    text: TextColumn = None,
    annotator: Annotator = None,
    label: Label = None,
    scale: ScaleOption = None,
    database: Database = None,
    out: Annotated[Path | None, typer.Option(help="The file [NAME-labels.jsonl ..].")] = None,
    dry_run: o.DryRun = False,
) -> None:
    """Write a study's answers for other tools; cells that look like formulas are guarded in CSV."""
    from evenhand.api.exchange import prepare

    _exchange(
        prepare(
            source,
            verb="export",
            format=kind,
            question=question,
            item=item,
            text=text,
            annotator=annotator,
            label=label,
            scale=scale,
            database=database,
            out=out,
        ),
        dry_run=dry_run,
    )


def import_command(
    source: Annotated[Path, typer.Argument(help="JSON of Label Studio or Argilla, or a table of ratings.")],
    question: Question = None,
    item: Item = None,
    text: TextColumn = None,
    annotator: Annotator = None,
    label: Label = None,
    scale: ScaleOption = None,
    out: Annotated[Path | None, typer.Option(help="The file [NAME-labels.jsonl].")] = None,
    dry_run: o.DryRun = False,
) -> None:
    """Read another tool's answers, check them, and write them as our JSONL."""
    from evenhand.api.exchange import prepare

    _exchange(
        prepare(
            source,
            verb="import",
            question=question,
            item=item,
            text=text,
            annotator=annotator,
            label=label,
            scale=scale,
            out=out,
        ),
        dry_run=dry_run,
    )


def _exchange(prepared: Exchange, *, dry_run: bool) -> None:
    from evenhand.cli.console import output, show_plan

    show_plan(prepared.plan())
    if dry_run:
        return
    for path in prepared.run():
        output.print(f"written: {path}", highlight=False, soft_wrap=True, markup=False)
