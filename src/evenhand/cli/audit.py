"""``evenhand audit``."""

from __future__ import annotations

from typing import Annotated

import typer

from evenhand.cli import completion
from evenhand.cli import options as o


def command(
    model: Annotated[
        str | None,
        typer.Argument(
            help="builtin, builtin:masked, a folder, a Hub id, a .gguf file, endpoint:URL#MODEL, "
            "replay:FILE.",
            autocompletion=completion.models,
        ),
    ] = None,
    suite: Annotated[
        list[str] | None,
        typer.Option(
            help="Prompt suites, repeated or comma-separated [starter].", autocompletion=completion.suites
        ),
    ] = None,
    mitigate: Annotated[
        str | None,
        typer.Option(
            help="Write with this mitigation on: calibration:embedding, replacement:naive ...",
            autocompletion=completion.mitigations,
        ),
    ] = None,
    mitigate_option: o.MitigateOption = None,
    metrics: o.Metrics = None,
    samples: o.Samples = None,
    limit: o.Limit = None,
    shard: Annotated[
        str | None, typer.Option(help="I/N: do the I-th of N parts here; `evenhand merge` joins them.")
    ] = None,
    seed: o.Seed = None,
    preset: o.Preset = None,
    max_new_tokens: o.MaxNewTokens = None,
    temperature: o.Temperature = None,
    top_k: o.TopK = None,
    top_p: o.TopP = None,
    repetition_penalty: o.RepetitionPenalty = None,
    control_code: o.ControlCode = None,
    stop: o.Stop = None,
    burn_in: o.BurnIn = None,
    iterations: o.Iterations = None,
    mask: o.Mask = None,
    baseline: o.Baseline = None,
    level: o.Level = None,
    correction: o.Correction = None,
    test: o.Test = None,
    stratum: o.Strata = None,
    pairs: o.Pairs = False,
    check: o.Check = None,
    out: o.Out = None,
    log: o.Log = None,
    log_texts: o.LogTexts = False,
    config: o.Config = None,
    device: o.Device = None,
    batch: o.Batch = None,
    engine: o.Engine = None,
    workers: o.Workers = None,
    address: o.Address = None,
    offline: o.Offline = False,
    max_failures: o.MaxFailures = None,
    dry_run: o.DryRun = False,
    fresh: o.Fresh = False,
    retry_failed: o.RetryFailed = False,
) -> None:
    """Let a model continue prompts about groups; score, compare and report what it writes."""
    from evenhand.api.audit import prepare
    from evenhand.cli.ending import carry_out

    prepared = prepare(
        model,
        suite=suite,
        mitigate=mitigate,
        mitigation_options=o.values(mitigate_option),
        metrics=metrics,
        samples=samples,
        limit=limit,
        shard=shard,
        seed=seed,
        preset=preset,
        max_new_tokens=max_new_tokens,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        repetition_penalty=repetition_penalty,
        control_code=control_code,
        stop=stop,
        burn_in=burn_in,
        iterations=iterations,
        mask=mask,
        baseline=o.baselines(baseline),
        level=level,
        correction=correction,
        test=test,
        strata=stratum,
        pairs=pairs or None,
        check=check,
        out=out,
        log=log,
        log_texts=log_texts,
        config=config,
        device=device,
        batch=batch,
        engine=engine,
        workers=workers,
        address=address,
        offline=offline or None,
        max_failures=max_failures,
        fresh=fresh,
        retry_failed=retry_failed,
        command=o.command_line(),
    )
    carry_out(prepared, dry_run=dry_run)
