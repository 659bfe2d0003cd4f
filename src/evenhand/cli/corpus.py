"""``evenhand corpus``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from evenhand.cli import options as o

if TYPE_CHECKING:
    from collections.abc import Callable

    from evenhand.core.protocols import Progress
    from evenhand.store.run import Run

_COUNTING, _RUNNING = "Counting", "Running"


def command(
    paths: Annotated[
        list[str],
        typer.Argument(
            help="Files, folders, globs or URLs of text, JSONL, CSV, TSV, Parquet or MediaWiki XML, plain or "
            "packed (gzip, bz2, xz, zstd). NAME=PATH names one of several corpora.",
            show_default=False,
        ),
    ],
    terms: Annotated[
        list[str] | None,
        typer.Option(
            help="Term lists: JSON, TOML, or NAME=FILE with one term a line; repeatable [our own].",
            rich_help_panel=_COUNTING,
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(help="`paper`: the rule and counting of the paper.", rich_help_panel=_COUNTING),
    ] = None,
    counting: Annotated[
        str | None,
        typer.Option(
            help="`flag`: a unit counts once; `distinct`: its distinct group terms [flag].",
            rich_help_panel=_COUNTING,
        ),
    ] = None,
    unit: Annotated[
        str | None, typer.Option(help="sentence, line or document [sentence].", rich_help_panel=_COUNTING)
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="What intervals take as independent: document, line or file [document; line where running "
            "text has no empty line].",
            rich_help_panel=_COUNTING,
        ),
    ] = None,
    text: Annotated[
        str | None, typer.Option(help="Column of the texts in tables.", rich_help_panel=_COUNTING)
    ] = None,
    samples: Annotated[
        int | None, typer.Option(min=0, help="Sentences kept a cell [5].", rich_help_panel=_COUNTING)
    ] = None,
    seed: o.Seed = None,
    level: o.Level = None,
    engine: Annotated[
        str | None, typer.Option(help="local or ray [local].", rich_help_panel=_RUNNING)
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Shards at a time [one a core].", rich_help_panel=_RUNNING)
    ] = None,
    address: Annotated[
        str | None, typer.Option(help="Ray cluster [one is started here].", rich_help_panel=_RUNNING)
    ] = None,
    out: o.Out = None,
    dry_run: o.DryRun = False,
    fresh: o.Fresh = False,
) -> None:
    """Count emotions in a corpus, and the groups they share a sentence with."""
    from evenhand.api.corpus import prepare
    from evenhand.cli.console import show_plan

    prepared = prepare(
        list(paths),
        terms=list(terms) if terms else None,
        preset=preset,
        counting=counting,
        unit=unit,
        cluster=cluster,
        text=text,
        samples=samples,
        seed=seed,
        level=level,
        engine=engine,
        workers=workers,
        address=address,
        out=out,
        fresh=fresh,
        command=o.command_line(),
    )
    show_plan(prepared.plan())
    if not dry_run:
        _carry_out(prepared.run)


def _carry_out(run: Callable[[Progress], Run]) -> None:
    from evenhand.cli.console import TerminalProgress, output, warn
    from evenhand.cli.ending import resumable
    from evenhand.cli.entry import PARTIAL
    from evenhand.report.corpus.terminal import corpus_summary

    with resumable():
        done = run(TerminalProgress())
    output.print(corpus_summary(done))
    for warning in done.manifest["warnings"]:
        warn(warning)
    output.print(f"report: {done.path / 'report.html'}", highlight=False, soft_wrap=True, markup=False)
    problems = done.table("problems")
    for file, byte, reason in problems.head(20).iter_rows():
        warn(f"{file}{'' if byte is None else f', byte {byte:,}'}: {reason}")
    if problems.height:
        warn(f"{problems.height:,} problems; the rest was counted. All are in problems.parquet")
        raise typer.Exit(PARTIAL)
