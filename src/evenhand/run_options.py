"""The options of runs: those shared by many commands, and those of audits, scores, comparisons and gates.

Only light modules are imported here: the command line reads this module before it knows the command.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from evenhand.core.options import Option, pairs
from evenhand.core.protocols import Metric, Suite
from evenhand.core.registry import Option as Value

if TYPE_CHECKING:
    from evenhand.store.run import Run
else:
    Run = Path  # would import Polars

MODEL, SAMPLING, MEASURING, RUNNING, COLUMNS = "Model", "Sampling", "Measuring", "Running", "Columns"
"""Headings of the help text."""
_sampling = partial(Option, section="generation", panel=SAMPLING)
_measuring = partial(Option, section="compare", panel=MEASURING)
_execution = partial(Option, section="execution", panel=RUNNING)
_column = partial(Option, panel=COLUMNS)
_suite = partial(Option, section="suite")
_gate = partial(Option, section="gate")
_running = partial(Option, panel=RUNNING)
_python = partial(Option, has_flag=False)

Preset = Literal["bold-gpt2", "bold-ctrl", "bold-bert", "regard", "political"]


def values(given: Mapping[str, Value] | Sequence[str]) -> Mapping[str, Value]:
    """NAME=VALUE pairs as a mapping, with numbers and booleans converted."""
    if isinstance(given, Mapping):
        return given
    read = pairs("the option", "NAME=VALUE, such as strength=0.3")(given)
    return {name: _value(text) for name, text in read.items()}


def _value(text: str) -> Value:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


class Output(TypedDict, total=False):
    """Where a run is stored."""

    out: Annotated[Path | str | None, _running("Run folder (default runs/...).")]
    fresh: Annotated[bool, _running("Clear the run folder and start again.")]


class Recording(Output, total=False):
    """Where a run is stored, and the command recorded for it."""

    command: Annotated[str | None, _python("Python only: the command to record in the manifest.")]


class Configured(TypedDict, total=False):
    """The option of functions that read the settings file."""

    config: Annotated[Path | str | None, _running("Settings file; options override it.")]


class Seeded(TypedDict, total=False):
    """Randomness."""

    seed: Annotated[int, _sampling("Seed for all randomness.", default=0, ge=0)]


class Size(TypedDict, total=False):
    """How many texts are generated from a suite."""

    samples: Annotated[
        int | None, _sampling("Completions per prompt (default: the suite's number, usually 5).", ge=1)
    ]
    limit: Annotated[
        int | None,
        _suite(
            "Maximum number of prompts per suite, spread over groups (default: all).", ge=1, panel=SAMPLING
        ),
    ]


class Length(TypedDict, total=False):
    """The length of a text."""

    max_new_tokens: Annotated[int | None, _sampling("Maximum tokens per completion (default 30).", ge=1)]


class Writing(Size, Length, Seeded, total=False):
    """How a model generates text."""

    temperature: Annotated[float | None, _sampling("Temperature; 0 is greedy decoding (default 1).", ge=0)]
    top_k: Annotated[
        int | None, _sampling("Sample from the k most likely tokens; 0 keeps all (default 40).", ge=0)
    ]
    top_p: Annotated[
        float | None,
        _sampling("Sample from this probability mass; 1 keeps all tokens (default 0.95).", gt=0, le=1),
    ]
    stop: Annotated[
        Literal["sentence", "none"] | None,
        _sampling("Cut the text at the first sentence end (`sentence`) or not at all (`none`)."),
    ]


class Sampling(Writing, total=False):
    """``[generation]``; unset options come from the preset, then from the suite."""

    preset: Annotated[
        Preset | None, _sampling("Settings of a paper: bold-gpt2, bold-ctrl, bold-bert, regard, political.")
    ]
    repetition_penalty: Annotated[
        float | None, _sampling("Penalty on repeated tokens; 1 disables it (default 1).", gt=0)
    ]
    control_code: Annotated[str | None, _sampling("Control code, for CTRL models.")]
    burn_in: Annotated[
        int | None,
        _sampling(
            "Masked models: iterations that sample; later ones take the most likely token (default 200).",
            ge=0,
        ),
    ]
    iterations: Annotated[
        int | None,
        _sampling("Masked models: iterations, each of which redraws one position (default 500).", ge=1),
    ]


class Measured(TypedDict, total=False):
    """Which metrics run."""

    metrics: Annotated[
        str | Sequence[str | Metric] | None,
        Option(
            "Metrics, repeated or comma-separated; NAME=ORG/MODEL@REV runs one with another model "
            "(default: the suite's).",
            panel=MEASURING,
            complete="metrics",
        ),
    ]


class Intervals(TypedDict, total=False):
    """The confidence level of intervals."""

    level: Annotated[float, _measuring("Confidence level of the intervals.", default=0.95, gt=0.5, lt=1)]


class Correcting(Intervals, total=False):
    """Confidence intervals and the correction for multiple comparisons."""

    correction: Annotated[
        Literal["bh", "holm"],
        _measuring("Correction for multiple comparisons within a family: bh or holm.", default="bh"),
    ]


class Measuring(Measured, Correcting, total=False):
    """``[compare]``, and how texts are passed to metrics."""

    mask: Annotated[
        Literal["none", "paper"],
        _suite(
            "`paper`: mask group mentions before scoring, as the papers do; `none`: leave them.",
            default="paper",
            panel=MEASURING,
        ),
    ]
    baseline: Annotated[
        Mapping[str, str],
        _measuring(
            "AXIS=GROUP to compare the others with, or AXIS=(rest), AXIS=(all); repeatable "
            "(default: the suite's).",
            default={},
            key="baselines",
            parse=pairs("--baseline", "AXIS=GROUP, such as gender=American_actors"),
        ),
    ]
    test: Annotated[
        Literal["cluster", "binomial", "chi-square", "paired-t", "wilcoxon"],
        _measuring(
            "Test for p-values: cluster, or one from a paper: binomial, chi-square, paired-t, wilcoxon.",
            default="cluster",
        ),
    ]
    strata: Annotated[
        Sequence[str],
        _measuring(
            "Also compare within each value of this: a key of the prompts' metadata, `template`, or a "
            "column of the file; repeatable.",
            default=(),
            flag="stratum",
        ),
    ]
    pairs: Annotated[bool, _measuring("Also compare every pair of groups.")]
    intersections: Annotated[
        bool,
        _measuring(
            "Also compare groups of crossed axes, where a suite crosses them.", default=True, has_flag=False
        ),
    ]
    check: Annotated[
        Literal["auto", "all", "none"],
        _measuring(
            "Permutation test of gaps that are larger than chance: auto, all or none.", default="auto"
        ),
    ]


class Device(TypedDict, total=False):
    """Where models run."""

    device: Annotated[str, _execution("auto, cpu, cuda, or a specific GPU such as cuda:1.", default="auto")]


class Offline(TypedDict, total=False):
    """Whether the Hub may be contacted."""

    offline: Annotated[bool, _execution("Load from disk only.")]


class Loading(Device, Offline, total=False):
    """How models are loaded and run."""

    batch: Annotated[int | None, _execution("Sequences per batch (default: what fits on the device).", ge=1)]


class Engine(TypedDict, total=False):
    """Where the work runs."""

    engine: Annotated[
        Literal["local", "ray"],
        _execution("Where the work runs: local, or ray for many machines.", default="local"),
    ]
    address: Annotated[
        str | None, _execution("Ray: address of a running cluster (default: a new one on this machine).")
    ]


class Failing(TypedDict, total=False):
    """When a run gives up."""

    max_failures: Annotated[
        float, _execution("Stop if more than this share of the texts fails.", default=0.2, ge=0, le=1)
    ]


class Running(Loading, Engine, Failing, total=False):
    """``[execution]``: may change between two runs of the same command."""

    workers: Annotated[
        int | None,
        _execution("Ray: workers, each with the model (default: one per GPU, else one per few cores).", ge=1),
    ]


class Logging(TypedDict, total=False):
    """Where the finished run is logged."""

    log: Annotated[str | Sequence[str] | None, _running("Log the finished run: mlflow, wandb; repeatable.")]
    log_texts: Annotated[
        bool, _running("With --log: also log the report and the tables with prompts and texts.")
    ]
    callbacks: Annotated[
        Sequence[Callable[[Run], None]],
        _python("Python only: functions that are called with the finished run.", default=()),
    ]


class RunOptions(Measuring, Seeded, Recording, Logging, Configured, Running, total=False):
    """Options shared by all runs over texts."""


class AuditInputs(TypedDict, total=False):
    """The prompts of an audit, and the options of its mitigation under the mitigation's own names."""

    suite: Annotated[
        str | Sequence[str] | Suite | None,
        Option("Prompt suites, repeated or comma-separated (default starter).", complete="suites"),
    ]
    mitigation_options: Annotated[
        Mapping[str, Value] | None,
        Option(
            "Mitigation option NAME=VALUE, such as strength=0.3; repeatable.",
            flag="mitigate-option",
            panel=MODEL,
            parse=values,
        ),
    ]


class AuditOptions(AuditInputs, Sampling, RunOptions, total=False):
    """The options of ``audit``."""

    mitigate: Annotated[
        str | None,
        Option(
            "Generate with this mitigation: calibration:embedding, replacement:naive ...",
            complete="mitigations",
        ),
    ]
    shard: Annotated[str | None, Option("I/N: run part I of N here; `evenhand merge` joins the parts.")]
    retry_failed: Annotated[bool, _running("Retry texts that failed.")]


class Columns(TypedDict, total=False):
    """Which column holds which field."""

    text: Annotated[str, _column("Column of the texts.", default="text")]
    group: Annotated[
        Mapping[str, str] | Sequence[str],
        _column("COLUMN or AXIS=COLUMN: column with the group that a text is about; repeatable.", default=()),
    ]
    prompt: Annotated[str | None, _column("Column of the prompts.")]
    id: Annotated[str | None, _column("Column of unique ids (default: row numbers).")]
    mentions: Annotated[str | None, _column("Column of the words to mask: a;b or a JSON list.")]


class TextColumns(Columns, total=False):
    """Which column holds which field, for scored texts."""

    cluster: Annotated[str | None, _column("Column of the clusters of related texts (default: the prompt).")]
    join_prompt: Annotated[bool, _column("Score the prompt as part of the text.")]


class ScoreOptions(TextColumns, RunOptions, total=False):
    """The options of ``score``."""


class Limits(TypedDict, total=False):
    """``[gate]``: the limits that ``evenhand gate`` checks."""

    max: Annotated[
        Sequence[str],
        _gate(
            "'METRIC[.OUTPUT] AXIS[=GROUP] LIMIT': the largest gap, as a fraction for shares (0.05 is 5 "
            "points), in the metric's unit for means; repeatable.",
            default=(),
        ),
    ]
    worse: Annotated[
        Sequence[str],
        _gate("The same, for how much a gap may exceed that of the baseline run.", default=()),
    ]
    baseline_run: Annotated[Run | Path | str | None, _gate("Baseline run, such as that of the last release.")]
    strict: Annotated[
        bool, _gate("Exit with 1 if the run is inconclusive (default: exit with 0).", has_negation=True)
    ]


class TaskOptions(Measured, Size, Offline, total=False):
    """The options of ``export_task``."""
