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
from evenhand.training import job_folder
from evenhand.training.classifier_job import ClassifierTraining
from evenhand.training.job_folder import TextPrediction, TrainingFolder, read_predictions
from evenhand.training.model_card import markdown_table

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
        found = self.estimate
        return {
            "part": self.part,
            "context": self.context,
            "texts": found.n_clusters,
            "runs": len(self.runs),
            "accuracy": found.value,
            "low": found.low,
            "high": found.high,
            "sd_over_runs": self.spread,
        }


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
        return [self.job.recipe.seed + number for number in range(self.runs)]

    def run(self, folder: TrainingFolder, progress: Progress) -> Mapping[str, float]:
        """Train every run in a folder of its own; a finished one is not done again."""
        said = []
        for seed in self.seeds():
            job = replace(self.job, recipe=replace(self.job.recipe, seed=seed))
            path = folder.path / f"seed-{seed}"
            with TrainingFolder(path, identity=job.identity()) as own:
                if own.measures is None:
                    job.run(own, progress)
            said.append(read_predictions(path / job_folder.PREDICTIONS_FILE))
        found = average_accuracies(said, self.context_of)
        rows = pl.DataFrame([row.row() for row in found], infer_schema_length=None)
        write_text(folder.path / ACCURACY, spreadsheet_csv(rows))
        write_text(folder.path / "card.md", self._card(found, folder.path))
        measures = _measures(found)
        folder.finish(measures, {"accuracy": [row.row() for row in found]})
        return measures

    def _card(self, found: Sequence[AverageAccuracy], path: Path) -> str:
        rows = [
            (row.part, row.context, str(row.estimate.n_clusters), format_accuracy(row.estimate), _spread(row))
            for row in found
        ]
        use = f"regard={path / f'seed-{self.seeds()[0]}'}" if self.job.task.name == "regard" else path.name
        parts = [
            f"# Classifier `{self.job.task.name}`, {self.runs} runs",
            "\n".join(f"- {line}" for line in self.lines()),
            "## Accuracy",
            markdown_table(
                ("part", "context", "texts", "mean over runs (95 % interval)", "sd over runs"), rows
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


def _spread(row: AverageAccuracy) -> str:
    return "-" if row.spread is None else f"{row.spread:.3f}"


def _measures(found: Sequence[AverageAccuracy]) -> dict[str, float]:
    measures: dict[str, float] = {}
    for row in found:
        name = row.part if row.context == ALL else f"{row.part}_{row.context}"
        values = {
            f"{name}_accuracy": row.estimate.value,
            f"{name}_accuracy_low": row.estimate.low,
            f"{name}_accuracy_high": row.estimate.high,
            f"{name}_sd": row.spread,
        }
        measures |= {key: value for key, value in values.items() if value is not None}
        measures[f"{name}_n"] = row.estimate.n_clusters
    return measures
