"""``evenhand probe``."""

from __future__ import annotations

from typing import Annotated

import typer

from evenhand.cli import options as o

_MEASURING = "Measuring"


def command(
    classifier: Annotated[
        str,
        typer.Argument(
            help="An emotion classifier: `emotion` (embedded), a Hub id or folder, replay:FILE with "
            "predictions, or endpoint:URL."
        ),
    ] = "emotion",
    pairs: Annotated[
        list[str] | None,
        typer.Option(
            help="builtin, eec, bits, crows (eec:PATH says where), or a file of your own; repeated or "
            "comma-separated [builtin].",
            rich_help_panel=_MEASURING,
        ),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            help="THEIRS=OURS: what a label of the classifier means; repeatable.", rich_help_panel=_MEASURING
        ),
    ] = None,
    over: Annotated[
        str | None,
        typer.Option(
            help="Pairs the report shows: all, or agreeing in their class [all]. The table has both.",
            rich_help_panel=_MEASURING,
        ),
    ] = None,
    score: Annotated[
        str | None,
        typer.Option(
            help="Intensity the report shows: the emotion's own, or that of the class predicted [emotion].",
            rich_help_panel=_MEASURING,
        ),
    ] = None,
    level: o.Level = None,
    correction: o.Correction = None,
    seed: o.Seed = None,
    out: o.Out = None,
    config: o.Config = None,
    device: o.Device = None,
    batch: o.Batch = None,
    offline: o.Offline = False,
    max_failures: o.MaxFailures = None,
    dry_run: o.DryRun = False,
    fresh: o.Fresh = False,
) -> None:
    """Compare what an emotion classifier finds in the same sentence for different groups."""
    from evenhand.api.probe import prepare
    from evenhand.cli.ending import carry_out
    from evenhand.report.probe.terminal import probe_summary

    prepared = prepare(
        classifier,
        pairs=pairs,
        labels=label or None,
        over=over,
        score=score,
        level=level,
        correction=correction,
        seed=seed,
        out=out,
        config=config,
        device=device,
        batch=batch,
        offline=offline or None,
        max_failures=max_failures,
        fresh=fresh,
        command=o.command_line(),
    )
    carry_out(prepared, dry_run=dry_run, found=probe_summary)
