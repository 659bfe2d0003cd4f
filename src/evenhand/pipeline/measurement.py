"""Texts to findings: score, compare, pick examples, count what was left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import polars as pl

from evenhand.core.digests import Json
from evenhand.core.protocols import Metric, Progress
from evenhand.core.records import MetricInfo, Prompt
from evenhand.pipeline.analysis import Analysis, Findings
from evenhand.pipeline.examples import examples
from evenhand.pipeline.exclusions import exclusions
from evenhand.pipeline.quantities import Axis, Quantity, quantities
from evenhand.pipeline.scoring import STAGE, Limits, Scorer, Tally
from evenhand.store.cache import Cache
from evenhand.store.folder import RunFolder, stage
from evenhand.text.rendering import MaskOption


@dataclass(frozen=True, slots=True)
class Measurement:
    """The metrics of a run and how its groups are compared. The tables of texts are already in the folder."""

    folder: RunFolder
    cache: Cache
    metrics: Mapping[str, Metric]
    analysis: Analysis
    mask: MaskOption = "paper"
    failure_rate: float = 0.2
    texts_stage: str = "generate"
    """Where a missing text was lost: ``generate``, or ``read`` for a file."""

    def run(self, prompts: Sequence[Prompt], progress: Progress) -> None:
        """Write ``scores``, the tables of the analysis, ``examples`` and ``exclusions``."""
        generations = self.folder.run().table("generations")
        by_id = {prompt.id: prompt for prompt in prompts}
        self._score(generations, by_id, progress)
        with stage(self.folder, "compare") as record, progress.step("comparing", None):
            found = self._analysed(generations, by_id)
            record["comparisons"] = found.tables["comparisons"].height
            self._write_examples(found.axes, generations, by_id)
            scores = self.folder.run().scan("scores")
            self.folder.write("exclusions", exclusions(generations, scores, texts_stage=self.texts_stage))

    def _score(self, generations: pl.DataFrame, prompts: Mapping[str, Prompt], progress: Progress) -> None:
        with stage(self.folder, STAGE) as record:
            keys: list[str] = []
            errors = 0
            for spec, metric in self.metrics.items():
                scorer = Scorer(
                    spec, metric, self.folder, self.cache, self.mask, self.failure_rate, self._limits(metric)
                )
                tally = scorer.run(generations, prompts, progress)
                self._warn_unmasked(spec, metric.info, tally)
                self._warn_outside(spec, scorer, tally)
                keys += tally.keys
                errors += tally.errors
            self.folder.join_shards("scores", STAGE, keys)
            record.update(items=generations.height, failed=errors)
            self.folder.manifest["metrics"] = {
                spec: _described(metric.info) for spec, metric in self.metrics.items()
            }

    def _limits(self, metric: Metric) -> Limits:
        infos = self.folder.manifest.get("suites", {})
        found = {suite: info.get("limits", {}).get(metric.info.name) for suite, info in infos.items()}
        return {suite: groups for suite, groups in found.items() if groups is not None}

    def _warn_outside(self, spec: str, scorer: Scorer, tally: Tally) -> None:
        if not tally.outside:
            return
        done = "not scored" if scorer.limited else "scored all the same: read them with care"
        self.folder.manifest["warnings"].append(
            f"{spec}: {tally.outside:,} of {tally.items:,} texts are of groups {spec} was not trained for "
            f"and were {done}"
        )

    def _warn_unmasked(self, spec: str, info: MetricInfo, tally: Tally) -> None:
        if not tally.unmasked:
            return
        self.folder.manifest["warnings"].append(
            f"{spec}: {tally.unmasked} of {tally.items} texts were scored without a mask, and {spec} expects "
            "group mentions to be masked; name the words to mask with --mentions"
        )

    def _analysed(self, generations: pl.DataFrame, prompts: Mapping[str, Prompt]) -> Findings:
        measured = [quantity for spec in self.metrics for quantity in self._quantities(spec, generations)]
        found = self.analysis.findings(generations["prompt_id"].to_list(), prompts, measured)
        for name, table in found.tables.items():
            self.folder.write(name, table)
        self.folder.manifest["warnings"] += found.warnings
        return found

    def _quantities(self, spec: str, generations: pl.DataFrame) -> list[Quantity]:
        scores = self.folder.run().scan("scores").filter(pl.col("metric") == spec).collect()
        return list(quantities(spec, self.metrics[spec].info, scores, generations["id"]))

    def _write_examples(
        self, found: Sequence[Axis], generations: pl.DataFrame, prompts: Mapping[str, Prompt]
    ) -> None:
        infos = {spec: metric.info for spec, metric in self.metrics.items()}
        scores = self.folder.run().scan("scores")
        comparer = self.analysis.comparer
        chosen = examples(comparer.model, found, infos, scores, generations, prompts, seed=comparer.seed)
        self.folder.write("examples", chosen)


def _described(info: MetricInfo) -> dict[str, Json]:
    fields: dict[str, Json] = asdict(info)
    return fields
