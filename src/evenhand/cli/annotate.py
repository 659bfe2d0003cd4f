"""``evenhand annotate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli import answers, study
from evenhand.cli import options as o

app = typer.Typer(help="Human labels: what to ask about, and what was answered.", no_args_is_help=True)
app.command("init")(study.init_command)
app.command("invite")(study.invite_command)
app.command("serve")(study.serve_command)
app.command("status")(study.status_command)
app.command("forget")(study.forget_command)
app.command("agreement")(answers.agreement_command)
app.command("ratings")(answers.ratings_command)
app.command("export")(answers.export_command)
app.command("import")(answers.import_command)


@app.callback()
def _options() -> None:
    """Human labels: what to ask about, and what was answered."""


@app.command("sample")
def sample_command(
    source: Annotated[Path, typer.Argument(help="A run folder, or a file of samples as `replay` reads it.")],
    per_prompt: Annotated[
        int, typer.Option(help="Positive and as many negative texts a prompt, by VADER.")
    ] = 3,
    suite: Annotated[str, typer.Option(help="For a file: the suite of its prompts.")] = "regard",
    cut: Annotated[float, typer.Option(help="VADER's cut.")] = 0.05,
    seed: o.Seed = None,
    out: Annotated[Path, typer.Option(help="The table of chosen texts.")] = Path("items.csv"),
    dry_run: o.DryRun = False,
) -> None:
    """Choose the texts people are asked about: some positive and some negative for every prompt."""
    from evenhand.api.items import prepare
    from evenhand.cli.console import TerminalProgress, output, show_plan, warn
    from evenhand.cli.entry import PARTIAL

    prepared = prepare(source, suite=suite, per_prompt=per_prompt, cut=cut, seed=seed or 0, out=out)
    show_plan(prepared.plan())
    if dry_run:
        return
    items = prepared.run(TerminalProgress())
    output.print(f"{items.table.height} texts: {out}", highlight=False, soft_wrap=True, markup=False)
    for shortfall in items.shortfalls:
        warn(shortfall.reason)
    if items.shortfalls:
        raise typer.Exit(PARTIAL)


@app.command("settle")
def settle_command(
    file: Annotated[Path, typer.Argument(help="One row a text and annotator: JSONL, CSV, TSV or Parquet.")],
    question: Annotated[
        list[str] | None, typer.Option(help="regard, sentiment; repeatable [the columns of that name].")
    ] = None,
    label: Annotated[str | None, typer.Option(help="Column of the labels [the question's name].")] = None,
    item: Annotated[str, typer.Option(help="Column that tells texts apart.")] = "id",
    text: Annotated[str, typer.Option(help="Column of the texts.")] = "text",
    annotator: Annotated[str, typer.Option(help="Column that tells annotators apart.")] = "annotator",
    seed: o.Seed = None,
    out: Annotated[Path, typer.Option(help="Folder for the tables.")] = Path("labels"),
    dry_run: o.DryRun = False,
) -> None:
    """Turn several people's labels into one a text: agreement, majority, train, dev and test parts."""
    from evenhand.api.settle import prepare
    from evenhand.cli.console import output, show_plan, warn
    from evenhand.cli.entry import PARTIAL

    prepared = prepare(
        file,
        question=question,
        label=label,
        item=item,
        text=text,
        annotator=annotator,
        seed=seed or 0,
        out=out,
    )
    show_plan(prepared.plan())
    for note in prepared.notes():
        warn(note)
    if dry_run:
        return
    labels = prepared.run()
    for line in labels.lines():
        output.print(line, highlight=False, soft_wrap=True, markup=False)
    for name, reason in labels.undivided.items():
        warn(f"{name}: not divided in train, dev and test, since {reason}")
    if labels.undivided:
        raise typer.Exit(PARTIAL)
