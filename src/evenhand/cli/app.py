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
_NAMES = {installation.list_names: "list"}
"""The names of commands whose functions are called otherwise."""
for command in (
    *(audits.audit, audits.score, audits.compare, audits.gate, studies.corpus, studies.probe, audits.debias),
    *(audits.tradeoff, resources.build, resources.train, studies.validate, studies.replicate, audits.report),
    *(installation.list_names, installation.show, resources.export, resources.export_task, audits.merge),
    *(audits.power, installation.doctor, installation.init, installation.clean),
):
    kind = resources.TaskHelpCommand if command is resources.train else None
    app.command(_NAMES.get(command, command.__name__.replace("_", "-")), cls=kind)(command)
app.add_typer(studies.terms, name="terms")
app.add_typer(annotate.app, name="annotate")


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
