"""The program ``evenhand`` and its commands."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from evenhand._version import __version__
from evenhand.cli import annotate, audits, installation, resources, studies


class _Program(TyperGroup):
    """The commands; a library that exits the process raises an error instead, as the work is unfinished."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (SystemExit, EOFError) as error:  # Typer would treat an EOFError as an aborted prompt
            raise RuntimeError(f"a library exited: {type(error).__name__}: {error}") from error


app = typer.Typer(
    name="evenhand",
    cls=_Program,
    help="Measure and mitigate social and political bias in text that language models generate.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("audit")(audits.audit)
app.command("score")(audits.score)
app.command("compare")(audits.compare)
app.command("gate")(audits.gate)
app.command("corpus")(studies.corpus)
app.command("probe")(studies.probe)
app.command("debias")(audits.debias)
app.command("tradeoff")(audits.tradeoff)
app.add_typer(studies.terms, name="terms")
app.add_typer(annotate.app, name="annotate")
app.command("build")(resources.build)
app.command("train", cls=resources.TaskHelpCommand)(resources.train)
app.command("validate")(studies.validate)
app.command("replicate")(studies.replicate)
app.command("report")(audits.report)
app.command("list")(installation.list_names)
app.command("show")(installation.show)
app.command("export")(resources.export)
app.command("export-task")(resources.export_task)
app.command("merge")(audits.merge)
app.command("power")(audits.power)
app.command("doctor")(installation.doctor)
app.command("init")(installation.init)
app.command("clean")(installation.clean)


def _print_version(is_given: bool) -> None:
    if is_given:
        typer.echo(f"evenhand {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Measure and mitigate social and political bias in text that language models generate."""
