"""``evenhand annotate init``, ``invite``, ``serve``, ``status``, ``forget``."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from evenhand.cli import options as o
from evenhand.core.hosts import LOOPBACK

_FILE = "Columns of a file"
Study = Annotated[Path, typer.Argument(help="The study's folder.")]
DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database",
        help="postgresql://USER:PASSWORD@HOST/NAME or sqlite:///FILE [the variable EVENHAND_DATABASE, else "
        "labels.db in the study]. Never written down.",
    ),
]
Base = Annotated[
    str | None, typer.Option(help="The address people use, if it is not this machine's own: https://HOST.")
]


def init_command(
    study: Annotated[Path, typer.Argument(help="The folder to make.")],
    source: Annotated[
        list[Path],
        typer.Option("--from", help="A run folder or a file of texts; repeat it for several methods."),
    ],
    task: Annotated[
        str, typer.Option(help="sentiment, regard, toxicity, gender, likert, or a TOML file of your own.")
    ] = "sentiment",
    items: Annotated[int, typer.Option(help="Texts to ask about.")] = 100,
    annotators: Annotated[int, typer.Option(help="People who answer each text.")] = 3,
    layout: Annotated[
        str | None, typer.Option(help="list, single or side-by-side [as the task says].")
    ] = None,
    mask: Annotated[
        str | None, typer.Option(help="Hide group mentions: suite, xyz or none [as the task says].")
    ] = None,
    text: Annotated[str, typer.Option(help="Column of the texts.", rich_help_panel=_FILE)] = "text",
    group: Annotated[
        list[str] | None,
        typer.Option(help="AXIS=COLUMN of the groups; repeatable.", rich_help_panel=_FILE),
    ] = None,
    prompt: Annotated[str | None, typer.Option(help="Column of the prompts.", rich_help_panel=_FILE)] = None,
    id: Annotated[
        str | None, typer.Option(help="Column of ids [row numbers].", rich_help_panel=_FILE)
    ] = None,
    mentions: Annotated[
        str | None, typer.Option(help="Column of the words to mask.", rich_help_panel=_FILE)
    ] = None,
    method: Annotated[
        str | None, typer.Option(help="Column of what wrote the text; never shown.", rich_help_panel=_FILE)
    ] = None,
    score: Annotated[
        str | None,
        typer.Option(help="Column of scores [the task's metric is run].", rich_help_panel=_FILE),
    ] = None,
    seed: o.Seed = None,
    dry_run: o.DryRun = False,
) -> None:
    """Make a study: texts drawn evenly over groups and scores, group mentions masked, with guidelines."""
    from evenhand.api.study import prepare
    from evenhand.cli.console import output, show_plan, warn

    prepared = prepare(
        study,
        source,
        task=task,
        items=items,
        annotators=annotators,
        seed=seed or 0,
        mask=mask,
        layout=layout,
        text=text,
        group=group or (),
        prompt=prompt,
        id=id,
        mentions=mentions,
        method=method,
        score=score,
    )
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


def invite_command(
    study: Study,
    people: Annotated[int, typer.Option(help="How many links to make.")] = 1,
    again: Annotated[
        str | None, typer.Option(help="A new link for somebody who lost theirs: a1, a2, ...")
    ] = None,
    base: Base = None,
    database: DatabaseUrl = None,
    dry_run: o.DryRun = False,
) -> None:
    """Make private links, one a person, and print them: they are stored nowhere and shown only now."""
    from evenhand.annotate.study import read_study
    from evenhand.api.collecting import HOST, PORT, invite_people, link, site
    from evenhand.cli.console import errors

    link(base or site(HOST, PORT), "")
    who = (
        f"a new link for {again}; the old one stops"
        if again
        else f"{people} private link{'s' * (people != 1)}"
    )
    errors.print(f"invite to {read_study(study).folder}: {who}", highlight=False, markup=False)
    if dry_run:
        return
    for made in invite_people(study, people, again=again, base=base, database=database):
        # Not by the console, which turns the tab into blanks.
        typer.echo(f"{made.annotator}\t{made.link}")


def serve_command(
    study: Study,
    host: Annotated[
        str, typer.Option(help="Where to listen; this machine alone unless told otherwise.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8765,
    base: Base = None,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(
            help="A proxy whose X-Forwarded-For counts: its address or network, as 10.0.0.0/8; repeatable "
            "[nobody's]."
        ),
    ] = None,
    database: DatabaseUrl = None,
    dry_run: o.DryRun = False,
) -> None:
    """Serve a study to the people who have links, until Ctrl-C."""
    from evenhand.api.collecting import link, proxy_networks, serve_study, site
    from evenhand.cli.console import errors, warn

    address = base or site(host, port)
    link(address, "")
    proxies = proxy_networks(trusted_proxy or ())
    links = _show_state(study, database)
    if not links:
        warn(f"nobody has a link yet: evenhand annotate invite {quote(str(study))} --people 3")
    if host not in LOOPBACK and not address.startswith("https://"):
        warn("other machines can reach this, and without HTTPS links and answers can be read on the way")
    if dry_run:
        return
    errors.print(f"  serving at {address}, stop with Ctrl-C", highlight=False, markup=False)
    serve_study(study, host=host, port=port, base=base, trusted_proxy=proxies, database=database)


def status_command(study: Study, database: DatabaseUrl = None) -> None:
    """Say how far a study is."""
    _show_state(study, database)


def forget_command(
    study: Study,
    annotator: Annotated[str, typer.Argument(help="Whom: a1, a2, ...")],
    answers_too: Annotated[
        bool, typer.Option("--answers", help="Delete the answers as well; others are asked instead.")
    ] = False,
    database: DatabaseUrl = None,
    dry_run: o.DryRun = False,
) -> None:
    """Erase an id: the link stops, the answers get a random name, or go as well."""
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
    name = forget_person(study, annotator, answers_too=answers_too, database=database)
    output.print(
        "forgotten" if answers_too else f"forgotten; the answers are now those of {name}", highlight=False
    )


def _show_state(study: Path, database: str | None) -> int:
    """Print how far a study is; returns how many people have links."""
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
