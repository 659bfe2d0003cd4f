"""The commands that audit generated text: ``audit``, ``score``, ``compare``, ``gate`` and related ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from evenhand.audits.options import (
    CompareOptions,
    DebiasOptions,
    GateOptions,
    MergeOptions,
    PowerOptions,
    ReportOptions,
    TradeoffOptions,
)
from evenhand.cli.commands import Argument, takes
from evenhand.cli.console import errors, output, print_lines, print_path, print_warning, run_job, run_to_end
from evenhand.cli.entry import PARTIAL, GateNotPassedError
from evenhand.cli.streams import escape_output, write_command
from evenhand.core.errors import InputError
from evenhand.core.options import Option
from evenhand.run_options import AuditOptions, ScoreOptions

if TYPE_CHECKING:
    from evenhand.audits.gate import GateResult

_VERDICTS = {"passes": "pass", "fails": "fail", "inconclusive": "inconclusive"}
_LOCAL_MODEL = Argument(
    "model", str, "builtin (the default), a folder, a Hub id or a .gguf file.", "builtin", "models"
)
_RUNS = "Two or more run folders; the first is the reference."
_TEXTS = "JSONL, CSV, TSV, Parquet, lm-eval samples, an Inspect log. Without FILE: an example."
_MODEL = "builtin, builtin:masked, a folder, a Hub id, a .gguf file, endpoint:URL#MODEL, replay:FILE."


@takes(AuditOptions, Argument("model", str | None, _MODEL, None, "models"))
def audit(model: str | None, *, dry_run: bool, **options: Any) -> None:
    """Let a model continue prompts about groups; score and compare the texts, and write a report."""
    from evenhand.audits.audit import prepare

    run_job(prepare(model, **options), dry_run=dry_run)


@takes(ScoreOptions, Argument("file", Path | None, _TEXTS, None))
def score(file: Path | None, *, dry_run: bool, **options: Any) -> None:
    """Score and compare texts you already have."""
    from evenhand.audits.score import prepare

    run_job(prepare(file, **options), dry_run=dry_run)


@takes(CompareOptions, Argument("runs", list[Path], _RUNS))
def compare(runs: list[Path], *, dry_run: bool, **options: Any) -> None:
    """Compare models or mitigations by prompt: differences between gaps, and a leaderboard with ties."""
    from evenhand.audits.compare import prepare

    run_job(prepare(*runs, **options), dry_run=dry_run)


@takes(MergeOptions, Argument("runs", list[Path], "All parts of a run made with --shard I/N."))
def merge(runs: list[Path], *, dry_run: bool, **options: Any) -> None:
    """Join the parts of an audit made with `--shard I/N` into one run."""
    from evenhand.audits.merge import prepare

    run_job(prepare(*runs, **options), dry_run=dry_run)


@takes(ReportOptions, Argument("run", Path, "A run folder."))
def report(run: Path, **options: Any) -> None:
    """Rewrite the report of a run."""
    from evenhand.report.render_run import render

    for path in render(run, **options).values():
        print_path(path)


@takes(
    PowerOptions,
    Argument("run", Path | None, "A pilot run of audit or score (default: plan from assumptions).", None),
)
def power(run: Path | None, **options: Any) -> None:
    """Plan how many prompts and samples are needed to detect a gap, from a pilot run or assumptions."""
    from evenhand.audits.power import power, summarise_plan

    plan = power(run, **options)
    has_pilot, assumptions = run is not None, plan.assumptions
    output.print(
        summarise_plan(
            plan.table, gap=plan.gap, power=plan.power, has_pilot=has_pilot, assumptions=assumptions
        )
    )


class _GateOptions(GateOptions, total=False):
    github: Annotated[bool, Option("Print annotations for GitHub Actions.")]


@takes(_GateOptions, Argument("run", Path, "A run folder of audit or score."))
def gate(run: Path, *, dry_run: bool, github: bool = False, **options: Any) -> None:
    """Check the gaps of a run against limits: exit 1 if one is exceeded (--strict: or inconclusive).

    Exit codes: 0 passed, or inconclusive without --strict; 1 not passed; 2 an error.
    """
    from evenhand.audits.gate import gate

    if github:
        # Group names come from the data, and the CI runner reads every line of both streams.
        escape_output()
    result = gate(run, **{**options, **({"junit": None} if dry_run else {})})
    errors.print(f"[bold]gate {escape(str(result.run.path))}[/]", highlight=False)
    for limit in dict.fromkeys(f"{check.rule.kind} {check.rule}" for check in result.checks):
        errors.print(f"  limit  {escape(limit)}", highlight=False, soft_wrap=True)
    errors.print(f"  checks {len(result.checks):,}", highlight=False)
    if dry_run:
        return
    _print_gate(result)
    for line in result.annotations() if github else ():
        write_command(line)
    if result.exit_code:
        raise GateNotPassedError


def _print_gate(result: GateResult) -> None:
    from evenhand.audits.report.gate_formats import to_terminal_table

    output.print(to_terminal_table(result.checks))
    counts = ", ".join(f"{count:,} {_VERDICTS[verdict]}" for verdict, count in result.counts.items())
    inconclusive = result.verdict == "inconclusive"
    verb = "is inconclusive" if inconclusive else result.verdict
    output.print(f"the gate {verb}: {counts}; exit code {result.exit_code}", highlight=False)
    if inconclusive and not result.strict:
        print_warning(
            "some limits are neither clearly kept nor clearly exceeded: the exit code is 0 (1 with --strict)"
        )
    for note in result.warnings:
        print_warning(note)
    if result.expected_false_failures >= 1:
        print_warning(
            f"up to {result.expected_false_failures:.0f} of {len(result.checks):,} checks would fail by "
            "chance if every gap were exactly at its limit"
        )


@takes(DebiasOptions, _LOCAL_MODEL)
def debias(model: str, *, dry_run: bool, **options: Any) -> None:
    """Generate text with a mitigation."""
    from evenhand.audits.debias import prepare

    job = prepare(model, **options)
    if job.audit is not None:
        run_job(job.audit, dry_run=dry_run)
        return
    result = run_to_end(job, dry_run=dry_run)
    if result is None:
        return
    for text in result.texts:
        both = {"vanilla:   ": text.vanilla, "mitigated: ": text.text}
        for word, continuation in (both if job.vanilla else {"": text.text}).items():
            print_lines(word + (f"[{text.failure}]" if continuation is None else text.prompt + continuation))
    failed = [text.failure for text in result.texts if text.failure is not None]
    if len(failed) == len(result.texts):
        raise InputError(
            f"no text could be generated: {failed[0]}",
            expected="prompts that fit the model's context together with the new tokens",
            fix="shorten the prompt, or ask for fewer tokens",
        )
    if failed:
        print_warning(f"{len(failed):,} of {len(result.texts):,} texts failed: {failed[0]}")
        raise typer.Exit(PARTIAL)


@takes(TradeoffOptions, _LOCAL_MODEL)
def tradeoff(model: str, *, dry_run: bool, **options: Any) -> None:
    """Plot bias against perplexity as the strength of a mitigation grows."""
    from evenhand.audits.tradeoff import prepare

    if run := run_to_end(prepare(model, **options), dry_run=dry_run):
        output.print((run.path / "tradeoff.md").read_text(encoding="utf-8"), highlight=False, markup=False)
        print_path(run.path / "tradeoff.svg", "drawn in ")
