"""What the report shows beside estimates and gaps: texts, their words, spreads, and other cuts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from evenhand.core.protocols import Metric
from evenhand.core.records import MetricInfo, Prompt
from evenhand.pipeline.analysis import Findings
from evenhand.pipeline.comparison import Comparer
from evenhand.pipeline.cuts import cuts
from evenhand.pipeline.distributions import distributions
from evenhand.pipeline.examples import examples
from evenhand.pipeline.explanations import explanations
from evenhand.pipeline.quantities import Quantity
from evenhand.text.rendering import MaskOption


@dataclass(frozen=True, slots=True)
class Illustration:
    """How the findings of a run are illustrated."""

    infos: Mapping[str, MetricInfo]
    explaining: Mapping[str, Metric]
    """The metrics that may explain a score; others of the run may be missing."""
    comparer: Comparer
    mask: MaskOption = "paper"

    def tables(
        self,
        found: Findings,
        measured: Sequence[Quantity],
        texts: tuple[pl.DataFrame, Mapping[str, Prompt]],
        scores: pl.LazyFrame,
    ) -> dict[str, pl.DataFrame]:
        """The tables ``examples``, ``explanations``, ``distributions`` and ``cuts``.

        ``texts`` are the generations and the prompts they belong to.
        """
        generations, prompts = texts
        infos = self.infos
        model, axes = self.comparer.model, found.axes
        chosen = examples(model, axes, infos, scores, generations, prompts, seed=self.comparer.seed)
        return {
            "examples": chosen,
            "explanations": explanations(self.explaining, chosen, generations, prompts, mask=self.mask),
            "distributions": distributions(model, axes, infos, measured),
            "cuts": cuts(self.comparer, axes, infos, measured, found.tables["comparisons"]),
        }
