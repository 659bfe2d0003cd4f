"""``evenhand corpus``."""

from __future__ import annotations

from typing import Any

import typer

from evenhand.api.corpus_options import CorpusOptions
from evenhand.cli.commands import Argument, takes


@takes(
    CorpusOptions,
    Argument(
        "paths",
        list[str],
        "Files, folders, globs or URLs of text, JSONL, CSV, TSV, Parquet or MediaWiki XML, plain or "
        "compressed (gzip, bz2, xz, zstd). NAME=PATH names one of several corpora.",
    ),
)
def command(paths: list[str], *, dry_run: bool, **options: Any) -> None:
    """Count emotions in a corpus, and the groups they share a sentence with."""
    from evenhand.api.corpus import prepare
    from evenhand.cli.console import output, print_path, warn
    from evenhand.cli.ending import finished
    from evenhand.cli.entry import PARTIAL
    from evenhand.report.corpus.terminal import corpus_summary

    run = finished(prepare(paths, **options), dry_run=dry_run)
    if run is None:
        return
    output.print(corpus_summary(run))
    for warning in run.manifest["warnings"]:
        warn(warning)
    print_path(run.path / "report.html", "report: ")
    problems = run.table("problems")
    for file, byte, reason in problems.head(20).iter_rows():
        warn(f"{file}{'' if byte is None else f', byte {byte:,}'}: {reason}")
    if problems.height:
        warn(f"{problems.height:,} problems; the rest was counted. All are in problems.parquet")
        raise typer.Exit(PARTIAL)
