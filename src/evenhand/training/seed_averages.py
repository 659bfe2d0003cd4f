"""The same training with several seeds: accuracy on average, with the spread of seeds and of few texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenhand.core.digests import Json
from evenhand.core.protocols import Progress
from evenhand.core.records import Estimate
from evenhand.stats.intervals import clustered_proportion
from evenhand.store.atomic_writes import write_text
from evenhand.store.table_files import spreadsheet_csv
from evenhand.training.classifier_job import ClassifierTraining
from evenhand.training.job_folder import (
    PREDICTIONS_FILE,
    TextPrediction,
    TrainingFolder,
    format_accuracy,
    markdown_table,
    read_predictions,
)

ACCURACY: Final = "accuracy.csv"
ALL: Final = "all"

Flags = NDArray[np.bool_]


class AverageAccuracy(NamedTuple):
    """The share of right labels over runs and texts."""

    part: str
    """``dev`` or ``test``."""
    context: str
    """``all``, or a bias context."""
    estimate: Estimate
    """The interval is over texts, the runs of one text being one cluster: 30 texts stay 30."""
    runs: tuple[float, ...]
    """The accuracy of every run."""

    @property
    def spread(self) -> float | None:
        """The standard deviation over runs; null with one run."""
        return float(np.std(self.runs, ddof=1)) if len(self.runs) > 1 else None

    def row(self) -> dict[str, Json]:
        """The row of ``accuracy.csv``."""
        estimate = self.estimate
        return {
            "part": self.part,
            "context": self.context,
            "texts": estimate.n_clusters,
            "runs": len(self.runs),
            "accuracy": estimate.value,
            "low": estimate.low,
            "high": estimate.high,
            "sd_over_runs": self.spread,
        }

    def measures(self) -> dict[str, float]:
        """The numbers by name, those that are defined."""
        name = self.part if self.context == ALL else f"{self.part}_{self.context}"
        values = {
            f"{name}_accuracy": self.estimate.value,
            f"{name}_accuracy_low": self.estimate.low,
            f"{name}_accuracy_high": self.estimate.high,
            f"{name}_sd": self.spread,
            f"{name}_n": self.estimate.n_clusters,
        }
        return {key: value for key, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class SeedAverageTraining:
    """A training that is done ``runs`` times with seeds that follow each other."""

    job: ClassifierTraining
    runs: int
    context_of: Callable[[str], str]
    """The bias context of a text; empty where it has none."""

    def identity(self) -> dict[str, Json]:
        """What decides the result."""
        return {**self.job.identity(), "runs": self.runs}

    def lines(self) -> tuple[str, ...]:
        """What will be done."""
        first = self.job.fit.recipe.seed
        return (*self.job.lines(), f"runs     {self.runs}, seeds {first} to {first + self.runs - 1}")

    def run(self, folder: TrainingFolder, progress: Progress) -> Mapping[str, float]:
        """Train every run in a folder of its own; a finished one is not done again."""
        fit, paths = self.job.fit, []
        for seed in range(fit.recipe.seed, fit.recipe.seed + self.runs):
            job = replace(self.job, fit=replace(fit, recipe=replace(fit.recipe, seed=seed)))
            paths.append(folder.path / f"seed-{seed}")
            with TrainingFolder(paths[-1], identity=job.identity()) as own:
                if own.measures is None:
                    job.run(own, progress)
        predictions = [read_predictions(path / PREDICTIONS_FILE) for path in paths]
        averages = average_accuracies(predictions, self.context_of)
        rows = [average.row() for average in averages]
        write_text(folder.path / ACCURACY, spreadsheet_csv(pl.DataFrame(rows, infer_schema_length=None)))
        measures = {name: value for average in averages for name, value in average.measures().items()}
        return folder.finish(measures, card=self._card(averages, paths[0]), accuracy=rows)

    def _card(self, averages: Sequence[AverageAccuracy], first: Path) -> str:
        task = self.job.task.name
        rows = [
            (
                row.part,
                row.context,
                str(row.estimate.n_clusters),
                format_accuracy(row.estimate, decimals=2),
                "-" if row.spread is None else f"{row.spread:.3f}",
            )
            for row in averages
        ]
        parts = [
            f"# Classifier `{task}`, {self.runs} runs",
            "\n".join(f"- {line}" for line in self.lines()),
            "## Accuracy",
            markdown_table(
                ("part", "context", "texts", "mean over runs (95 % interval)", "sd over runs"), *rows
            ),
            "The interval is over texts, all runs of a text counted as one observation.",
            "## Use",
            "Each run has a folder and a card of its own. The first: `--metrics "
            f"{f'regard={first}' if task == 'regard' else first.parent.name}`.",
        ]
        return "\n\n".join(parts) + "\n"


def average_accuracies(
    runs: Sequence[Sequence[TextPrediction]], context_of: Callable[[str], str]
) -> list[AverageAccuracy]:
    """Accuracy by part and context, from the predictions of every run, texts in the same order."""
    right = np.array([[row.label == row.said for row in rows] for rows in runs])
    parts = np.array([row.part for row in runs[0]])
    contexts = np.array([context_of(row.text) for row in runs[0]])
    named = sorted(set(contexts.tolist()) - {""})
    return [
        average_accuracy(right[:, chosen], part, context)
        for part in dict.fromkeys(parts.tolist())
        for context in (ALL, *named)
        if (chosen := (parts == part) & ((contexts == context) | (context == ALL))).any()
    ]


def average_accuracy(right: Flags, part: str, context: str) -> AverageAccuracy:
    """The accuracy of runs x texts answers."""
    runs, texts = right.shape
    clusters = np.tile(np.arange(texts), runs)
    estimate = clustered_proportion(right.astype(np.float64).ravel(), clusters)
    return AverageAccuracy(part, context, estimate, tuple(float(run.mean()) for run in right))
