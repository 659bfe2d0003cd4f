"""The measurement of a run: score its texts, compare their groups, pick examples, write the report."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import polars as pl

from evenhand.audits.analysis.base_rate_distances import DistanceRequest
from evenhand.audits.analysis.group_analysis import GroupAnalysis
from evenhand.audits.analysis.group_comparison import Baselines, GroupComparer
from evenhand.audits.analysis.quantities import read_quantities
from evenhand.audits.run_setup import add_earlier_metrics, finish_run
from evenhand.config import RunConfig
from evenhand.core.protocols import Metric, Progress
from evenhand.core.records import MetricInfo, Prompt
from evenhand.metrics.scorer import STAGE, MetricScorer, exclusion_table, scoring_rate_key
from evenhand.store.cache import ContentCache
from evenhand.store.prompt_rows import write_prompt_rows
from evenhand.store.run import Run
from evenhand.store.run_folder import RunFolder, run_stage

if TYPE_CHECKING:
    from evenhand.audits.ray_pool import ActorPool

_ADVICE = {"read": "; name the words to mask with --mentions"}
"""What a user can do about unmasked texts: the mentions of a suite's prompts are the suite's own."""


@dataclass(frozen=True, slots=True)
class RunMeasurement:
    """The metrics of a run and how its groups are compared. The tables of texts are already in the folder."""

    folder: RunFolder
    cache: ContentCache
    settings: RunConfig
    metrics: Mapping[str, Metric]
    """The requested ones; those of an earlier run in this folder are added."""
    baselines: Baselines
    texts_stage: str
    """Where a missing text was lost: ``generate``, or ``read`` for a file."""
    pool: ActorPool | None = None
    objects: tuple[str, ...] = ()
    """Metrics that were given as objects, which no actor can load."""

    def run(self, prompts: Sequence[Prompt], progress: Progress) -> Run:
        """Write ``prompts``, ``scores``, the tables of the analysis and the report."""
        folder = self.folder
        metrics = add_earlier_metrics(self.metrics, folder, self.settings)
        folder.write("prompts", write_prompt_rows(prompts))
        started = time.perf_counter()
        generations = folder.run().table("generations")
        reused = self._score(metrics, generations, {prompt.id: prompt for prompt in prompts}, progress)
        write_findings(
            folder,
            build_analysis(folder, self.settings, self.baselines),
            {spec: metric.info for spec, metric in metrics.items()},
            prompts,
            explaining=metrics,
            texts_stage=self.texts_stage,
            progress=progress,
        )
        seconds = time.perf_counter() - started
        if seconds > 1 and not reused:
            self.cache.put_many("rates", {scoring_rate_key(metrics.values()): generations.height / seconds})
        return finish_run(folder)

    def _score(
        self,
        metrics: Mapping[str, Metric],
        generations: pl.DataFrame,
        prompts: Mapping[str, Prompt],
        progress: Progress,
    ) -> int:
        """Write ``scores``; how many of them were there already."""
        options, manifest = self.settings.options, self.folder.manifest
        limits = {suite: info.get("limits", {}) for suite, info in manifest.get("suites", {}).items()}
        executors = self.pool.create_executors(metrics, self.settings, self.objects) if self.pool else {}
        keys: list[str] = []
        errors = reused = 0
        with run_stage(self.folder, STAGE) as record:
            for spec, metric in metrics.items():
                name = metric.info.name
                scorer = MetricScorer(
                    spec,
                    metric,
                    self.folder,
                    self.cache,
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
            self.folder.join_shards("scores", STAGE, keys)
            record.update(items=generations.height, failed=errors)
            manifest["metrics"] = {spec: asdict(metric.info) for spec, metric in metrics.items()}
        return reused


def build_analysis(folder: RunFolder, settings: RunConfig, baselines: Baselines) -> GroupAnalysis:
    """How the run is analysed: its settings, and what its suites declare."""
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
        mask=options["mask"],
    )


def write_findings(
    folder: RunFolder,
    analysis: GroupAnalysis,
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
        result = analysis.run(generations["prompt_id"].to_list(), by_id, quantities)
        folder.manifest["warnings"] += result.warnings
        record["comparisons"] = result.tables["comparisons"].height
        illustration = analysis.illustrate(result, infos, explaining, quantities, generations, by_id, scores)
        for name, table in {**result.tables, **illustration}.items():
            folder.write(name, table)
        folder.write("exclusions", exclusion_table(generations, scores, texts_stage=texts_stage))
