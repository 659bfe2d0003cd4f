"""Texts to findings: score, compare, pick examples, count what was left out."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import polars as pl

from evenhand.audits.analysis.group_analysis import GroupAnalysis, ReportTables
from evenhand.audits.analysis.quantities import read_quantities
from evenhand.core.digests import Json
from evenhand.core.protocols import Metric, Progress
from evenhand.core.records import MetricInfo, Prompt
from evenhand.metrics.scorer import (
    STAGE,
    Limits,
    MetricScorer,
    ScoringExecutor,
    ScoringStats,
    exclusion_table,
    scoring_rate_key,
)
from evenhand.store.cache import ContentCache
from evenhand.store.run_folder import RunFolder, run_stage
from evenhand.text.rendering import MaskOption

_ADVICE = {"read": "; name the words to mask with --mentions"}
"""What a user can do about it: the mentions of a suite's prompts are the suite's own."""


@dataclass(frozen=True, slots=True)
class RunMeasurement:
    """The metrics of a run and how its groups are compared. The tables of texts are already in the folder."""

    folder: RunFolder
    cache: ContentCache
    metrics: Mapping[str, Metric]
    analysis: GroupAnalysis
    mask: MaskOption = "paper"
    failure_rate: float = 0.2
    texts_stage: str = "generate"
    """Where a missing text was lost: ``generate``, or ``read`` for a file."""
    executors: Mapping[str, ScoringExecutor] = field(default_factory=dict)
    """Metrics that are asked elsewhere, by spec."""

    def run(self, prompts: Sequence[Prompt], progress: Progress) -> None:
        """Write ``scores``, the tables of the analysis, ``examples`` and ``exclusions``."""
        started = time.perf_counter()
        generations = self.folder.run().table("generations")
        by_id = {prompt.id: prompt for prompt in prompts}
        reused = self._score(generations, by_id, progress)
        infos = {spec: metric.info for spec, metric in self.metrics.items()}
        write_findings(
            self.folder,
            self.analysis,
            infos,
            prompts,
            illustration=ReportTables(infos, self.metrics, self.analysis.comparer, self.mask),
            texts_stage=self.texts_stage,
            progress=progress,
        )
        seconds = time.perf_counter() - started
        if seconds > 1 and not reused:
            self.cache.put_many(
                "rates", {scoring_rate_key(self.metrics.values()): generations.height / seconds}
            )

    def _score(self, generations: pl.DataFrame, prompts: Mapping[str, Prompt], progress: Progress) -> int:
        """Write ``scores``; how many of them were there already."""
        with run_stage(self.folder, STAGE) as record:
            keys: list[str] = []
            errors = reused = 0
            for spec, metric in self.metrics.items():
                scorer = MetricScorer(
                    spec,
                    metric,
                    self.folder,
                    self.cache,
                    self.mask,
                    self.failure_rate,
                    self._limits(metric),
                    self.executors.get(spec),
                )
                tally = scorer.run(generations, prompts, progress)
                self._warn_unmasked(spec, metric.info, tally)
                self._warn_outside(spec, scorer, tally)
                keys += tally.keys
                errors += tally.errors
                reused += tally.reused
            self.folder.join_shards("scores", STAGE, keys)
            record.update(items=generations.height, failed=errors)
            self.folder.manifest["metrics"] = {
                spec: _describe_metric(metric.info) for spec, metric in self.metrics.items()
            }
        return reused

    def _limits(self, metric: Metric) -> Limits:
        infos = self.folder.manifest.get("suites", {})
        found = {suite: info.get("limits", {}).get(metric.info.name) for suite, info in infos.items()}
        return {suite: groups for suite, groups in found.items() if groups is not None}

    def _warn_outside(self, spec: str, scorer: MetricScorer, tally: ScoringStats) -> None:
        if not tally.outside:
            return
        done = "not scored" if scorer.has_limits else "scored all the same: read them with care"
        self.folder.manifest["warnings"].append(
            f"{spec}: {tally.outside:,} of {tally.items:,} texts are of groups {spec} was not trained for "
            f"and were {done}"
        )

    def _warn_unmasked(self, spec: str, info: MetricInfo, tally: ScoringStats) -> None:
        if not tally.unmasked:
            return
        self.folder.manifest["warnings"].append(
            f"{spec}: {tally.unmasked:,} of {tally.items:,} texts were scored without a mask, and {spec} "
            f"expects group mentions to be masked{_ADVICE.get(self.texts_stage, '')}"
        )


def write_findings(
    folder: RunFolder,
    analysis: GroupAnalysis,
    infos: Mapping[str, MetricInfo],
    prompts: Sequence[Prompt],
    *,
    illustration: ReportTables,
    texts_stage: str,
    progress: Progress,
) -> None:
    """Write what the scores of a folder say: the tables of the analysis, its illustration, ``exclusions``."""
    generations, scores = folder.run().table("generations"), folder.run().scan("scores")
    by_id = {prompt.id: prompt for prompt in prompts}
    with run_stage(folder, "compare") as record, progress.step("comparing", None):
        measured = [
            quantity
            for spec, info in infos.items()
            for quantity in read_quantities(
                spec, info, scores.filter(pl.col("metric") == spec).collect(), generations["id"]
            )
        ]
        found = analysis.run(generations["prompt_id"].to_list(), by_id, measured)
        for name, table in found.tables.items():
            folder.write(name, table)
        folder.manifest["warnings"] += found.warnings
        record["comparisons"] = found.tables["comparisons"].height
        for name, table in illustration.build(found, measured, (generations, by_id), scores).items():
            folder.write(name, table)
        folder.write("exclusions", exclusion_table(generations, scores, texts_stage=texts_stage))


def _describe_metric(info: MetricInfo) -> dict[str, Json]:
    fields: dict[str, Json] = asdict(info)
    return fields
