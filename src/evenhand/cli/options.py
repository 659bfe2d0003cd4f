"""Options that several commands share, written once."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli import completion
from evenhand.core.errors import InputError

_MODEL, _SAMPLING, _MEASURING, _RUNNING = "Model", "Sampling", "Measuring", "Running"

Metrics = Annotated[
    list[str] | None,
    typer.Option(
        help="Metrics, repeated or comma-separated; NAME=ORG/MODEL@REV puts another model behind one.",
        autocompletion=completion.metrics,
        rich_help_panel=_MEASURING,
    ),
]
Mask = Annotated[
    str | None,
    typer.Option(
        help="Mask group mentions before scoring as the papers do (`paper`), or not (`none`).",
        rich_help_panel=_MEASURING,
    ),
]
Baseline = Annotated[
    list[str] | None,
    typer.Option(
        help="AXIS=GROUP the others are compared with, or AXIS=(rest), AXIS=(all).",
        rich_help_panel=_MEASURING,
    ),
]
Level = Annotated[float | None, typer.Option(help="Level of intervals [0.95].", rich_help_panel=_MEASURING)]
Correction = Annotated[
    str | None, typer.Option(help="Correction over a family: bh or holm [bh].", rich_help_panel=_MEASURING)
]
Test = Annotated[
    str | None,
    typer.Option(
        help="Test behind p-values: cluster, or a paper's own: binomial, chi-square, paired-t, wilcoxon "
        "[cluster].",
        rich_help_panel=_MEASURING,
    ),
]
Pairs = Annotated[
    bool,
    typer.Option("--pairs", help="Compare every group with every other one too.", rich_help_panel=_MEASURING),
]
Check = Annotated[
    str | None,
    typer.Option(
        help="Check supported gaps by permutation: auto, all or none [auto].", rich_help_panel=_MEASURING
    ),
]
Strata = Annotated[
    list[str] | None,
    typer.Option(
        "--stratum",
        help="Look at gaps again inside each value of this: a key of the prompts' meta, `template`, or a "
        "column of the file; repeatable.",
        rich_help_panel=_MEASURING,
    ),
]
Seed = Annotated[int | None, typer.Option(help="Seed of everything random [0].", rich_help_panel=_SAMPLING)]
Out = Annotated[Path | None, typer.Option(help="Run folder [runs/...].", rich_help_panel=_RUNNING)]
Config = Annotated[Path | None, typer.Option(help="Settings file; options win.", rich_help_panel=_RUNNING)]
Device = Annotated[str | None, typer.Option(help="auto, cpu, cuda, cuda:1 ...", rich_help_panel=_RUNNING)]
Batch = Annotated[int | None, typer.Option(help="Rows at a time.", rich_help_panel=_RUNNING)]
Engine = Annotated[
    str | None,
    typer.Option(
        help="Where models write and score: local, or ray for many machines [local].",
        rich_help_panel=_RUNNING,
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        help="Ray: workers, each with the model [one a GPU, else one a few cores].", rich_help_panel=_RUNNING
    ),
]
Address = Annotated[
    str | None,
    typer.Option(help="Ray: address of a running cluster [a new one here].", rich_help_panel=_RUNNING),
]
Offline = Annotated[bool, typer.Option("--offline", help="Load from disk only.", rich_help_panel=_RUNNING)]
Log = Annotated[
    list[str] | None,
    typer.Option(
        "--log",
        help="Log numbers, tables and figures of the finished run: mlflow, wandb; repeatable.",
        rich_help_panel=_RUNNING,
    ),
]
LogTexts = Annotated[
    bool,
    typer.Option("--log-texts", help="With --log: log prompts and texts as well.", rich_help_panel=_RUNNING),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done.", rich_help_panel=_RUNNING)]
Fresh = Annotated[
    bool, typer.Option("--fresh", help="Empty the run folder and start again.", rich_help_panel=_RUNNING)
]
MaxFailures = Annotated[
    float | None, typer.Option(help="Stop above this share of failed texts [0.2].", rich_help_panel=_RUNNING)
]
Preset = Annotated[
    str | None,
    typer.Option(
        help="Sampling of a paper: bold-gpt2, bold-ctrl, bold-bert, regard, political.",
        rich_help_panel=_SAMPLING,
    ),
]
Samples = Annotated[int | None, typer.Option(help="Texts a prompt [5].", rich_help_panel=_SAMPLING)]
Limit = Annotated[
    int | None, typer.Option(help="Prompts a suite at most, spread over groups.", rich_help_panel=_SAMPLING)
]
MaxNewTokens = Annotated[
    int | None, typer.Option(help="Tokens a text at most [30].", rich_help_panel=_SAMPLING)
]
Temperature = Annotated[float | None, typer.Option(help="0 is greedy [1].", rich_help_panel=_SAMPLING)]
TopK = Annotated[int | None, typer.Option(help="0 keeps every token [40].", rich_help_panel=_SAMPLING)]
TopP = Annotated[float | None, typer.Option(help="1 keeps every token [0.95].", rich_help_panel=_SAMPLING)]
RepetitionPenalty = Annotated[float | None, typer.Option(help="1 is none [1].", rich_help_panel=_SAMPLING)]
ControlCode = Annotated[str | None, typer.Option(help="For CTRL models.", rich_help_panel=_SAMPLING)]
Stop = Annotated[
    str | None,
    typer.Option(
        help="Cut at the first sentence end (`sentence`) or not (`none`).", rich_help_panel=_SAMPLING
    ),
]
BurnIn = Annotated[
    int | None,
    typer.Option(
        help="Masked models: iterations that sample before the likeliest token is taken [200].",
        rich_help_panel=_SAMPLING,
    ),
]
Iterations = Annotated[
    int | None,
    typer.Option(
        help="Masked models: how often one place of a text is drawn anew [500].", rich_help_panel=_SAMPLING
    ),
]
RetryFailed = Annotated[
    bool, typer.Option("--retry-failed", help="Ask again for texts that failed.", rich_help_panel=_RUNNING)
]

MitigateOption = Annotated[
    list[str] | None,
    typer.Option(
        "--mitigate-option",
        help="NAME=VALUE of the mitigation, such as strength=0.3.",
        rich_help_panel=_MODEL,
    ),
]


def values(pairs: list[str] | None) -> dict[str, str | int | float | bool] | None:
    """NAME=VALUE pairs as a mapping, numbers and yes or no told from words; None where none was given."""
    if not pairs:
        return None
    found: dict[str, str | int | float | bool] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not (name and equals and value):
            raise InputError(f"the option {pair!r}", accepted="NAME=VALUE, such as strength=0.3")
        found[name] = _value(value)
    return found


def _value(text: str) -> str | int | float | bool:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def baselines(pairs: list[str] | None) -> dict[str, str] | None:
    """AXIS=GROUP pairs as a mapping; None where none was given."""
    if not pairs:
        return None
    found: dict[str, str] = {}
    for pair in pairs:
        axis, equals, group = pair.partition("=")
        if not (axis and equals and group):
            raise InputError(f"--baseline {pair!r}", accepted="AXIS=GROUP, such as gender=American_actors")
        found[axis] = group
    return found


def command_line(*, secret: str | None = None) -> str:
    """The command as it was typed, for the report; a secret URL in it is ``URL``."""
    # Before words are quoted, which would write a quotation mark in the secret in another way.
    words = (word.replace(secret, "URL") if secret else word for word in sys.argv[1:])
    return shlex.join(["evenhand", *words])
