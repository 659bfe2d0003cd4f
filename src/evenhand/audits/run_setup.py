"""What every run shares: finding its metrics, opening its folder, measuring, writing the report."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from evenhand.audits.analysis.base_rate_distances import DistanceRequest
from evenhand.audits.analysis.group_analysis import GroupAnalysis
from evenhand.audits.analysis.group_comparison import Baselines, GroupComparer
from evenhand.audits.analysis.strata import read_stratum
from evenhand.audits.measurement import RunMeasurement
from evenhand.config import RunConfig
from evenhand.core import registry
from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.core.options import split_names
from evenhand.core.protocols import Metric, Progress, SetMetric, SilentProgress
from evenhand.core.records import ALL, REST, ModelRef, Prompt
from evenhand.metrics.scorer import ScoringExecutor
from evenhand.report.render_run import render
from evenhand.store.cache import ContentCache
from evenhand.store.prompt_rows import write_prompt_rows
from evenhand.store.run import Run
from evenhand.store.run_folder import RunFolder, utc_timestamp

SILENT_PROGRESS = SilentProgress()


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What a command is about to do."""

    title: str
    lines: tuple[str, ...]
    folder: Path


class RunMetrics(NamedTuple):
    """The metrics of a run by spec, and where those are asked that are not asked here."""

    metrics: Mapping[str, Metric]
    elsewhere: Mapping[str, ScoringExecutor]


class RunJob(Protocol):
    """Work that is ready to start."""

    def plan(self) -> RunPlan:
        """What will be done."""
        ...

    def run(self, progress: Progress = ...) -> Run:
        """Do it."""
        ...


def describe_mitigation(ref: ModelRef) -> list[str]:
    """For a plan: what is on while the model writes; nothing without a mitigation."""
    given = ref.options.get("mitigation")
    return [f"with    {given}", *describe_split_words(ref)] if given else []


def describe_split_words(ref: ModelRef) -> list[str]:
    """For a plan: how many words of a mitigation's lists are no single tokens; nothing where all are."""
    split, pieces = (ref.options.get(f"mitigation.{name}") for name in ("split_words", "pieces"))
    if split in (None, "0"):
        return []
    counted = "its first token" if pieces == "first" else "the mean of its tokens"
    return [f"words   {split} of the listed words are several tokens: each counts as {counted}"]


def format_duration(seconds: float) -> str:
    """A time as a reader plans with it: seconds, from two minutes on minutes, from two hours on hours.

    >>> duration(95.2), duration(900), duration(15_000)
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


def object_names(metrics: str | Sequence[str | Metric] | None) -> tuple[str, ...]:
    """The names of metrics that were given as objects."""
    listed = () if metrics is None or isinstance(metrics, str) else metrics
    return tuple(item.info.name for item in listed if not isinstance(item, str))


def find_metrics(
    given: str | Sequence[str | Metric] | None, settings: RunConfig, defaults: Sequence[str] = ()
) -> dict[str, Metric]:
    """The metrics by the spec that names them in tables: objects as they are, names from the registry."""
    found: dict[str, Metric] = {}
    objects = [] if given is None or isinstance(given, str) else [m for m in given if not isinstance(m, str)]
    by_name = {metric.info.name: metric for metric in objects}
    others = split_names([m for m in given if isinstance(m, str)]) if objects and given else None
    for metric in objects:
        name = metric.info.name
        if by_name[name] is not metric or name in (others or ()):
            raise InputError(
                f"two metrics are called {name!r}",
                expected="a name each: scores and tables are found by it",
                fix="give one another `info.name`",
            )
    for spec in metric_names(given) or settings.metrics or defaults:
        options = settings.metric_options(spec.partition("=")[0])
        found[spec] = by_name.get(spec) or _per_text(
            registry.create_metric(spec, options, settings.execution()), spec
        )
    return found


def check_axes(given: Mapping[str, str], known: Collection[str]) -> None:
    """An error for a baseline of an axis that does not exist."""
    for axis in given:
        if axis not in known:
            raise InputError(
                f"--baseline names the axis {axis!r}, which no prompt has",
                expected=", ".join(sorted(known)),
                fix="use one of these axes",
            )


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


@contextmanager
def open_run(
    path: Path, identity: Mapping[str, Json], *, fresh: bool
) -> Iterator[tuple[RunFolder, ContentCache]]:
    """The locked run folder and the cache, for as long as a run works in them."""
    cache = ContentCache()
    try:
        with RunFolder(path, identity=identity, fresh=fresh) as folder:
            yield folder, cache
    finally:
        cache.close()


def add_earlier_metrics(
    metrics: Mapping[str, Metric], folder: RunFolder, settings: RunConfig
) -> Mapping[str, Metric]:
    """What is asked for now and what the run already held: metrics are added, never dropped."""
    earlier = [spec for spec in folder.manifest.get("metrics", {}) if spec not in metrics]
    return {**find_metrics(earlier, settings), **metrics} if earlier else metrics


def check_baseline(axis: str, baseline: str, groups: Collection[str]) -> None:
    """An error for a baseline no text belongs to."""
    if baseline not in (*groups, REST, ALL):
        raise InputError(
            f"the baseline {baseline!r} of axis {axis!r} has no texts",
            expected=", ".join((*sorted(groups)[:20], REST, ALL)),
            fix=f"name a baseline with --baseline {axis}=GROUP",
        )


def measure_and_report(
    folder: RunFolder,
    *,
    settings: RunConfig,
    metrics: RunMetrics,
    prompts: Sequence[Prompt],
    baselines: Baselines,
    cache: ContentCache,
    progress: Progress,
    texts_stage: str,
) -> Run:
    """Score, compare and report what is in the folder."""
    folder.write("prompts", write_prompt_rows(prompts))
    measurement = RunMeasurement(
        folder,
        cache,
        metrics.metrics,
        build_analysis(folder, settings, baselines),
        mask=settings.options["mask"],
        failure_rate=settings.options["max_failures"],
        texts_stage=texts_stage,
        executors=metrics.elsewhere,
    )
    measurement.run(prompts, progress)
    folder.manifest["ended"] = utc_timestamp()
    folder.save_manifest()
    render(folder.run())
    return folder.run()


def build_analysis(folder: RunFolder, settings: RunConfig, baselines: Baselines) -> GroupAnalysis:
    """How the run is analysed: its settings, and what its suites say of themselves."""
    options, suites = settings.options, folder.manifest["suites"]
    comparer = GroupComparer(
        model=folder.manifest["name"],
        baselines=baselines,
        level=options["level"],
        correction=options["correction"],
        seed=options["seed"],
        exploratory={
            (suite, axis): metrics
            for suite, info in suites.items()
            for axis, metrics in info.get("exploratory", {}).items()
        },
        test=options["test"],
    )
    return GroupAnalysis(
        comparer,
        strata={
            suite: tuple(dict.fromkeys((*info.get("strata", ()), *options["strata"])))
            for suite, info in suites.items()
        },
        pairs=options["pairs"],
        intersections=options["intersections"],
        check=options["check"],
        distances={
            suite: DistanceRequest(info["distances"], info.get("sides", ()))
            for suite, info in suites.items()
            if info.get("distances")
        },
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


def _per_text(metric: Metric | SetMetric, spec: str) -> Metric:
    if isinstance(metric, Metric):
        return metric
    raise InputError(
        f"metric {spec!r} gives one number for a set of texts and none for a single text",
        expected="metrics that score each text, since groups are compared text by text",
        fix="leave it out; `evenhand tradeoff` writes it for every attribute to price.parquet",
    )
