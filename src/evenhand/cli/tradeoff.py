"""``evenhand tradeoff``."""

from __future__ import annotations

from typing import Annotated

import typer

from evenhand.cli import completion
from evenhand.cli import options as o


def command(
    model: Annotated[
        str,
        typer.Argument(help="builtin, a folder, a Hub id or a .gguf file.", autocompletion=completion.models),
    ] = "builtin",
    mode: Annotated[
        str,
        typer.Option(help="embedding, classifier, naive or in-glove.", autocompletion=completion.modes),
    ] = "embedding",
    strengths: Annotated[
        str, typer.Option(help="Lambdas, or shares of replaced words, comma-separated.")
    ] = "0.1,0.3,0.5,0.7,0.9",
    suite: Annotated[
        list[str] | None, typer.Option(help="Suites that ask for distances [political, political:direct].")
    ] = None,
    calibrator: Annotated[
        str | None, typer.Option(help="What `evenhand train calibrator` wrote (classifier).")
    ] = None,
    option: o.MitigateOption = None,
    metrics: o.Metrics = None,
    samples: o.Samples = None,
    limit: o.Limit = None,
    max_new_tokens: o.MaxNewTokens = None,
    seed: o.Seed = None,
    device: o.Device = None,
    batch: o.Batch = None,
    offline: o.Offline = False,
    out: o.Out = None,
    dry_run: o.DryRun = False,
    fresh: o.Fresh = False,
) -> None:
    """Draw bias against perplexity as a mitigation grows stronger."""
    from evenhand.api.tradeoff import prepare
    from evenhand.cli.console import TerminalProgress, output, show_plan
    from evenhand.cli.ending import resumable

    prepared = prepare(
        model,
        mode=mode,
        strengths=strengths,
        suite=suite,
        metrics=metrics,
        calibrator=calibrator,
        options=o.values(option),
        samples=samples,
        limit=limit,
        max_new_tokens=max_new_tokens,
        seed=seed,
        device=device,
        batch=batch,
        offline=offline,
        out=out,
        fresh=fresh,
        command=o.command_line(),
    )
    show_plan(prepared.plan())
    if dry_run:
        return
    with resumable():
        run = prepared.run(TerminalProgress())
    output.print((run.path / "tradeoff.md").read_text(encoding="utf-8"), highlight=False, markup=False)
    output.print(f"drawn in {run.path / 'tradeoff.svg'}", highlight=False, soft_wrap=True, markup=False)
