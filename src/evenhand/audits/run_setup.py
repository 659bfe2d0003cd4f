"""What runs share: plan, metrics, callbacks and folder; for texts also: score, compare, report."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, closing, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

import polars as pl

from evenhand.audits.analysis.cut_sensitivity import cut_table, distribution_table
from evenhand.audits.analysis.example_texts import example_table, explanation_table
from evenhand.audits.analysis.group_analysis import analyse_groups
from evenhand.audits.analysis.group_comparison import GroupComparer, missing_baseline_error
from evenhand.audits.analysis.quantities import read_quantities
from evenhand.audits.ray_pool import ActorPool
from evenhand.config import RunConfig
from evenhand.core import registry
from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.core.options import split_names
from evenhand.core.protocols import Metric, Progress, SetMetric, SilentProgress
from evenhand.core.records import ALL, REST, MetricInfo, ModelRef, Prompt
from evenhand.metrics.scorer import STAGE, MetricScorer, exclusion_table, scoring_rate_key
from evenhand.report.render_run import render
from evenhand.run_options import Logging, RunOptions
from evenhand.store.cache import ContentCache
from evenhand.store.prompt_rows import write_prompt_rows
from evenhand.store.run import Run, run_errors
from evenhand.store.run_folder import RunFolder, run_stage, utc_timestamp

SILENT_PROGRESS = SilentProgress()
_ADVICE = {"read": "; name the words to mask with --mentions"}
"""What a user can do about unmasked texts: the mentions of a suite's prompts are the suite's own."""
T = TypeVar("T")
Callback = Callable[[Run], None]
"""Called with a finished run."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What a command is about to do."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunJob(RunPlan):
    """Work on finished runs that is ready to start: everything is checked."""

    identity: Mapping[str, Json]
    folder: Path
    fresh: bool
    work: Callable[[RunFolder, Progress], None]
    """Fills the locked folder."""
    sources: tuple[Run, ...] = ()
    """The runs that are read."""
    formats: tuple[str, ...] = ("html", "json")
    """Of the report; none where the work writes its own."""

    def plan(self) -> RunPlan:
        """What will be done, before it is done."""
        return self

    def run(self, progress: Progress = SILENT_PROGRESS) -> Run:
        """Do it, and report."""
        with RunFolder(self.folder, identity=self.identity, fresh=self.fresh) as folder:
            with run_errors(*self.sources) if self.sources else nullcontext():
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
    """The run in a folder, with its end noted and its report written in these formats."""
    folder.manifest["ended"] = utc_timestamp()
    folder.save_manifest()
    if formats:
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


def write_manifest(
    folder: RunFolder, *, command: str, name: str, settings: RunConfig, suites: Mapping[str, Json]
) -> None:
    """Write down what is about to run."""
    config = settings.record()
    folder.manifest.update(command=command, name=name, config=config, execution=config["execution"])
    folder.manifest.update(suites=suites, ended=None, warnings=[])
    folder.save_manifest()


def find_callbacks(options: Logging) -> tuple[Callback, ...]:
    """Those of the options, and of the loggers: their libraries are loaded only where there are some."""
    if not (options["log"] or options["log_texts"]):
        return tuple(options["callbacks"])
    from evenhand.audits.experiment_loggers import create_loggers

    loggers = create_loggers(options["log"], log_texts=options["log_texts"])
    return (*loggers, *options["callbacks"])


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRunJob(ABC):
    """A run over texts that is ready to start: everything is checked."""

    name: str
    """What the texts are of: a model, or a file."""
    suites: Mapping[str, Json]
    """As the manifest describes them."""
    options: RunOptions
    """Those of the call."""
    settings: RunConfig
    metrics: Mapping[str, Metric]
    """The requested ones; those of an earlier run in the folder are added."""
    identity: Mapping[str, Json]
    folder: Path
    command: str
    callbacks: tuple[Callback, ...]
    """Each is called with the finished run."""
    open_pool: Callable[[], ActorPool | None]
    """The actors that write and score; None where this process does."""
    texts_stage: ClassVar[str]
    """Where a missing text was lost: ``generate``, or ``read`` for a file."""

    @abstractmethod
    def write_texts(self, folder: RunFolder, cache: ContentCache, progress: Progress) -> list[Prompt]:
        """Write the table of generations; returns the prompts of its texts."""

    def run(self, progress: Progress = SILENT_PROGRESS) -> Run:
        """Write what is missing, score, compare and report; resumes what an earlier run left."""
        with ExitStack() as stack:
            if pool := self.open_pool():
                stack.callback(pool.close)
            cache = stack.enter_context(closing(ContentCache()))
            folder = stack.enter_context(
                RunFolder(self.folder, identity=self.identity, fresh=self.options["fresh"])
            )
            write_manifest(
                folder, command=self.command, name=self.name, settings=self.settings, suites=self.suites
            )
            prompts = self.write_texts(folder, cache, progress)
            # Those an earlier run in this folder had are kept.
            metrics = dict(self.metrics)
            if earlier := [spec for spec in folder.manifest.get("metrics", {}) if spec not in metrics]:
                metrics = {**find_metrics(earlier, self.settings), **metrics}
            folder.write("prompts", write_prompt_rows(prompts))
            started = time.perf_counter()
            generations = folder.run().table("generations")
            by_id = {prompt.id: prompt for prompt in prompts}
            reused = self._score(folder, cache, pool, metrics, generations, by_id, progress)
            infos = {spec: metric.info for spec, metric in metrics.items()}
            stage = self.texts_stage
            write_findings(
                folder, self.settings, infos, prompts, metrics=metrics, stage=stage, progress=progress
            )
            seconds = time.perf_counter() - started
            if seconds > 1 and not reused:
                cache.put_many("rates", {scoring_rate_key(metrics.values()): generations.height / seconds})
            run = finish_run(folder)
        for callback in self.callbacks:
            callback(run)
        return run

    def _score(
        self,
        folder: RunFolder,
        cache: ContentCache,
        pool: ActorPool | None,
        metrics: Mapping[str, Metric],
        generations: pl.DataFrame,
        prompts: Mapping[str, Prompt],
        progress: Progress,
    ) -> int:
        """Write ``scores``; how many of them were there already."""
        options, manifest = self.settings.options, folder.manifest
        limits = {suite: info.get("limits", {}) for suite, info in manifest.get("suites", {}).items()}
        # No actor can load those.
        objects = [item.info.name for item in self.options["metrics"] or () if not isinstance(item, str)]
        executors = pool.create_executors(metrics, self.settings, objects) if pool else {}
        keys: list[str] = []
        errors = reused = 0
        with run_stage(folder, STAGE) as record:
            for spec, metric in metrics.items():
                name = metric.info.name
                meant = {suite: of[name] for suite, of in limits.items() if of.get(name) is not None}
                mask, most, executor = options["mask"], options["max_failures"], executors.get(spec)
                scorer = MetricScorer(spec, metric, folder, cache, mask, most, meant, executor)
                tally = scorer.run(generations, prompts, progress)
                of = f"of {tally.items:,} texts"
                if tally.unmasked:
                    manifest["warnings"].append(
                        f"{spec}: {tally.unmasked:,} {of} were scored without a mask, and {spec} "
                        f"expects group mentions to be masked{_ADVICE.get(self.texts_stage, '')}"
                    )
                if tally.outside:
                    outcome = (
                        "not scored" if scorer.has_limits else "scored all the same: read them with care"
                    )
                    manifest["warnings"].append(
                        f"{spec}: {tally.outside:,} {of} are of groups {spec} was not trained for "
                        f"and were {outcome}"
                    )
                keys += tally.keys
                errors += tally.errors
                reused += tally.reused
            folder.join_shards("scores", STAGE, keys)
            record.update(items=generations.height, failed=errors)
            manifest["metrics"] = {spec: asdict(metric.info) for spec, metric in metrics.items()}
        return reused


def write_findings(
    folder: RunFolder,
    settings: RunConfig,
    infos: Mapping[str, MetricInfo],
    prompts: Sequence[Prompt],
    *,
    metrics: Mapping[str, Metric],
    stage: str,
    progress: Progress,
) -> None:
    """Write the tables of the analysis, those that illustrate it, and ``exclusions``.

    Only ``metrics`` can explain a score; others of the run may be missing. ``stage`` is that of the texts.
    """
    generations, scores = folder.run().table("generations"), folder.run().scan("scores")
    by_id = {prompt.id: prompt for prompt in prompts}
    with run_stage(folder, "compare") as record, progress.step("comparing", None):
        quantities = list(read_quantities(infos, scores, generations["id"]))
        options, manifest = settings.options, folder.manifest
        model, level, correction = manifest["name"], options["level"], options["correction"]
        comparer = GroupComparer(model, level, correction, seed=options["seed"], test=options["test"])
        prompt_ids, suites = generations["prompt_id"].to_list(), manifest["suites"]
        result = analyse_groups(comparer, prompt_ids, by_id, quantities, suites=suites, options=options)
        axes, mask = result.axes, options["mask"]
        examples = example_table(model, axes, infos, scores, generations, by_id, seed=options["seed"])
        tables = {
            **result.tables,
            "examples": examples,
            "explanations": explanation_table(metrics, examples, generations, by_id, mask=mask),
            "distributions": distribution_table(model, axes, infos, quantities),
            "cuts": cut_table(comparer, axes, infos, quantities, result.tables["comparisons"]),
            "exclusions": exclusion_table(generations, scores, texts_stage=stage),
        }
        manifest["warnings"] += result.warnings
        record["comparisons"] = tables["comparisons"].height
        for name, table in tables.items():
            folder.write(name, table)
