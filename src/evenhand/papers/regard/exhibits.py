"""The exhibits of the paper: Tables 4 and 5, Figures 1 and 2, gaps and disagreements, and its claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from evenhand.annotate.label_aggregation import AgreementEstimate
from evenhand.core.errors import MissingLibraryError
from evenhand.core.files import safe_file_name
from evenhand.core.protocols import Progress
from evenhand.core.records import Estimate, Text
from evenhand.metrics.regard import Regard
from evenhand.metrics.sentiment import Sentiment
from evenhand.papers.regard.released_data import (
    ANNOTATED,
    GPT2_SAMPLES,
    LABELS,
    LM1B_SAMPLES,
    METRICS,
    PARTS,
    RegardRelease,
)
from evenhand.papers.replicate import ReplicationRequest
from evenhand.papers.replication_pages import Exhibit, PaperClaim, estimate_cells
from evenhand.papers.svg_figures import COLOURS, INK, POLARITY, draw_panels, draw_stacks, open_canvas, to_svg
from evenhand.stats.agreement_coefficients import spearman
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
    alt = "Shares of negative, neutral and positive regard and sentiment for each demographic, by context: "
    alt += ", ".join(frame["source"].unique(maintain_order=True))
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


PRINTED_4: Final = {"train": (80, 67, 65), "dev": (28, 15, 17), "test": (9, 11, 10)}
PRINTED_5: Final = {
    "sentiment ann. vs. regard ann.": (0.95, 0.70, 0.82),
    "VADER pred. vs. sentiment ann.": (0.78, 0.71, 0.74),
    "VADER pred. vs. regard ann.": (0.69, 0.54, 0.61),
}
_PRINTED_COLUMNS: Final = ("respect", "occupation", "both")
PAPER: Final = "paper"
OURS: Final = "this copy"
CUT: Final = 0.05
RESAMPLES: Final = 2_000

Codes = Mapping[str, int]


def table_4(published: RegardRelease) -> Exhibit:
    """Number of texts by part and majority label of regard."""
    counts = Counter(published.annotations("regard").select("part", "label").iter_rows())
    ours = {part: tuple(counts[part, label] for label in LABELS) for part in PARTS}
    rows = [
        (source, part, *cells, sum(cells))
        for source, parts in ((PAPER, PRINTED_4), (OURS, ours))
        for part, cells in parts.items()
    ]
    frame = pl.DataFrame(rows, schema=["source", "dataset", *LABELS, "total"], orient="row")
    return Exhibit("table_4", "The annotated regard data set", frame)


def table_5(published: RegardRelease, seed: int) -> Exhibit:
    """Spearman's rho by context; ``both`` is the mean over contexts (as printed), ``pooled`` is over all."""
    rows: list[dict[str, object]] = [
        {"source": PAPER, "datasets": name, **dict(zip(_PRINTED_COLUMNS, cells, strict=True))}
        for name, cells in PRINTED_5.items()
    ]
    for name, cells in correlations(published, seed).items():
        row: dict[str, object] = {"source": OURS, "datasets": name}
        for context, rho in cells.items():
            row |= estimate_cells(context, rho) | {f"{context}_texts": rho.n}
        respect, occupation = cells["respect"].value, cells["occupation"].value
        row["both"] = None if respect is None or occupation is None else (respect + occupation) / 2
        rows.append(row)
    notes = (
        "The first row is over the texts in both sets; a text that occurs twice in one set counts once. "
        "The printed value for both is the mean of the contexts, not the pooled correlation.",
        f"VADER 3.3.2 at +-{CUT:g} on the masked text; the paper does not state its version, which gives "
        "other values, so only the first row can be expected to match to the digit.",
        "Intervals resample templates: ten clusters in all, five per context.",
    )
    return Exhibit("table_5", "Spearman's correlation", pl.DataFrame(rows, infer_schema_length=None), notes)


@cache
def correlations(published: RegardRelease, seed: int) -> dict[str, dict[str, Estimate]]:
    """Rho for each row of Table 5 by context and ``pooled``, with intervals over templates."""
    sentiment, regard = (
        {text: LABELS.index(label) for _, label, text in published.annotations(metric).iter_rows()}
        for metric in ("sentiment", "regard")
    )
    texts = list(sentiment | regard)
    scores = Sentiment(cut=CUT).score([Text(text) for text in texts])
    labels = (row["compound"].label or "neutral" for row in scores)
    vader = {text: LABELS.index(label) for text, label in zip(texts, labels, strict=True)}
    pairs = ((sentiment, regard), (vader, sentiment), (vader, regard))
    return {name: _rho(*pair, seed) for name, pair in zip(PRINTED_5, pairs, strict=True)}


def _rho(first: Codes, second: Codes, seed: int) -> dict[str, Estimate]:
    suite = RegardSuite()
    shared = {text: suite.find_template(text) for text in second if text in first}
    estimates = {}
    for name in ("respect", "occupation", "pooled"):
        texts = [text for text, place in shared.items() if name in ("pooled", place.rpartition("-")[0])]
        x, y = ([codes[text] for text in texts] for codes in (first, second))
        templates = [shared[text] for text in texts]
        estimates[name] = spearman(x, y, templates, rng=seed, resamples=RESAMPLES)
    return estimates


_IS_LABELLED: Final = pl.col("regard").is_in(LABELS) & pl.col("sentiment").is_in(LABELS)
SHOWN: Final = 25
"""Maximum number of texts per source, context and direction."""
_SHOWN: Final = (
    *("source", "context", "axis", "group"),
    *("regard", "sentiment", "regard_value", "sentiment_value", "text"),
)


def table_agreement(texts: pl.DataFrame) -> Exhibit:
    """Texts by context, regard and sentiment, with their share of the context's texts with both labels."""
    known = texts.filter(_IS_LABELLED)
    keys = ["source", "context"]
    counts = known.group_by(*keys, "regard", "sentiment").len("texts")
    shares = counts.with_columns(of=pl.col("texts").sum().over(keys)).with_columns(
        share=pl.col("texts") / pl.col("of"), agree=pl.col("regard") == pl.col("sentiment")
    )
    frame = shares.sort(*keys, "regard", "sentiment")
    notes = (
        f"{texts.height - known.height:,} of {texts.height:,} texts are not counted: their regard is `other` "
        "or one of the two labels is missing.",
    )
    return Exhibit("table_agreement", "Regard against sentiment", frame, notes)


def table_disagreements(texts: pl.DataFrame) -> Exhibit:
    """Texts with positive sentiment and negative regard or the reverse, largest difference first."""
    is_polar = pl.all_horizontal(pl.col("regard", "sentiment") != "neutral")
    known = texts.filter(_IS_LABELLED, is_polar, pl.col("regard") != pl.col("sentiment"))
    apart = (pl.col("regard_value") - pl.col("sentiment_value")).abs()
    frame = (
        known.unique(["source", "text"], maintain_order=True)
        .with_columns(apart=apart)
        .sort("apart", "text", descending=[True, False])
        .group_by("source", "context", "regard", "sentiment", maintain_order=True)
        .head(SHOWN)
        .sort("source", "context", "regard", maintain_order=True)
        .select(_SHOWN)
    )
    notes = (f"At most {SHOWN} texts per source, context and direction, the largest score difference first.",)
    title = "Where regard and sentiment disagree"
    return Exhibit("table_disagreements", title, frame, notes, is_offensive=True)


_NO_RATINGS = "the individual ratings were not released; pass your own with --human"
_MORE_NEGATIVE = {"respect": ("Black", "man", "gay"), "occupation": ("Black", "woman", "gay")}
"""Section 5: the groups with more negative regard in GPT-2's texts, by context."""
_AGREEMENT = (
    ("fleiss_kappa", "all", "sentiment", "0.50"),
    ("fleiss_kappa", "all", "regard", "0.49"),
    ("fleiss_kappa", "original", "sentiment", "0.60"),
    ("fleiss_kappa", "original", "regard", "0.67"),
    ("spearman", "original", "sentiment", "0.76"),
    ("spearman", "original", "regard", "0.80"),
)
"""Statistic, categories, question, and the printed value."""
_STATED = "more negative regard"
_RIVALS = ("LSTM, random", "LSTM, pretrained", "VADER", "TextBlob")


def agreement_claims(estimates: Sequence[AgreementEstimate]) -> Iterator[PaperClaim]:
    """Section 4: agreement between annotators; ours is from the table of individual ratings, if given."""
    known = {(row.statistic, row.categories, row.question): row.estimate for row in estimates}
    source = "your annotations" if estimates else ""
    for statistic, categories, question, number in _AGREEMENT:
        claim = f"{statistic.replace('_', ' ')} of {question}, {categories} categories"
        estimate = known.get((statistic, categories, question))
        remark = _NO_RATINGS if estimate is None else ""
        yield PaperClaim("4", claim, number, _format_estimate(estimate), source, remark)


def annotation_claims(published: RegardRelease, seed: int) -> Iterator[PaperClaim]:
    """Section 4: the number of kept texts; sentiment is the better proxy in respect contexts."""
    texts = published.annotations("regard")
    rho = correlations(published, seed)["sentiment ann. vs. regard ann."]
    claim, distinct = "texts whose majority is an original category", texts["text"].n_unique()
    yield PaperClaim("4", claim, "302", str(texts.height), "annotations", f"{distinct} different texts")
    claim = "sentiment correlates with regard more strongly in respect than in occupation contexts"
    ours = f"{_format_estimate(rho['respect'])} against {_format_estimate(rho['occupation'])}"
    yield PaperClaim("4", claim, "0.95 against 0.70", ours, "annotations")


def classifier_claims(accuracies: pl.DataFrame) -> Iterator[PaperClaim]:
    """Section 4 and footnote 9: the transformer against the other models, and by context."""
    test = accuracies.filter(pl.col("source") != "paper", pl.col("part") == "test")
    transformers = test.filter(pl.col("classifier").str.starts_with("transformer"))
    if transformers.is_empty():
        return
    name = transformers["classifier"][-1]
    of_context = transformers.filter(classifier=name).rows_by_key("context", named=True, unique=True)
    own = of_context["all"]
    rivals = test.filter(pl.col("context") == "all", pl.col("classifier").is_in(_RIVALS))
    best = rivals.sort("accuracy", descending=True).row(0, named=True)
    gap = 100 * (own["accuracy"] - best["accuracy"])
    claim = "the transformer's test accuracy exceeds every other model's by"
    ours = f"{gap:+.0f} points ({_accuracy(own)} against {_accuracy(best)} of {best['classifier']})"
    remark = "30 texts: intervals overlap widely" if own["low"] < best["high"] else ""
    yield PaperClaim("4", claim, "more than 20 points", ours, source=name, remark=remark)
    for context, number in (("respect", "78 %"), ("occupation", "79 %")):
        claim, ours = f"accuracy in {context} contexts", _accuracy(of_context[context])
        yield PaperClaim("4, footnote 9", claim, number, ours, name)


def gap_claims(gaps: pl.DataFrame) -> Iterator[PaperClaim]:
    """Section 5: the groups with more negative regard from GPT-2, and whether LM-1B differs less."""
    negative = gaps.filter(metric="regard", output="negative")
    mirrored = negative.with_columns(
        -pl.col("gap"), group="baseline", baseline="group", low=-pl.col("high"), high=-pl.col("low")
    )
    known = pl.concat([negative.with_row_index(), mirrored.with_row_index()]).drop_nulls("gap").sort("index")
    for context, groups in _MORE_NEGATIVE.items():
        for group in groups:
            for row in known.filter(context=context, group=group).iter_rows(named=True):
                yield _more_negative(row)
    inside = negative.filter(~pl.col("context").str.starts_with("(")).group_by("source")
    means = dict(inside.agg(pl.col("gap").abs().mean()).iter_rows())
    lm1b, gpt2 = (
        None if mean is None else f"{100 * mean:.1f} points"
        for mean in (means.get(LM1B_SAMPLES), means.get(GPT2_SAMPLES))
    )
    claim = "LM-1B's samples differ less between demographic pairs than GPT-2's"
    ours = lm1b and f"{lm1b} against {gpt2}"
    remark = "" if lm1b else "LM-1B's samples were not released: put lm1b_samples.tsv next to the other files"
    source = "mean absolute gap of negative regard"
    yield PaperClaim("5", claim, "as stated, no number", ours, source=source, remark=remark)


def _more_negative(row: dict[str, Any]) -> PaperClaim:
    low, high, p = row["low"], row["high"], row["p_adjusted"]
    shown = "none" if p is None else f"{p:.3f}"
    claim = f"{_STATED} of {row['group']} than of {row['baseline']} in {row['context']} contexts"
    ours = f"{100 * row['gap']:+.1f} points ({100 * low:+.1f} to {100 * high:+.1f}), adjusted p {shown}"
    remark = describe_gap(low, high, p)
    return PaperClaim("5", claim, "as stated, no number", ours, source=row["source"], remark=remark)


def describe_gap(low: float, high: float, p: float | None) -> str:
    """An empty text if a gap is significant after correction, else why the statement is not reproduced."""
    if low > 0:
        return "" if p is not None and p < LEVEL else "not after correction for the number of tests"
    return "the interval includes zero" if high > 0 else "the opposite"


def summarise_claims(claims: Sequence[PaperClaim]) -> tuple[str, ...]:
    """For each source the number of the paper's statements on more negative regard that are reproduced."""
    remarks: dict[str, list[str]] = {}
    for claim in claims:
        if claim.claim.startswith(_STATED):
            remarks.setdefault(claim.source, []).append(claim.remark)
    return tuple(
        f"{source}: of the paper's {len(own)} statements on groups with more negative regard, "
        f"{own.count('')} are reproduced after correction; the others are under Claims."
        for source, own in remarks.items()
    )


def _accuracy(row: dict[str, float]) -> str:
    return f"{100 * row['accuracy']:.0f} % ({100 * row['low']:.0f} to {100 * row['high']:.0f})"


def _format_estimate(estimate: Estimate | None) -> str | None:
    if estimate is None or estimate.value is None:
        return None
    spread = "" if estimate.low is None else f" ({estimate.low:.2f} to {estimate.high:.2f})"
    return f"{estimate.value:.2f}{spread}, {estimate.n_clusters} clusters"
