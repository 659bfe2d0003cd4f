"""A run over texts: its job, and what follows once the texts are there: score, compare, report."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import polars as pl

from evenhand.audits.analysis.cut_sensitivity import cut_table, distribution_table
from evenhand.audits.analysis.example_texts import example_table, explanation_table
from evenhand.audits.analysis.group_analysis import analyse_groups
from evenhand.audits.analysis.group_comparison import GroupComparer
from evenhand.audits.analysis.quantities import read_quantities
from evenhand.audits.loaded_run import read_axis_settings
from evenhand.audits.run_setup import (
    SILENT_PROGRESS,
    Callback,
    find_metrics,
    finish_run,
    write_manifest,
)
from evenhand.config import RunConfig
from evenhand.core.digests import Json
from evenhand.core.protocols import Metric, Progress
from evenhand.core.records import MetricInfo, Prompt
from evenhand.metrics.scorer import STAGE, MetricScorer, exclusion_table, scoring_rate_key
from evenhand.run_options import RunOptions
from evenhand.store.cache import ContentCache
from evenhand.store.prompt_rows import write_prompt_rows
from evenhand.store.run import Run
from evenhand.store.run_folder import RunFolder, run_stage

if TYPE_CHECKING:
    from evenhand.audits.ray_pool import ActorPool

_ADVICE = {"read": "; name the words to mask with --mentions"}
"""What a user can do about unmasked texts: the mentions of a suite's prompts are the suite's own."""


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
            write_findings(
                folder,
                self.settings,
                {spec: metric.info for spec, metric in metrics.items()},
                prompts,
                explaining=metrics,
                texts_stage=self.texts_stage,
                progress=progress,
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
                scorer = MetricScorer(
                    spec,
                    metric,
                    folder,
                    cache,
                    options["mask"],
                    options["max_failures"],
                    {suite: groups[name] for suite, groups in limits.items() if groups.get(name) is not None},
                    executors.get(spec),
                )
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
    explaining: Mapping[str, Metric],
    texts_stage: str,
    progress: Progress,
) -> None:
    """Write the tables of the analysis, those that illustrate it, and ``exclusions``.

    ``explaining`` are the metrics that may explain a score; others of the run may be missing.
    """
    generations, scores = folder.run().table("generations"), folder.run().scan("scores")
    by_id = {prompt.id: prompt for prompt in prompts}
    with run_stage(folder, "compare") as record, progress.step("comparing", None):
        quantities = [
            quantity
            for spec, info in infos.items()
            for quantity in read_quantities(
                spec, info, scores.filter(pl.col("metric") == spec).collect(), generations["id"]
            )
        ]
        options, manifest = settings.options, folder.manifest
        model, (baselines, exploratory) = manifest["name"], read_axis_settings(manifest)
        comparer = GroupComparer(
            model=model,
            baselines=baselines,
            level=options["level"],
            correction=options["correction"],
            seed=options["seed"],
            exploratory=exploratory,
            test=options["test"],
        )
        prompt_ids, suites = generations["prompt_id"].to_list(), manifest["suites"]
        result = analyse_groups(comparer, prompt_ids, by_id, quantities, suites=suites, options=options)
        axes, mask = result.axes, options["mask"]
        examples = example_table(model, axes, infos, scores, generations, by_id, seed=options["seed"])
        tables = {
            **result.tables,
            "examples": examples,
            "explanations": explanation_table(explaining, examples, generations, by_id, mask=mask),
            "distributions": distribution_table(model, axes, infos, quantities),
            "cuts": cut_table(comparer, axes, infos, quantities, result.tables["comparisons"]),
            "exclusions": exclusion_table(generations, scores, texts_stage=texts_stage),
        }
        manifest["warnings"] += result.warnings
        record["comparisons"] = tables["comparisons"].height
        for name, table in tables.items():
            folder.write(name, table)
