"""Figure 1, the accuracy of regard classifiers; Figure 2, label shares; and gaps between demographics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from string import ascii_lowercase
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from evenhand.core.errors import MissingLibraryError
from evenhand.core.files import safe_file_name
from evenhand.core.protocols import Progress
from evenhand.core.records import Text
from evenhand.metrics.regard import Regard
from evenhand.papers.regard.released_data import (
    ANNOTATED,
    GPT2_SAMPLES,
    LM1B_SAMPLES,
    METRICS,
    PARTS,
    RegardRelease,
)
from evenhand.papers.replicate import ReplicationRequest
from evenhand.papers.replication_pages import Exhibit
from evenhand.papers.svg_figures import COLOURS, INK, POLARITY, draw_panels, draw_stacks, open_canvas, to_svg
from evenhand.stats.intervals import clustered_proportion
from evenhand.store.run import Run
from evenhand.store.schemas import ADJUSTED
from evenhand.suites.regard import RegardSuite
from evenhand.training.classifier_job import ALL, average_accuracies
from evenhand.training.job_folder import PREDICTIONS_FILE, TextPrediction, read_predictions
from evenhand.training.linear_text import ANALYSERS
from evenhand.training.options import TrainOptions
from evenhand.training.train import TrainingJob

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CLASSIFIER_RUNS: Final = 5
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
_ACCURACY_COLUMNS: Final = ("part", "context", "texts", "runs", "accuracy", "low", "high", "sd_over_runs")


def list_classifiers(request: ReplicationRequest) -> dict[str, str]:
    """Name in the figure to backbone; ``--full`` adds the paper's BERT, downloaded from the Hub."""
    return CLASSIFIERS | ({"transformer (BERT)": BERT} if request.full else {})


def train_classifier(
    published: RegardRelease, request: ReplicationRequest, backbone: str, folder: Path
) -> TrainingJob:
    """The training of a classifier of Figure 1 on the annotations."""
    parts = [published.folder / f"regard_{part}.tsv" for part in PARTS]
    out = folder / safe_file_name(backbone, "classifier")
    options: TrainOptions = {"backbone": backbone, "out": out}
    if backbone not in ANALYSERS:
        options |= {"runs": CLASSIFIER_RUNS, "max_length": LONGEST}
    if backbone == BERT:
        options |= {"preset": "regard-bert"}
    return request.training("regard", parts, **options)


def figure_1(
    published: RegardRelease, request: ReplicationRequest, folder: Path, progress: Progress
) -> Exhibit:
    """Train the classifiers that are not trained yet, and draw their accuracy."""
    tables, notes = [], []
    for name, backbone in list_classifiers(request).items():
        try:
            trained = train_classifier(published, request, backbone, folder).run(progress)
        except MissingLibraryError as error:
            notes.append(f"{name} is left out: {error.problem}.")
            continue
        # One run, or several with different seeds.
        runs = sorted(trained.folder.glob("seed-*")) or [trained.folder]
        tables.append(_accuracies(name, [read_predictions(run / PREDICTIONS_FILE) for run in runs]))
    texts = published.annotations("regard")
    known, unseen = texts.filter(part="train")["text"], texts.filter(pl.col("part") != "train")
    tables.append(_accuracies(EMBEDDED, [_predict_embedded(unseen, request)]))
    printed = [
        {"source": "paper", "classifier": "BERT", "part": "not said", "context": name, "accuracy": value}
        for name, value in PRINTED.items()
    ]
    frame = pl.concat([pl.DataFrame(printed), *tables], how="diagonal_relaxed")
    notes += [
        f"Trained on the 212 published texts, {CLASSIFIER_RUNS} seeded runs each; VADER and TextBlob are not "
        "trained. The interval is over texts, the runs of a text being one observation: with 30 test "
        "texts it is wide.",
        "The embedded metric was not trained on the published annotations, but they informed choices in "
        "its design: see its card.",
        "The vote of three is ours, not the paper's. The paper prints BERT's accuracy in words only.",
    ]
    if repeated := unseen.filter(pl.col("text").is_in(known.implode())).height:
        notes.append(f"Dev and test texts that occur verbatim in the training texts: {repeated}.")
    alt = "Accuracy of regard classifiers on development and test texts, with intervals"
    title = "Accuracy of regard classifiers"
    return Exhibit("figure_1", title, frame, tuple(notes), svg=_draw_accuracies(frame), alt=alt)


def _predict_embedded(unseen: pl.DataFrame, request: ReplicationRequest) -> list[TextPrediction]:
    scores = Regard(execution=request.execution()).score([Text(text) for text in unseen["text"]])
    return [
        TextPrediction(part, text, label, row["regard"].label or "")
        for (part, label, text), row in zip(unseen.iter_rows(), scores, strict=True)
    ]


def _accuracies(name: str, runs: Sequence[Sequence[TextPrediction]]) -> pl.DataFrame:
    """The accuracies of a classifier, averaged over its runs."""
    rows = [row._asdict() for row in average_accuracies(runs, RegardSuite().find_context)]
    return pl.DataFrame(rows, infer_schema_length=None).select(
        pl.lit("this copy").alias("source"), pl.lit(name).alias("classifier"), *_ACCURACY_COLUMNS
    )


def _draw_accuracies(frame: pl.DataFrame) -> str:
    bars = frame.filter(pl.col("source") != "paper").select(
        "context", "low", "high", label="classifier", series="part", value="accuracy"
    )
    titles = {"All texts": ALL, "Respect": "respect", "Occupation": "occupation"}
    panels = {title: bars.filter(context=context) for title, context in titles.items()}
    return draw_panels(panels, unit="accuracy", columns=3, top=1.0)


_ROWS: Final = {GPT2_SAMPLES: "1", LM1B_SAMPLES: "2", ANNOTATED: "3"}
"""The paper's row numbers; other sources have none."""
_COLOURS: Final = {
    "negative": POLARITY["negative"],
    "neutral": POLARITY["neutral"],
    "other": "#e7e8ea",
    "positive": POLARITY["positive"],
}
"""Colour by label, in the order of a bar's parts."""
_SHARE_COLUMNS: Final = ("metric", "label", "share", "low", "high", "texts", "clusters")


def figure_2(texts: pl.DataFrame, notes: Sequence[str]) -> Exhibit:
    """One row per source, panel per context and metric, bar per demographic, with whiskers at both ends."""
    frame = label_shares(texts)
    alt = (
        "Shares of negative, neutral and positive regard and sentiment for each demographic, by context: "
        + ", ".join(frame["source"].unique(maintain_order=True))
    )
    title = "Regard and sentiment by demographic"
    return Exhibit("figure_2", title, frame, tuple(notes), svg=_draw_all_shares(frame), alt=alt)


def label_shares(texts: pl.DataFrame) -> pl.DataFrame:
    """The share of each label by source, context, metric and demographic; prompts are the clusters."""
    rows = []
    keys = ["source", "context", "axis", "group"]
    for key, part in texts.partition_by(keys, as_dict=True, maintain_order=True).items():
        for metric in METRICS:
            known = part.filter(pl.col(metric).is_not_null())
            for label in _COLOURS if metric == "regard" else POLARITY:
                hits = (known[metric] == label).to_numpy().astype(np.float64)
                share = clustered_proportion(hits, known["cluster"].to_numpy())
                counts = (share.n, share.n_clusters)
                rows.append((*key, metric, label, share.value, share.low, share.high, *counts))
    columns = [*keys, *_SHARE_COLUMNS]
    return pl.DataFrame(rows, schema=columns, orient="row", infer_schema_length=None)


def _draw_all_shares(frame: pl.DataFrame) -> str:
    sources = frame["source"].unique(maintain_order=True).to_list()
    contexts = frame["context"].unique(maintain_order=True)
    columns = [(context, metric) for context in contexts for metric in METRICS]
    panels = [(source, *column) for source in sources for column in columns]
    titles = [
        f"({_ROWS.get(source, '')}{ascii_lowercase[place % len(columns) % 26]}) {metric}, {context}"
        for place, (source, context, metric) in enumerate(panels)
    ]
    with open_canvas(titles, columns=len(columns), width=3.2, height=2.3, fontsize=8) as (canvas, axes):
        for axis, (source, context, metric) in zip(axes, panels, strict=True):
            _draw_shares(axis, frame.filter(source=source, context=context, metric=metric))
        for axis, source in zip(axes[:: len(columns)], sources, strict=True):
            axis.set_ylabel(source, fontsize=8)
        for label, colour in _COLOURS.items():
            axes[0].barh(0, 0, color=colour, label=label)
        axes[0].legend(fontsize=6, ncols=4, loc="lower left", bbox_to_anchor=(0, 1.12))
        return to_svg(canvas)


def _draw_shares(axis: Axes, part: pl.DataFrame) -> None:
    """Draw one bar per demographic; positive shares are at the right, with their interval."""
    shares = part.pivot("label", index="group", values="share").rename({"group": "label"})
    colours = {label: colour for label, colour in _COLOURS.items() if label in shares.columns}
    draw_stacks(axis, shares, colours, with_numbers=False)
    axis.tick_params(axis="x", labelsize=7)
    axis.tick_params(axis="y", labelsize=8)
    groups = shares["label"].reverse().to_list()
    ends = part.filter(pl.col("label").is_in(OUTPUTS)).drop_nulls("low")
    for group, label, low, high in ends.select("group", "label", "low", "high").iter_rows():
        # Offset from each other, since the two intervals of a bar can overlap.
        at, line = groups.index(group) + 0.16, [low, high]
        if label == "positive":
            at, line = groups.index(group) - 0.16, [1 - high, 1 - low]
        axis.plot(line, [at, at], color=INK, linewidth=1)


LEVEL: Final = 0.05
_METRIC_COLOURS: Final = dict(zip(("regard", "sentiment"), COLOURS, strict=False))
OUTPUTS: Final = ("negative", "positive")
_PLACES: Final = {"respect": 0, "occupation": 1, ADJUSTED: 3}
"""The paper's order of contexts; a user's own come after them."""
_GAP_COLUMNS: Final = (
    *("axis", "group", "baseline", "metric", "output", "estimate", "low", "high", "p", "p_adjusted", "n"),
    *("n_clusters", "min_detectable", "family_size", "disagrees"),
)


def figure_gaps(runs: Mapping[str, Run]) -> Exhibit:
    """Gaps in negative and positive shares, group minus baseline, within contexts and adjusted for them.

    One panel per source and context: dots with intervals, regard next to sentiment.
    """
    tables = [
        run.table("strata")
        .filter(pl.col("output").is_in(OUTPUTS) & pl.col("metric").is_in(["regard", "sentiment"]))
        .select(pl.lit(source).alias("source"), pl.col("stratum").alias("context"), *_GAP_COLUMNS)
        for source, run in runs.items()
    ]
    gaps = pl.concat(tables).rename({"estimate": "gap"})
    frame = gaps.sort(pl.col("context").replace_strict(_PLACES, default=2), maintain_order=True)
    notes = (
        "Group minus baseline in shares; p is cluster-robust over templates, corrected within the source "
        "over all pairs, contexts, metrics and outputs. Five templates per context detect only large gaps: "
        "the column min_detectable gives the minimum.",
        "The context (adjusted) weights both contexts equally; the column disagrees marks a gap that "
        "changes its sign there.",
    )
    alt = "Gaps between demographic pairs in negative and positive shares, by context, with intervals"
    title = "Gaps between demographic pairs"
    return Exhibit("figure_gaps", title, frame, notes, svg=_draw_gaps(frame), alt=alt)


def _draw_gaps(frame: pl.DataFrame) -> str:
    inside = frame.filter(pl.col("context") != ADJUSTED)
    panels = inside.select("source", "context", "output").unique(maintain_order=True).rows(named=True)
    ends = [end for end in (*inside["low"], *inside["high"], *inside["gap"]) if end is not None]
    widest = 1.05 * max((abs(end) for end in ends), default=1.0)
    titles = ["{source}: {output}, {context}".format(**panel) for panel in panels]
    with open_canvas(titles, columns=2, width=5.0, height=2.2, fontsize=9) as (canvas, axes):
        for axis, panel in zip(axes, panels, strict=False):
            _draw_gap_panel(axis, inside.filter(**panel))
            axis.set_xlim(-widest, widest)
        for metric, colour in _METRIC_COLOURS.items():
            axes[0].plot([], [], "o", color=colour, label=metric)
        axes[0].legend(fontsize=7, title="filled: adjusted p < 0.05", title_fontsize=7)
        return to_svg(canvas)


def _draw_gap_panel(axis: Axes, part: pl.DataFrame) -> None:
    """Draw one line per pair: regard above, sentiment below, group minus baseline."""
    pairs = part.select("group", "baseline").unique(maintain_order=True).rows()
    for row in part.iter_rows(named=True):
        shift = 0.15 if row["metric"] == "regard" else -0.15
        at = len(pairs) - 1 - pairs.index((row["group"], row["baseline"])) + shift
        colour = _METRIC_COLOURS[row["metric"]]
        is_significant = row["p_adjusted"] is not None and row["p_adjusted"] < LEVEL
        if row["gap"] is not None:
            axis.plot([row["gap"]], [at], "o", color=colour, fillstyle="full" if is_significant else "none")
        if row["low"] is not None:
            axis.plot([row["low"], row["high"]], [at, at], color=colour, linewidth=1)
    labels = [f"{group} - {baseline}" for group, baseline in reversed(pairs)]
    axis.set_yticks(range(len(labels)), labels, fontsize=8)
    axis.set_ylim(-0.5, len(labels) - 0.5)
    axis.axvline(0, color=INK, linewidth=0.6)
