"""``evenhand debias``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from evenhand.cli import completion
from evenhand.cli import options as o
from evenhand.core.errors import InputError

if TYPE_CHECKING:
    from evenhand.api.debias import Debias, WrittenText

_HOW = "Mitigation"


def command(
    model: Annotated[
        str,
        typer.Argument(help="builtin, a folder, a Hub id or a .gguf file.", autocompletion=completion.models),
    ] = "builtin",
    mode: Annotated[
        str,
        typer.Option(
            help="embedding, classifier, naive or in-glove.",
            rich_help_panel=_HOW,
            autocompletion=completion.modes,
        ),
    ] = "embedding",
    prompt: Annotated[list[str] | None, typer.Option(help="A text to be continued; repeatable.")] = None,
    suite: Annotated[
        list[str] | None,
        typer.Option(help="Audit these suites with the mitigation on.", autocompletion=completion.suites),
    ] = None,
    strength: Annotated[
        float | None, typer.Option(help="Lambda at a text's first token [0.6].", rich_help_panel=_HOW)
    ] = None,
    sigma: Annotated[
        float | None,
        typer.Option(
            help="Target divergence a token, in nats [0.02; classifier 0.05].", rich_help_panel=_HOW
        ),
    ] = None,
    words: Annotated[
        str | None,
        typer.Option(
            help="ideology, gender, or a JSON file with two lists [ideology].", rich_help_panel=_HOW
        ),
    ] = None,
    calibrator: Annotated[
        str | None,
        typer.Option(help="What `evenhand train calibrator` wrote (classifier).", rich_help_panel=_HOW),
    ] = None,
    vectors: Annotated[
        str | None, typer.Option(help="Word vectors (naive, in-glove).", rich_help_panel=_HOW)
    ] = None,
    option: o.MitigateOption = None,
    vanilla: Annotated[
        bool, typer.Option("--vanilla", help="Show what the model itself writes, too.")
    ] = False,
    metrics: o.Metrics = None,
    samples: o.Samples = None,
    limit: o.Limit = None,
    max_new_tokens: o.MaxNewTokens = None,
    temperature: o.Temperature = None,
    top_k: o.TopK = None,
    top_p: o.TopP = None,
    stop: o.Stop = None,
    seed: o.Seed = None,
    device: o.Device = None,
    batch: o.Batch = None,
    offline: o.Offline = False,
    out: o.Out = None,
    dry_run: o.DryRun = False,
    fresh: o.Fresh = False,
) -> None:
    """Write text with a mitigation on."""
    from evenhand.api.debias import prepare

    prepared = prepare(
        model,
        mode=mode,
        prompt=prompt,
        suite=suite,
        strength=strength,
        sigma=sigma,
        words=words,
        calibrator=calibrator,
        vectors=vectors,
        options=o.values(option),
        vanilla=vanilla,
        metrics=metrics,
        samples=samples,
        limit=limit,
        max_new_tokens=max_new_tokens,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        stop=stop,
        seed=seed,
        device=device,
        batch=batch,
        offline=offline or None,
        out=out,
        fresh=fresh,
        command=o.command_line(),
    )
    _carry_out(prepared, dry_run=dry_run)


def _carry_out(prepared: Debias, *, dry_run: bool) -> None:
    from evenhand.cli.console import TerminalProgress, show_plan, warn
    from evenhand.cli.ending import carry_out
    from evenhand.cli.entry import PARTIAL

    if prepared.audit is not None:
        carry_out(prepared.audit, dry_run=dry_run)
        return
    show_plan(prepared.plan())
    if dry_run:
        return
    found = prepared.run(TerminalProgress())
    for text in found.texts:
        _show(text, with_vanilla=prepared.vanilla)
    failed = [text.failure for text in found.texts if text.failure is not None]
    if len(failed) == len(found.texts):
        raise InputError(
            f"no text could be written: {failed[0]}",
            accepted="prompts that fit the model's context together with the new tokens",
            todo="shorten the prompt, or ask for fewer tokens",
        )
    if failed:
        warn(f"{len(failed):,} of {len(found.texts):,} texts failed: {failed[0]}")
        raise typer.Exit(PARTIAL)


def _show(text: WrittenText, *, with_vanilla: bool) -> None:
    from evenhand.cli.console import output

    def line(word: str, written: str | None) -> None:
        said = f"[{text.failure}]" if written is None else text.prompt + written
        output.print(f"{word}{said}", highlight=False, markup=False, soft_wrap=True)

    if with_vanilla:
        line("vanilla:   ", text.vanilla)
    line("mitigated: " if with_vanilla else "", text.text)
