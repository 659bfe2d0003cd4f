"""The program ``evenhand``: its commands."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from evenhand._version import __version__
from evenhand.cli import (
    annotate,
    audit,
    build,
    catalogue,
    clean,
    compare,
    corpus,
    debias,
    doctor,
    export,
    export_task,
    gate,
    init,
    merge,
    power,
    probe,
    replicate,
    report,
    score,
    tradeoff,
    train,
    validate,
)


class _Program(TyperGroup):
    """The commands, none of which ends the process: a library that does has not finished their work."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (SystemExit, EOFError) as error:  # an EOFError would pass for an answer that was not given
            raise RuntimeError(f"a library gave up: {type(error).__name__}: {error}") from error


app = typer.Typer(
    name="evenhand",
    cls=_Program,
    help="Measure social and political bias in what a language model writes, and mitigate it.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("audit")(audit.command)
app.command("score")(score.command)
app.command("compare")(compare.command)
app.command("gate")(gate.command)
app.command("corpus")(corpus.command)
app.command("probe")(probe.command)
app.command("debias")(debias.command)
app.command("tradeoff")(tradeoff.command)
app.add_typer(corpus.app, name="terms")
app.add_typer(annotate.app, name="annotate")
app.command("build")(build.command)
app.command("train", cls=train.TaskHelpCommand)(train.command)
app.command("validate")(validate.command)
app.command("replicate")(replicate.command)
app.command("report")(report.command)
app.command("list")(catalogue.list_command)
app.command("show")(catalogue.show_command)
app.command("export")(export.command)
app.command("export-task")(export_task.command)
app.command("merge")(merge.command)
app.command("power")(power.command)
app.command("doctor")(doctor.command)
app.command("init")(init.command)
app.command("clean")(clean.command)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"evenhand {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Measure social and political bias in what a language model writes, and mitigate it."""
