"""Figure 1: accuracy of regard classifiers, averaged over seeded runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from evenhand.core.errors import MissingLibraryError
from evenhand.core.files import safe_file_name
from evenhand.core.protocols import Progress
from evenhand.core.records import Text
from evenhand.metrics.regard import Regard
from evenhand.papers.regard.released_data import PARTS, RegardRelease
from evenhand.papers.replicate import ReplicationRequest
from evenhand.papers.replication_pages import Exhibit
from evenhand.papers.svg_figures import draw_panels
from evenhand.suites.regard import RegardSuite
from evenhand.training.classifier_job import ALL, average_accuracies
from evenhand.training.job_folder import PREDICTIONS_FILE, TextPrediction, read_predictions
from evenhand.training.linear_text import ANALYSERS
from evenhand.training.options import TrainOptions
from evenhand.training.train import TrainingJob, prepare

RUNS: Final = 5
LONGEST: Final = 50
BERT: Final = "bert-base-uncased"
CLASSIFIERS: Final = {
    "LSTM, random": "lstm",
    "LSTM, pretrained": "lstm:embedded",
    "VADER": "vader",
    "TextBlob": "textblob",
    "transformer (builtin:masked)": "builtin:masked",
    "vote of three": "ensemble:builtin:masked",
}
EMBEDDED: Final = "embedded regard metric"
PRINTED: Final = {"respect": 0.78, "occupation": 0.79}
"""Footnote 9: BERT's accuracy by context, on dev or test (not stated). The bars have no numbers."""
_COLUMNS: Final = ("part", "context", "texts", "runs", "accuracy", "low", "high", "sd_over_runs")


@dataclass(frozen=True, slots=True)
class FigureTrainings:
    """The training jobs of the classifiers in Figure 1."""

    published: RegardRelease
    request: ReplicationRequest

    def names(self) -> dict[str, str]:
        """Name in the figure to backbone; ``--full`` adds the paper's BERT, downloaded from the Hub."""
        return CLASSIFIERS | ({"transformer (BERT)": BERT} if self.request.full else {})

    def check(self) -> None:
        """Raise an error early if the annotations are unusable for training."""
        self._training(ANALYSERS[0], Path())

    def figure(self, folder: Path, progress: Progress) -> Exhibit:
        """Train the classifiers that are not trained yet, and draw the figure."""
        tables, notes = [], []
        for name, backbone in self.names().items():
            try:
                trained = self._training(backbone, folder).run(progress)
            except MissingLibraryError as error:
                notes.append(f"{name} is left out: {error.problem}.")
                continue
            # One run, or several with different seeds.
            runs = sorted(trained.folder.glob("seed-*")) or [trained.folder]
            tables.append(_accuracies(name, [read_predictions(run / PREDICTIONS_FILE) for run in runs]))
        tables.append(_accuracies(EMBEDDED, [self._embedded_predictions()]))
        published = [
            {"source": "paper", "classifier": "BERT", "part": "not said", "context": name, "accuracy": value}
            for name, value in PRINTED.items()
        ]
        frame = pl.concat([pl.DataFrame(published), *tables], how="diagonal_relaxed")
        notes += [
            f"Trained on the 212 published texts, {RUNS} seeded runs each; VADER and TextBlob are not "
            "trained. The interval is over texts, the runs of a text being one observation: with 30 test "
            "texts it is wide.",
            "The embedded metric was not trained on the published annotations, but they informed choices in "
            "its design: see its card.",
            "The vote of three is ours, not the paper's. The paper prints BERT's accuracy in words only.",
        ]
        texts = self.published.annotations("regard")
        known = texts.filter(part="train")["text"]
        repeated = texts.filter(pl.col("part") != "train", pl.col("text").is_in(known.implode())).height
        if repeated:
            notes.append(f"Dev and test texts that occur verbatim in the training texts: {repeated}.")
        alt = "Accuracy of regard classifiers on development and test texts, with intervals"
        title = "Accuracy of regard classifiers"
        return Exhibit("figure_1", title, frame, tuple(notes), svg=_draw(frame), alt=alt)

    def _training(self, backbone: str, folder: Path) -> TrainingJob:
        data = {part: self.published.folder / f"regard_{part}.tsv" for part in PARTS}
        options: TrainOptions = {
            "backbone": backbone,
            "valid": data["dev"],
            "test": data["test"],
            "out": folder / safe_file_name(backbone, "classifier"),
            "seed": self.request.seed,
            "device": self.request.options["device"],
            "offline": self.request.options["offline"],
        }
        if backbone not in ANALYSERS:
            options |= {"runs": RUNS, "max_length": LONGEST}
        if backbone == BERT:
            options |= {"preset": "regard-bert"}
        return prepare("regard", data["train"], **options)

    def _embedded_predictions(self) -> list[TextPrediction]:
        unseen = self.published.annotations("regard").filter(pl.col("part") != "train")
        scores = Regard(execution=self.request.execution()).score([Text(text) for text in unseen["text"]])
        return [
            TextPrediction(part, text, label, row["regard"].label or "")
            for (part, label, text), row in zip(unseen.iter_rows(), scores, strict=True)
        ]


def _accuracies(name: str, runs: Sequence[Sequence[TextPrediction]]) -> pl.DataFrame:
    """The accuracies of a classifier, averaged over its runs."""
    rows = [row._asdict() for row in average_accuracies(runs, RegardSuite().find_context)]
    return pl.DataFrame(rows, infer_schema_length=None).select(
        pl.lit("this copy").alias("source"), pl.lit(name).alias("classifier"), *_COLUMNS
    )


def _draw(frame: pl.DataFrame) -> str:
    bars = frame.filter(pl.col("source") != "paper").select(
        "context", "low", "high", label="classifier", series="part", value="accuracy"
    )
    titles = {"All texts": ALL, "Respect": "respect", "Occupation": "occupation"}
    panels = {title: bars.filter(pl.col("context") == context) for title, context in titles.items()}
    return draw_panels(panels, unit="accuracy", columns=3, top=1.0)
