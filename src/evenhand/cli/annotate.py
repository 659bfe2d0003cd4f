"""``evenhand annotate``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from evenhand.annotate.options import (
    AggregateOptions,
    AgreementOptions,
    ExportOptions,
    ForgetOptions,
    ImportOptions,
    InviteOptions,
    ItemOptions,
    MethodRatingOptions,
    ServeOptions,
    StudyDatabase,
    StudyOptions,
)
from evenhand.cli.commands import Argument, takes
from evenhand.cli.console import (
    errors,
    print_lines,
    print_path,
    print_plan,
    print_warning,
    run_job,
    run_to_end,
)
from evenhand.cli.entry import PARTIAL
from evenhand.core.http import LOOPBACK
from evenhand.core.options import Option

if TYPE_CHECKING:
    from evenhand.audits.run_setup import PreparedJob

app = typer.Typer(help="Human labels: choose texts, collect answers, analyse them.", no_args_is_help=True)
SOURCE = Argument(
    "source",
    Path,
    "A study folder; an export; a table of ratings (JSONL, CSV, TSV, Parquet); JSON of Label Studio or "
    "Argilla.",
)
T = TypeVar("T")
STUDY = Argument("study", Path, "The study folder.")


class _InitOptions(StudyOptions, total=False):
    source: Annotated[
        Sequence[Path],
        Option(
            "A run folder or a file of texts; repeatable, for several methods.", flag="from", is_required=True
        ),
    ]


class _InviteOptions(InviteOptions, total=False):
    people: Annotated[int, Option("Number of links to create.", default=1)]


@app.command("init")
@takes(_InitOptions, Argument("study", Path, "The folder to create."))
def init_command(study: Path, *, source: list[Path], dry_run: bool, **options: Any) -> None:
    """Create a study: texts drawn evenly over groups and scores, group mentions masked, with guidelines."""
    from evenhand.annotate.study_creation import count_people, prepare

    if created := _run(prepare(study, source, **options), dry_run=dry_run):
        people = count_people(created.task, created.settings.annotators, created.items())
        folder = quote(str(created.folder))
        print_lines(
            f"study: {created.folder}",
            f"next:  evenhand annotate invite {folder} --people {people}",
            f"       evenhand annotate serve {folder}",
        )


@app.command("invite")
@takes(_InviteOptions, STUDY)
def invite_command(study: Path, *, dry_run: bool, people: int = 1, **options: Any) -> None:
    """Create private links, one per person, and print them: they are not stored and are shown only now."""
    from evenhand.annotate.study import read_study
    from evenhand.annotate.study_server import HOST, PORT, format_link, invite_people, site

    format_link(options.get("base") or site(HOST, PORT), "")
    again = options.get("again")
    links = f"{people} private link{'s' * (people != 1)}"
    who = f"a new link for {again}; the old one stops working" if again else links
    print_lines(f"invite to {read_study(study).folder}: {who}", console=errors)
    if dry_run:
        return
    for invitation in invite_people(study, people, **options):
        # Not through the console, which would convert the tab to spaces.
        typer.echo(f"{invitation.annotator}\t{invitation.link}")


@app.command("serve")
@takes(ServeOptions, STUDY)
def serve_command(study: Path, *, dry_run: bool, **options: Any) -> None:
    """Serve a study to the people with links, until Ctrl-C."""
    from evenhand.annotate.study_server import HOST, PORT, format_link, proxy_networks, serve_study, site

    host = options.get("host", HOST)
    address = options.get("base") or site(host, options.get("port", PORT))
    format_link(address, "")
    proxies = proxy_networks(options.get("trusted_proxy", ()))
    links = _show_state(study, options.get("database"))
    if not links:
        print_warning(f"nobody has a link yet: evenhand annotate invite {quote(str(study))} --people 3")
    if host not in LOOPBACK and not address.startswith("https://"):
        print_warning(
            "other machines can reach this server, and without HTTPS links and answers can be read in transit"
        )
    if dry_run:
        return
    print_lines(f"  serving at {address}, stop with Ctrl-C", console=errors)
    serve_study(study, **{**options, "trusted_proxy": proxies})


@app.command("status")
@takes(StudyDatabase, STUDY)
def status_command(study: Path, *, database: str | None = None) -> None:
    """Show study progress."""
    _show_state(study, database)


@app.command("forget")
@takes(ForgetOptions, STUDY, Argument("annotator", str, "The annotator: a1, a2, ..."))
def forget_command(
    study: Path, annotator: str, *, dry_run: bool, answers_too: bool = False, **options: Any
) -> None:
    """Erase an annotator: the link stops working, the answers are kept under a random name, or deleted."""
    from evenhand.annotate.study_server import forget_person

    what = "their answers are deleted" if answers_too else "their answers stay under a random name"
    print_lines(f"forget {annotator} in {study}: the link stops, {what}", console=errors)
    if dry_run:
        return
    name = forget_person(study, annotator, answers_too=answers_too, **options)
    print_lines("forgotten" if answers_too else f"forgotten; the answers are now those of {name}")


@app.command("agreement")
@takes(AgreementOptions, SOURCE)
def agreement_command(source: Path, *, dry_run: bool, **options: Any) -> None:
    """Report how much annotators agree, who disagrees with the others and where, and one label per text."""
    from evenhand.annotate.agreement import prepare

    run_job(prepare(source, **options), dry_run=dry_run)


@app.command("ratings")
@takes(MethodRatingOptions, SOURCE)
def ratings_command(source: Path, *, dry_run: bool, **options: Any) -> None:
    """Compare rated methods: means, and paired t tests against a baseline (a likert study)."""
    from evenhand.annotate.agreement import prepare_ratings

    run_job(prepare_ratings(source, **options), dry_run=dry_run)


@app.command("export")
@takes(ExportOptions, SOURCE)
def export_command(source: Path, *, dry_run: bool, **options: Any) -> None:
    """Export a study's answers for other tools; cells that look like formulas are escaped in CSV."""
    from evenhand.annotate.label_formats import prepare

    _exchange(prepare(source, verb="export", **options), dry_run=dry_run)


@app.command("import")
@takes(ImportOptions, Argument("source", Path, "JSON of Label Studio or Argilla, or a table of ratings."))
def import_command(source: Path, *, dry_run: bool, **options: Any) -> None:
    """Import another tool's answers, check them, and write them as JSONL."""
    from evenhand.annotate.label_formats import prepare

    _exchange(prepare(source, verb="import", **options), dry_run=dry_run)


def _exchange(job: PreparedJob[list[Path]], *, dry_run: bool) -> None:
    for path in _run(job, dry_run=dry_run) or ():
        print_path(path, "written: ")


@app.command("sample")
@takes(ItemOptions, Argument("source", Path, "A run folder, or a file of samples as `replay` reads it."))
def sample_command(source: Path, *, dry_run: bool, **options: Any) -> None:
    """Choose the texts to annotate: some positive and some negative for every prompt."""
    from evenhand.annotate.study_creation import prepare_items

    if items := run_to_end(prepare_items(source, **options), dry_run=dry_run):
        print_path(items.path, f"{items.table.height} texts: ")
        for shortfall in items.shortfalls:
            print_warning(shortfall.reason)
        if items.shortfalls:
            raise typer.Exit(PARTIAL)


@app.command("settle")
@takes(
    AggregateOptions, Argument("file", Path, "One row per text and annotator: JSONL, CSV, TSV or Parquet.")
)
def settle_command(file: Path, *, dry_run: bool, **options: Any) -> None:
    """Aggregate several people's labels into one per text: agreement, majority, train, dev and test parts."""
    from evenhand.annotate.label_aggregation import prepare

    if labels := _run(prepare(file, **options), dry_run=dry_run):
        print_lines(*labels.lines())
        for name, reason in labels.undivided.items():
            print_warning(f"{name}: not split into train, dev and test, because {reason}")
        if labels.undivided:
            raise typer.Exit(PARTIAL)


def _show_state(study: Path, database: str | None) -> int:
    """Print the progress of a study; returns the number of people with a link."""
    from evenhand.annotate.study_server import read_study_state

    progress = read_study_state(study, database=database)
    print_lines(
        f"study {study}",
        f"  people {progress.links:,} with a link",
        f"  texts  {progress.finished:,} of {progress.items:,} have all answers, {progress.begun:,} begun",
        f"  given  {progress.answers:,} answers",
        console=errors,
    )
    return progress.links


def _run(job: PreparedJob[T], *, dry_run: bool) -> T | None:
    """Show the plan with its warnings and run the job; None if only the plan was shown."""
    print_plan(job.plan())
    for note in job.notes:
        print_warning(note)
    return None if dry_run else job.run()
