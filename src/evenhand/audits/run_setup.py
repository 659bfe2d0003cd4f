"""What every run shares: its plan, its metrics and callbacks, its folder, its engine."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from evenhand.audits.analysis.group_analysis import read_stratum
from evenhand.audits.analysis.group_comparison import missing_baseline_error
from evenhand.config import RunConfig
from evenhand.core import registry
from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.core.options import split_names
from evenhand.core.protocols import Metric, Model, Progress, SetMetric, SilentProgress
from evenhand.core.records import ALL, REST, ModelRef, Prompt
from evenhand.core.registry import Option
from evenhand.report.render_run import render
from evenhand.report.wording import format_count
from evenhand.run_options import Logging
from evenhand.store.run import Run, run_errors
from evenhand.store.run_folder import RunFolder, utc_timestamp

if TYPE_CHECKING:
    from evenhand.audits.ray_pool import ActorPool

_log = logging.getLogger(__name__)
SILENT_PROGRESS = SilentProgress()
T = TypeVar("T")
Callback = Callable[[Run], None]
"""Called with a finished run."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What a command is about to do."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunJob:
    """Work on finished runs that is ready to start: everything is checked."""

    title: str
    lines: tuple[str, ...]
    """Of the plan."""
    identity: Mapping[str, Json]
    folder: Path
    fresh: bool
    work: Callable[[RunFolder, Progress], None]
    """Fills the locked folder."""
    sources: tuple[Run, ...] = ()
    """The runs that are read."""
    formats: tuple[str, ...] = ("html", "json")
    """Of the report."""

    def plan(self) -> RunPlan:
        """What will be done, before it is done."""
        return RunPlan(self.title, self.lines)

    def run(self, progress: Progress = SILENT_PROGRESS) -> Run:
        """Do it, and report."""
        with RunFolder(self.folder, identity=self.identity, fresh=self.fresh) as folder:
            with run_errors(*self.sources):
                self.work(folder, progress)
            return finish_run(folder, self.formats)


@dataclass(frozen=True, slots=True)
class PreparedJob(Generic[T]):
    """Work of any kind that is ready to start: its input was read and checked."""

    title: str
    lines: tuple[str, ...]
    """Of the plan."""
    work: Callable[[Progress], T]
    notes: Sequence[str] = ()
    """Warnings to show with the plan."""

    def plan(self) -> RunPlan:
        """The plan to show before the job runs."""
        return RunPlan(self.title, self.lines)

    def run(self, progress: Progress = SILENT_PROGRESS) -> T:
        """Run the job and return its result."""
        return self.work(progress)


def finish_run(folder: RunFolder, formats: Sequence[str] = ("html", "json")) -> Run:
    """The run in a folder, with its end noted and its report written."""
    folder.manifest["ended"] = utc_timestamp()
    folder.save_manifest()
    render(folder.run(), formats)
    return Run(folder.path, folder.manifest)


def describe_mitigation(ref: ModelRef) -> list[str]:
    """For a plan: what is on while the model writes; nothing without a mitigation."""
    given = ref.options.get("mitigation")
    return [f"with    {given}", *describe_split_words(ref)] if given else []


def describe_split_words(ref: ModelRef) -> list[str]:
    """For a plan: how many words of a mitigation's lists are no single tokens; nothing where all are."""
    split = ref.options.get("mitigation.split_words")
    if split in (None, "0"):
        return []
    token = "its first token" if ref.options.get("mitigation.pieces") == "first" else "the mean of its tokens"
    return [f"words   {split} of the listed words are several tokens: each counts as {token}"]


def format_duration(seconds: float) -> str:
    """A time as a reader plans with it: seconds, from two minutes on minutes, from two hours on hours.

    >>> format_duration(95.2), format_duration(900), format_duration(15_000)
    ('95 s', '15 min', '4.2 h')
    """
    if seconds < 120:
        return f"{seconds:,.0f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"


def metric_names(metrics: str | Sequence[str | Metric] | None) -> tuple[str, ...] | None:
    """The names of metrics given as names or objects."""
    if metrics is None or isinstance(metrics, str):
        return split_names(metrics)
    return split_names([item if isinstance(item, str) else item.info.name for item in metrics])


def find_metrics(
    given: str | Sequence[str | Metric] | None, settings: RunConfig, defaults: Sequence[str] = ()
) -> dict[str, Metric]:
    """The metrics by the spec that names them in tables: objects as they are, names from the registry."""
    listed = () if given is None or isinstance(given, str) else given
    named = split_names([item for item in listed if isinstance(item, str)]) or ()
    objects: dict[str, Metric] = {}
    for item in listed:
        if not isinstance(item, str) and (
            objects.setdefault(item.info.name, item) is not item or item.info.name in named
        ):
            raise InputError(
                f"two metrics are called {item.info.name!r}",
                expected="a name each: scores and tables are found by it",
                fix="give one another `info.name`",
            )
    metrics: dict[str, Metric] = {}
    for spec in metric_names(given) or settings.metrics or defaults:
        metric: Metric | SetMetric = objects.get(spec) or registry.create_metric(
            spec, settings.metric_options(spec.partition("=")[0]), settings.execution()
        )
        if not isinstance(metric, Metric):
            raise InputError(
                f"metric {spec!r} gives one number for a set of texts and none for a single text",
                expected="metrics that score each text, since groups are compared text by text",
                fix="leave it out; `evenhand tradeoff` writes it for every attribute to price.parquet",
            )
        metrics[spec] = metric
    return metrics


def check_baselines(given: Mapping[str, str], groups: Mapping[str, Collection[str]]) -> None:
    """An error for a baseline of an axis that does not exist, or one that no text belongs to."""
    for axis, baseline in given.items():
        if axis not in groups:
            raise InputError(
                f"--baseline names the axis {axis!r}, which no prompt has",
                expected=", ".join(sorted(groups)),
                fix="use one of these axes",
            )
        if baseline not in (*groups[axis], REST, ALL):
            raise missing_baseline_error(baseline, axis, sorted(groups[axis]))


def check_strata(given: Sequence[str], prompts: Sequence[Prompt]) -> None:
    """An error for a stratum that no prompt has."""
    for by in given:
        if all(read_stratum(prompt, by) is None for prompt in prompts):
            known = {key for prompt in prompts for key in (*prompt.meta, *prompt.fills)}
            raise InputError(
                f"--stratum {by!r} is a property that no prompt has",
                expected=", ".join(sorted(known | {"template"})),
                fix="name one of these",
            )


def write_manifest(
    folder: RunFolder, *, command: str, name: str, settings: RunConfig, suites: Mapping[str, Json]
) -> None:
    """Write down what is about to run."""
    config = settings.record()
    folder.manifest.update(
        command=command,
        name=name,
        config=config,
        execution=config["execution"],
        suites=suites,
        ended=None,
        warnings=[],
    )
    folder.save_manifest()


def find_loggers(options: Logging) -> list[Callback]:
    """The loggers that the options name; their libraries are loaded only where there are some."""
    from evenhand.audits.experiment_loggers import create_loggers

    return create_loggers(options["log"], log_texts=options["log_texts"])


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model by name, with the mitigation it writes with."""

    name: str
    options: Mapping[str, Option] = field(default_factory=dict)
    mitigation: str | None = None
    mitigation_options: Mapping[str, Option] = field(default_factory=dict)

    def apply_mitigation(self, model: Model) -> Model:
        """A model with the mitigation on, where there is one."""
        if self.mitigation is None:
            return model
        return registry.create_mitigation(self.mitigation, self.mitigation_options).apply(model)


def open_pool(settings: RunConfig, model: ModelSpec | None = None) -> ActorPool | None:
    """The actors of a run; None where it works in this process."""
    options = settings.options
    if options["engine"] == "local":
        if address := options["address"]:
            _log.warning("the address %s is for --engine ray: the work is done on this machine", address)
        if options["workers"]:
            _log.warning("--workers is for --engine ray: the work is done in this process")
        return None
    from evenhand.audits.ray_pool import ActorPool, WorkerSpec

    spec = WorkerSpec(settings.execution(), model)
    return ActorPool(spec, workers=options["workers"], address=options["address"])


def describe_engine(settings: RunConfig) -> list[str]:
    """What a plan says of the engine; nothing where the work is done in this process."""
    options = settings.options
    if options["engine"] == "local":
        return []
    count, place = options["workers"], options["address"] or "this machine"
    workers = format_count(count, "worker") if count else "a worker a GPU, or a few cores each"
    return [f"engine  {options['engine']} at {place}, {workers}"]
