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
            "accuracy": self.estimate.value,
            "accuracy_low": self.estimate.low,
            "accuracy_high": self.estimate.high,
            "sd": self.spread,
            "n": self.estimate.n_clusters,
        }
        return {f"{name}_{key}": value for key, value in values.items() if value is not None}


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
        return (*self.job.lines(), f"runs     {self.runs}, seeds {self.seeds()[0]} to {self.seeds()[-1]}")

    def seeds(self) -> list[int]:
        """The seed of every run."""
        return [self.job.fit.recipe.seed + number for number in range(self.runs)]

    def run(self, folder: TrainingFolder, progress: Progress) -> Mapping[str, float]:
        """Train every run in a folder of its own; a finished one is not done again."""
        predictions = []
        for seed in self.seeds():
            job = replace(self.job, fit=replace(self.job.fit, recipe=replace(self.job.fit.recipe, seed=seed)))
            path = folder.path / f"seed-{seed}"
            with TrainingFolder(path, identity=job.identity()) as own:
                if own.measures is None:
                    job.run(own, progress)
            predictions.append(read_predictions(path / PREDICTIONS_FILE))
        averages = average_accuracies(predictions, self.context_of)
        rows = [average.row() for average in averages]
        write_text(folder.path / ACCURACY, spreadsheet_csv(pl.DataFrame(rows, infer_schema_length=None)))
        measures = {name: value for average in averages for name, value in average.measures().items()}
        return folder.finish(measures, card=self._card(averages, folder.path), accuracy=rows)

    def _card(self, averages: Sequence[AverageAccuracy], path: Path) -> str:
        rows = [
            (
                row.part,
                row.context,
                str(row.estimate.n_clusters),
                format_accuracy(row.estimate),
                "-" if row.spread is None else f"{row.spread:.3f}",
            )
            for row in averages
        ]
        use = f"regard={path / f'seed-{self.seeds()[0]}'}" if self.job.task.name == "regard" else path.name
        parts = [
            f"# Classifier `{self.job.task.name}`, {self.runs} runs",
            "\n".join(f"- {line}" for line in self.lines()),
            "## Accuracy",
            markdown_table(
                ("part", "context", "texts", "mean over runs (95 % interval)", "sd over runs"), *rows
            ),
            "The interval is over texts, all runs of a text counted as one observation.",
            "## Use",
            f"Each run has a folder and a card of its own. The first: `--metrics {use}`.",
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


def format_accuracy(estimate: Estimate) -> str:
    """An accuracy with its interval, in words."""
    if estimate.value is None:
        return f"none ({estimate.null_reason})"
    spread = "" if estimate.low is None else f" ({estimate.low:.2f} to {estimate.high:.2f})"
    return f"{estimate.value:.3f}{spread}"
