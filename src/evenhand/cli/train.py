"""``evenhand train``."""

from __future__ import annotations

from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from evenhand.cli import completion
from evenhand.cli.commands import Argument, takes
from evenhand.training.options import TrainOptions

if TYPE_CHECKING:
    from evenhand.training.train import TrainingResult

_TASK = "evenhand.train.task"


class TaskHelpCommand(TyperCommand):
    """``train``, whose help after a task has the options of that task alone."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Note the task before ``--help`` is met, which ends the reading of arguments."""
        ctx.meta[_TASK] = next((word for word in args if word in completion.TRAINING_TASKS), "")
        return super().parse_args(ctx, args)

    def get_help(self, ctx: typer.Context) -> str:  # type: ignore[override]
        """The help, written or returned as Typer does it."""
        from evenhand.training.train import ignored_options

        left_out = ignored_options(ctx.meta.get(_TASK, ""))
        shown = copy(self)
        shown.params = [option for option in self.params if option.name not in left_out]
        return TyperCommand.get_help(shown, ctx)


@takes(
    TrainOptions,
    Argument(
        "task",
        str,
        "regard, toxicity, emotion, ideology, norms, embeddings or calibrator.",
        complete="tasks",
    ),
    Argument(
        "data",
        list[Path] | None,
        "A table of texts and labels (JSONL, CSV, TSV, Parquet); for norms tables of rated words; "
        "for embeddings running text.",
        None,
    ),
)
def command(task: str, data: list[Path] | None, *, dry_run: bool, **options: Any) -> None:
    """Train on your own data. `evenhand train TASK --help` has the options of that task alone."""
    from evenhand.cli.run_command import finished
    from evenhand.training.train import prepare

    trained = finished(prepare(task, data or (), **options), dry_run=dry_run, kept="epochs")
    if trained is not None:
        _show(trained)


def _show(trained: TrainingResult) -> None:
    from evenhand.cli.console import output, print_path, print_warning

    if trained.was_done:
        print_warning("done already by an earlier run: nothing was trained. Start over with --fresh.")
    for name, value in trained.measures.items():
        shown = f"{value:,.0f}" if name == "words" or name.split("_")[-1] == "n" else f"{value:.3f}"
        output.print(f"{name:<18} {shown}", highlight=False, markup=False)
    print_path(trained.folder / "card.md", "card: ")
