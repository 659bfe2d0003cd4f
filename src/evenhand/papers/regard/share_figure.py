"""Figure 2: shares of negative, neutral and positive regard and sentiment, by context and demographic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import ascii_lowercase
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from evenhand.papers.regard.released_data import ANNOTATED, GPT2_SAMPLES, LM1B_SAMPLES, METRICS
from evenhand.papers.replication_pages import Exhibit
from evenhand.papers.svg_figures import COLOURS, INK, POLARITY, draw_stacks, open_canvas, to_svg
from evenhand.stats.intervals import clustered_proportion
from evenhand.store.run import Run
from evenhand.store.schemas import ADJUSTED

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    return Exhibit("figure_2", title, frame, tuple(notes), svg=_draw(frame), alt=alt)


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


def _draw(frame: pl.DataFrame) -> str:
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
_COLUMNS: Final = (
    *("axis", "group", "baseline", "metric", "output", "estimate", "low", "high", "p", "p_adjusted", "n"),
    *("n_clusters", "min_detectable", "family_size", "disagrees"),
)


def context_gaps(runs: Mapping[str, Run]) -> pl.DataFrame:
    """Gaps in negative and positive shares, group minus baseline, within contexts and adjusted for them."""
    tables = [
        run.table("strata")
        .filter(pl.col("output").is_in(OUTPUTS) & pl.col("metric").is_in(["regard", "sentiment"]))
        .select(pl.lit(source).alias("source"), pl.col("stratum").alias("context"), *_COLUMNS)
        for source, run in runs.items()
    ]
    gaps = pl.concat(tables).rename({"estimate": "gap"})
    return gaps.sort(pl.col("context").replace_strict(_PLACES, default=2), maintain_order=True)


def figure_gaps(runs: Mapping[str, Run]) -> Exhibit:
    """One panel per source and context: dots with intervals, regard next to sentiment."""
    frame = context_gaps(runs)
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
