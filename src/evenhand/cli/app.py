"""The program ``evenhand``: its commands, and how errors end it.

Exit codes: 0 done, 1 a gate failed, 2 an error (what came, what is accepted, what to do), 3 done in part,
130 stopped by the user.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
from typing import Annotated, Final, NoReturn

import typer

from evenhand._version import __version__
from evenhand.cli import (
    annotate,
    audit,
    build,
    clean,
    compare,
    corpus,
    debias,
    doctor,
    export,
    export_task,
    gate,
    init,
    listing,
    merge,
    power,
    probe,
    replicate,
    report,
    score,
    terms,
    tradeoff,
    train,
    validate,
)
from evenhand.cli.console import PrintableFormatter, say
from evenhand.core.errors import EvenhandError, StorageError

_NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

app = typer.Typer(
    name="evenhand",
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
app.add_typer(terms.app, name="terms")
app.add_typer(annotate.app, name="annotate")
app.command("build")(build.command)
app.command("train", cls=train.ByTask)(train.command)
app.command("validate")(validate.command)
app.command("replicate")(replicate.command)
app.command("report")(report.command)
app.command("list")(listing.list_command)
app.command("show")(listing.show_command)
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


def main() -> None:
    """Run the command line and exit with its code."""
    log = logging.StreamHandler(sys.stderr)
    log.setFormatter(PrintableFormatter("%(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[log])
    # Retries are the back-end's private matter; what fails in the end is counted.
    logging.getLogger("stamina").setLevel(logging.ERROR)
    # A warning that finds no room on a full disk must not become a trace.
    logging.raiseExceptions = False
    try:
        app()
    except EvenhandError as error:
        _end(error)
    except BrokenPipeError:
        # The reader of our output went away, as `| head` does.
        sys.stderr.close()
        sys.exit(0)
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _NO_SPACE:
            _end(_full(error))
        if os.environ.get("EVENHAND_DEBUG"):
            raise
        say("defect", "bold red", f"{type(error).__name__}: {error}")
        say("  what to do", "", "finished work is kept; set EVENHAND_DEBUG=1 for the trace and report it")
        sys.exit(2)


def _full(error: OSError) -> StorageError:
    return StorageError(
        f"the disk is full: {error.filename or 'what this command prints'} could not be written",
        accepted="free space where it writes",
        todo="free some space and run the same command again; finished work is kept",
    )


def _end(error: EvenhandError) -> NoReturn:
    """Say what is wrong, as far as there is room for it, and exit with 2."""
    try:
        _explain(error)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except OSError:
        # What is left would be flushed at the exit, fail again, and change the code.
        for stream in (sys.stdout, sys.stderr):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(2)


def _explain(error: EvenhandError) -> None:
    say("error", "bold red", error.came)
    if error.accepted:
        say("  accepted", "", error.accepted)
    if error.todo:
        say("  what to do", "", error.todo)
