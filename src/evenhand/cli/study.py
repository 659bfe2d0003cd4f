"""``evenhand annotate init``, ``invite``, ``serve``, ``status``, ``forget``."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from evenhand.api.people_options import (
    ForgetOptions,
    InviteOptions,
    ServeOptions,
    StudyDatabase,
    StudyOptions,
)
from evenhand.cli.commands import Argument, takes
from evenhand.core.hosts import LOOPBACK
from evenhand.core.options import Option

STUDY = Argument("study", Path, "The study's folder.")


class _InitOptions(StudyOptions, total=False):
    source: Annotated[
        list[Path],
        Option(
            "A run folder or a file of texts; repeat it for several methods.",
            flag="from",
            flag_type=list[Path],
            is_required=True,
        ),
    ]


class _InviteOptions(InviteOptions, total=False):
    people: Annotated[int, Option("Links to make.", default=1)]


@takes(_InitOptions, Argument("study", Path, "The folder to make."))
def init_command(study: Path, *, source: list[Path], dry_run: bool, **options: Any) -> None:
    """Make a study: texts drawn evenly over groups and scores, group mentions masked, with guidelines."""
    from evenhand.api.study import prepare
    from evenhand.cli.console import output, show_plan, warn

    prepared = prepare(study, source, **options)
    show_plan(prepared.plan())
    for note in prepared.notes():
        warn(note)
    if dry_run:
        return
    made = prepared.run()
    folder = quote(str(made.folder))
    output.print(
        f"study: {made.folder}\nnext:  evenhand annotate invite {folder} --people {prepared.people}\n"
        f"       evenhand annotate serve {folder}",
        highlight=False,
        soft_wrap=True,
        markup=False,
    )


@takes(_InviteOptions, STUDY)
def invite_command(study: Path, *, dry_run: bool, people: int = 1, **options: Any) -> None:
    """Make private links, one a person, and print them: they are stored nowhere and shown only now."""
    from evenhand.annotate.study import read_study
    from evenhand.api.collecting import HOST, PORT, invite_people, link, site
    from evenhand.cli.console import errors

    link(options.get("base") or site(HOST, PORT), "")
    again = options.get("again")
    who = (
        f"a new link for {again}; the old one stops"
        if again
        else f"{people} private link{'s' * (people != 1)}"
    )
    errors.print(f"invite to {read_study(study).folder}: {who}", highlight=False, markup=False)
    if dry_run:
        return
    for made in invite_people(study, people, **options):
        # Not by the console, which turns the tab into blanks.
        typer.echo(f"{made.annotator}\t{made.link}")


@takes(ServeOptions, STUDY)
def serve_command(study: Path, *, dry_run: bool, **options: Any) -> None:
    """Serve a study to the people who have links, until Ctrl-C."""
    from evenhand.api.collecting import HOST, PORT, link, proxy_networks, serve_study, site
    from evenhand.cli.console import errors, warn

    host = options.get("host", HOST)
    address = options.get("base") or site(host, options.get("port", PORT))
    link(address, "")
    proxies = proxy_networks(options.get("trusted_proxy", ()))
    links = _show_state(study, options.get("database"))
    if not links:
        warn(f"nobody has a link yet: evenhand annotate invite {quote(str(study))} --people 3")
    if host not in LOOPBACK and not address.startswith("https://"):
        warn("other machines can reach this, and without HTTPS links and answers can be read on the way")
    if dry_run:
        return
    errors.print(f"  serving at {address}, stop with Ctrl-C", highlight=False, markup=False)
    serve_study(study, **{**options, "trusted_proxy": proxies})


@takes(StudyDatabase, STUDY)
def status_command(study: Path, *, database: str | None = None) -> None:
    """Show study progress."""
    _show_state(study, database)


@takes(ForgetOptions, STUDY, Argument("annotator", str, "Whom: a1, a2, ..."))
def forget_command(
    study: Path, annotator: str, *, dry_run: bool, answers_too: bool = False, **options: Any
) -> None:
    """Erase an id: the link stops, the answers get a random name, or are deleted too."""
    from evenhand.api.collecting import forget_person
    from evenhand.cli.console import errors, output

    what = "their answers are deleted" if answers_too else "their answers stay under a random name"
    errors.print(
        f"forget {annotator} in {study}: the link stops, {what}",
        highlight=False,
        soft_wrap=True,
        markup=False,
    )
    if dry_run:
        return
    name = forget_person(study, annotator, answers_too=answers_too, **options)
    output.print(
        "forgotten" if answers_too else f"forgotten; the answers are now those of {name}", highlight=False
    )


def _show_state(study: Path, database: str | None) -> int:
    """Print the progress of a study; returns how many people have links."""
    from evenhand.api.collecting import study_progress
    from evenhand.cli.console import errors

    progress, links = study_progress(study, database=database)
    lines = (
        f"study {study}",
        f"  people {links:,} with a link",
        f"  texts  {progress.finished:,} of {progress.items:,} have all answers, {progress.begun:,} begun",
        f"  given  {progress.answers:,} answers",
    )
    for line in lines:
        errors.print(line, highlight=False, soft_wrap=True, markup=False)
    return links
