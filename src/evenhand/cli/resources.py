"""The commands that create resources: classifiers, suites, exported models and tasks."""

from __future__ import annotations

from copy import copy
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand

from evenhand.audits.options import BuildOptions
from evenhand.cli.commands import CHOICES, Argument, takes
from evenhand.cli.console import end_with_problems, output, print_path, print_plan, print_warning, run_to_end
from evenhand.core.options import NoOptions
from evenhand.run_options import TaskOptions
from evenhand.training.options import TrainOptions

_TASK = "evenhand.train.task"


class TaskHelpCommand(TyperCommand):
    """``train``, whose ``--help`` after a task lists the options of that task only."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Store the task before ``--help`` stops the parsing of arguments."""
        ctx.meta[_TASK] = next((word for word in args if word in CHOICES["tasks"]), "")
        return super().parse_args(ctx, args)

    def get_help(self, ctx: typer.Context) -> str:  # type: ignore[override]
        """The help, written or returned as Typer does it."""
        from evenhand.training.train import ignored_options

        ignored = ignored_options(ctx.meta.get(_TASK, ""))
        of_task = copy(self)
        of_task.params = [option for option in self.params if option.name not in ignored]
        return TyperCommand.get_help(of_task, ctx)


@takes(
    TrainOptions,
    Argument(
        "task", str, "regard, toxicity, emotion, ideology, norms, embeddings or calibrator.", complete="tasks"
    ),
    Argument(
        "data",
        list[Path] | None,
        "A table of texts and labels (JSONL, CSV, TSV, Parquet); for norms, tables of rated words; "
        "for embeddings, running text.",
        None,
    ),
)
def train(task: str, data: list[Path] | None, *, dry_run: bool, **options: Any) -> None:
    """Train on your own data. `evenhand train TASK --help` lists the options of that task."""
    from evenhand.training.train import prepare

    result = run_to_end(prepare(task, data or (), **options), dry_run=dry_run, unit="epochs")
    if result is None:
        return
    if result.was_done:
        print_warning("already done by an earlier run: nothing was trained. Start again with --fresh.")
    for name, value in result.measures.items():
        number = f"{value:,.0f}" if name == "words" or name.split("_")[-1] == "n" else f"{value:.3f}"
        output.print(f"{name:<18} {number}", highlight=False, markup=False)
    print_path(result.folder / "card.md", "card: ")


@takes(BuildOptions, Argument("suite", str, "What to build: bold."))
def build(suite: str, *, dry_run: bool, **options: Any) -> None:
    """Collect prompts from your own pages, as BOLD collected them from Wikipedia."""
    from evenhand.collection.build import prepare

    result = run_to_end(prepare(suite, **options), dry_run=dry_run)
    if result is None:
        return
    total = sum(result.prompts.values())
    output.print(f"{total:,} prompts in {len(result.prompts)} groups from {result.pages:,} pages")
    for reason, count in sorted(result.rejected.items()):
        output.print(f"  left out, {reason}: {count:,} sentences", highlight=False)
    print_path(result.folder / "card.md", "card: ")
    if total:
        print_path(result.folder, "next: evenhand audit --suite bold-subset:")
    else:
        print_warning(
            "no sentence was collected: card.md says why; define your own groups and pages with --groups FILE"
        )
    end_with_problems(result.problems, "the rest was collected. All are in run.json")


@takes(
    NoOptions,
    Argument("model", str, "builtin or builtin:masked."),
    Argument("folder", Path, "A new or empty folder."),
)
def export(model: str, folder: Path) -> None:
    """Export an embedded model in the Hub's layout, for transformers and other tools."""
    from evenhand.models.export import export

    print_path(export(model, folder), "wrote ")


@takes(
    TaskOptions,
    Argument("suite", str, "A suite, such as starter or templates:FILE."),
    Argument("folder", Path, "Folder for the files of the task."),
)
def export_task(suite: str, folder: Path, *, dry_run: bool, **options: Any) -> None:
    """Export a suite as an lm-eval task that is measured with evenhand's metrics."""
    from evenhand.adapters.lm_eval_task import prepare

    task = prepare(suite, folder, **options)
    print_plan(task.plan())
    if not dry_run:
        print_path(task.run(), "wrote ")
