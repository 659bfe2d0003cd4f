"""``evenhand annotate agreement``, ``ratings``, ``export``, ``import``, ``sample`` and ``settle``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from evenhand.api.people_options import (
    AgreementOptions,
    ExportOptions,
    ImportOptions,
    ItemOptions,
    RatingOptions,
    SettleOptions,
)
from evenhand.cli.commands import Argument, takes

if TYPE_CHECKING:
    from evenhand.api.exchange import Exchange

SOURCE = Argument(
    "source",
    Path,
    "A study folder; an export; a table of ratings (JSONL, CSV, TSV, Parquet); JSON of Label Studio or "
    "Argilla.",
)


@takes(AgreementOptions, SOURCE)
def agreement_command(source: Path, *, dry_run: bool, **options: Any) -> None:
    """How far people agree, who differs from the others and where, and one label per text."""
    from evenhand.api.agreement import prepare
    from evenhand.cli.ending import carry_out
    from evenhand.report.people.agreement import FORMS

    carry_out(prepare(source, **options), dry_run=dry_run, found=FORMS.summary)


@takes(RatingOptions, SOURCE)
def ratings_command(source: Path, *, dry_run: bool, **options: Any) -> None:
    """What people say of each method: means, and paired t tests against a baseline (a likert study)."""
    from evenhand.api.ratings import prepare
    from evenhand.cli.ending import carry_out
    from evenhand.report.people.ratings import FORMS

    carry_out(prepare(source, **options), dry_run=dry_run, found=FORMS.summary)


@takes(ExportOptions, SOURCE)
def export_command(source: Path, *, dry_run: bool, **options: Any) -> None:
    """Write a study's answers for other tools; cells that look like formulas are guarded in CSV."""
    from evenhand.api.exchange import prepare

    _exchange(prepare(source, verb="export", **options), dry_run=dry_run)


@takes(ImportOptions, Argument("source", Path, "JSON of Label Studio or Argilla, or a table of ratings."))
def import_command(source: Path, *, dry_run: bool, **options: Any) -> None:
    """Read another tool's answers, check them, and write them as our JSONL."""
    from evenhand.api.exchange import prepare

    _exchange(prepare(source, verb="import", **options), dry_run=dry_run)


def _exchange(prepared: Exchange, *, dry_run: bool) -> None:
    from evenhand.cli.console import print_path, show_plan

    show_plan(prepared.plan())
    if dry_run:
        return
    for path in prepared.run():
        print_path(path, "written: ")


@takes(ItemOptions, Argument("source", Path, "A run folder, or a file of samples as `replay` reads it."))
def sample_command(source: Path, *, dry_run: bool, **options: Any) -> None:
    """Choose the texts people are asked about: some positive and some negative for every prompt."""
    from evenhand.api.items import prepare
    from evenhand.cli.console import print_path, warn
    from evenhand.cli.ending import finished
    from evenhand.cli.entry import PARTIAL

    items = finished(prepare(source, **options), dry_run=dry_run)
    if items is None:
        return
    print_path(items.path or Path(), f"{items.table.height} texts: ")
    for shortfall in items.shortfalls:
        warn(shortfall.reason)
    if items.shortfalls:
        raise typer.Exit(PARTIAL)


@takes(SettleOptions, Argument("file", Path, "One row per text and annotator: JSONL, CSV, TSV or Parquet."))
def settle_command(file: Path, *, dry_run: bool, **options: Any) -> None:
    """Turn several people's labels into one per text: agreement, majority, train, dev and test parts."""
    from evenhand.api.settle import prepare
    from evenhand.cli.console import output, show_plan, warn
    from evenhand.cli.entry import PARTIAL

    prepared = prepare(file, **options)
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
