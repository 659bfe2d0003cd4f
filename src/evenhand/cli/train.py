"""``evenhand train``."""

from __future__ import annotations

from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperCommand

from evenhand.cli import completion
from evenhand.cli import options as o
from evenhand.training.presets import PRESETS

if TYPE_CHECKING:
    from evenhand.api.train import Trained, Training

_DATA, _HOW = "Data", "Training"
_TASK = "evenhand.train.task"


class ByTask(TyperCommand):
    """``train``, whose help after a task has the options of that task alone."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Note the task before ``--help`` is met, which ends the reading of arguments."""
        ctx.meta[_TASK] = next((word for word in args if word in completion.TRAINED), "")
        return super().parse_args(ctx, args)

    def get_help(self, ctx: typer.Context) -> str:  # type: ignore[override]
        """The help, written or returned as Typer does it."""
        from evenhand.api.train import not_taken

        left_out = not_taken(ctx.meta.get(_TASK, ""))
        shown = copy(self)
        shown.params = [option for option in self.params if option.name not in left_out]
        return TyperCommand.get_help(shown, ctx)


def command(
    task: Annotated[
        str,
        typer.Argument(
            help="regard, toxicity, emotion, ideology, norms, embeddings or calibrator.",
            autocompletion=completion.trained,
        ),
    ],
    data: Annotated[
        list[Path] | None,
        typer.Argument(
            help="A table of texts and labels (JSONL, CSV, TSV, Parquet); for norms tables of rated words; "
            "for embeddings running text."
        ),
    ] = None,
    study: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="A study, or an export of one, in place of DATA: the labels most people chose.",
            rich_help_panel=_DATA,
        ),
    ] = None,
    consensus: Annotated[
        str | None,
        typer.Option(help="Of a study: majority or dawid-skene [majority].", rich_help_panel=_DATA),
    ] = None,
    agreement: Annotated[
        float | None,
        typer.Option(help="Of a study: share of ratings a label needs [0.5].", rich_help_panel=_DATA),
    ] = None,
    backbone: Annotated[
        str | None,
        typer.Option(
            help="linear, builtin, builtin:masked, a Hub id or a folder; lstm, lstm:embedded, lstm:FILE; "
            "fasttext, attention, small-transformer; vader, textblob; ensemble:NAME or ensemble:A+B+C; "
            "for norms a file of word vectors.",
            rich_help_panel=_HOW,
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="The model a calibrator steers [builtin].", rich_help_panel=_HOW),
    ] = None,
    sides: Annotated[
        str | None,
        typer.Option(help="The two labels of a calibrator: FIRST,SECOND.", rich_help_panel=_DATA),
    ] = None,
    text: Annotated[
        str | None, typer.Option(help="Column of the texts [text].", rich_help_panel=_DATA)
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(
            help="Column of the labels [label]; for toxicity also several of 0 and 1: a,b.",
            rich_help_panel=_DATA,
        ),
    ] = None,
    valid: Annotated[
        Path | None,
        typer.Option(help="Another table to test on [a fifth of DATA].", rich_help_panel=_DATA),
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option(help="A third table, tested on at the end.", rich_help_panel=_DATA),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            help="A paper's training: " + ", ".join(PRESETS) + ".",
            rich_help_panel=_HOW,
        ),
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option(help="Train this often with other seeds, and average [1].", rich_help_panel=_HOW),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(help="Times each text is met [5; lstm 20; calibrator 3].", rich_help_panel=_HOW),
    ] = None,
    batch: Annotated[int | None, typer.Option(help="Texts at a time [32].", rich_help_panel=_HOW)] = None,
    learning_rate: Annotated[
        float | None,
        typer.Option(
            help="The highest learning rate [2e-5; embedded: 1e-4, 2e-4; calibrator 1e-3].",
            rich_help_panel=_HOW,
        ),
    ] = None,
    max_length: Annotated[
        int | None, typer.Option(help="Tokens a text is cut to [128].", rich_help_panel=_HOW)
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(
            help="Stop after this many epochs without a lower held-out loss [never].", rich_help_panel=_HOW
        ),
    ] = None,
    seed: o.Seed = None,
    out: o.Out = None,
    device: o.Device = None,
    offline: o.Offline = False,
    dry_run: o.DryRun = False,
    fresh: o.Fresh = False,
) -> None:
    """Train on your own data. `evenhand train TASK --help` has the options of that task alone."""
    from evenhand.api.train import prepare

    training = prepare(
        task,
        data or (),
        study=study,
        consensus=consensus,
        agreement=agreement,
        backbone=backbone,
        model=model,
        sides=sides,
        out=out,
        text=text,
        label=label,
        valid=valid,
        test=test,
        preset=preset,
        runs=runs,
        epochs=epochs,
        batch=batch,
        learning_rate=learning_rate,
        max_length=max_length,
        patience=patience,
        seed=seed or 0,
        device=device,
        offline=offline,
        fresh=fresh,
    )
    _carry_out(training, dry_run=dry_run)


def _carry_out(training: Training, *, dry_run: bool) -> None:
    from evenhand.cli.console import TerminalProgress, show_plan
    from evenhand.cli.ending import resumable

    show_plan(training.plan())
    if dry_run:
        return
    with resumable("epochs"):
        _show(training.run(TerminalProgress()))


def _show(trained: Trained) -> None:
    from evenhand.cli.console import output, warn

    if trained.was_done:
        warn("done already by an earlier run: nothing was trained. Start over with --fresh.")
    for name, value in trained.measures.items():
        shown = f"{value:,.0f}" if name == "words" or name.split("_")[-1] == "n" else f"{value:.3f}"
        output.print(f"{name:<18} {shown}", highlight=False, markup=False)
    output.print(f"card: {trained.folder / 'card.md'}", highlight=False, markup=False, soft_wrap=True)
