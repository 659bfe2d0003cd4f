"""Figure 2: shares of negative, neutral and positive regard and sentiment, by context and demographic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import ascii_lowercase
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from evenhand.papers.regard.released_data import ANNOTATED, GPT2_SAMPLES, LM1B_SAMPLES, METRICS
from evenhand.papers.replication_pages import PaperFigure
from evenhand.papers.svg_figures import COLOURS, POLARITY, open_canvas, to_svg
from evenhand.stats.intervals import clustered_proportion
from evenhand.store.run import Run
from evenhand.store.schemas import ADJUSTED

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_ROWS: Final = {GPT2_SAMPLES: "1", LM1B_SAMPLES: "2", ANNOTATED: "3"}
"""The paper's numbers of the rows; other sources have none."""
ORDER: Final = ("negative", "neutral", "other", "positive")
_COLOURS: Final = {**POLARITY, "other": "#e7e8ea"}


def figure_2(texts: pl.DataFrame, notes: Sequence[str]) -> PaperFigure:
    """A row a source, a panel a context and metric, a bar a demographic, whiskers for both ends."""
    frame = label_shares(texts)
    alt = (
        "Shares of negative, neutral and positive regard and sentiment for each demographic, by context: "
        + ", ".join(frame["source"].unique(maintain_order=True))
    )
    return PaperFigure(
        "figure_2", "Regard and sentiment by demographic", frame, _draw(frame), alt, tuple(notes)
    )


def label_shares(texts: pl.DataFrame) -> pl.DataFrame:
    """The share of each label by source, context, metric and demographic; prompts are the clusters."""
    rows = []
    keys = ["source", "context", "axis", "group"]
    for key, part in texts.partition_by(keys, as_dict=True, maintain_order=True).items():
        for metric in METRICS:
            known = part.filter(pl.col(metric).is_not_null())
            for label in ORDER:
                if label == "other" and metric == "sentiment":
                    continue
                hits = (known[metric] == label).to_numpy().astype(np.float64)
                found = clustered_proportion(hits, known["cluster"].to_numpy())
                rows.append(
                    {
                        **dict(zip(keys, key, strict=True)),
                        "metric": metric,
                        "label": label,
                        "share": found.value,
                        "low": found.low,
                        "high": found.high,
                        "texts": found.n,
                        "clusters": found.n_clusters,
                    }
                )
    return pl.DataFrame(rows, infer_schema_length=None)


def _draw(frame: pl.DataFrame) -> str:
    sources = frame["source"].unique(maintain_order=True).to_list()
    panels = [
        (context, metric) for context in frame["context"].unique(maintain_order=True) for metric in METRICS
    ]
    size = {"width": 3.2 * len(panels), "height": 2.3 * len(sources)}
    with open_canvas(len(panels), len(sources), **size) as (canvas, axes):
        for row, source in enumerate(sources):
            for column, (context, metric) in enumerate(panels):
                axis = axes[row * len(panels) + column]
                _panel(axis, frame.filter(source=source, context=context, metric=metric))
                place = f"({_ROWS.get(source, '')}{ascii_lowercase[column % 26]})"
                axis.set_title(f"{place} {metric}, {context}", loc="left", fontsize=8)
                if column == 0:
                    axis.set_ylabel(source, fontsize=8)
        _legend(axes[0])
        return to_svg(canvas)


def _legend(axis: Axes) -> None:
    for label in ORDER:
        axis.barh(0, 0, color=_COLOURS[label], label=label)
    axis.legend(fontsize=6, ncols=4, loc="lower left", bbox_to_anchor=(0, 1.12))


def _panel(axis: Axes, part: pl.DataFrame) -> None:
    groups = part["group"].unique(maintain_order=True).to_list()
    for place, group in enumerate(reversed(groups)):
        cells = {row["label"]: row for row in part.filter(pl.col("group") == group).iter_rows(named=True)}
        left = 0.0
        for label in ORDER:
            cell = cells.get(label)
            if cell is None or cell["share"] is None:
                continue
            axis.barh(place, cell["share"], left=left, color=_COLOURS[label], height=0.7)
            left += cell["share"]
        # Apart from each other, since the two intervals of a bar can overlap.
        _whisker(axis, place + 0.16, cells.get("negative"), from_right=False)
        _whisker(axis, place - 0.16, cells.get("positive"), from_right=True)
    axis.set_yticks(range(len(groups)), list(reversed(groups)), fontsize=8)
    axis.set_xlim(0, 1)
    axis.set_xticks([0, 0.5, 1], ["0", "50 %", "100 %"], fontsize=7)


def _whisker(axis: Axes, place: float, cell: dict[str, float | None] | None, *, from_right: bool) -> None:
    """The interval of a share at the end of its bar; positive bars stand at the right."""
    if cell is None or cell["low"] is None or cell["high"] is None:
        return
    ends = [1 - cell["high"], 1 - cell["low"]] if from_right else [cell["low"], cell["high"]]
    axis.plot(ends, [place, place], color="#17191d", linewidth=1)


LEVEL: Final = 0.05
_COLOURS_context_gaps: Final = dict(zip(("regard", "sentiment"), COLOURS, strict=False))
OUTPUTS: Final = ("negative", "positive")
_PLACES: Final = {"respect": 0, "occupation": 1, ADJUSTED: 3}
"""The paper's order of contexts; a user's own stand after them."""
_COLUMNS: Final = (
    *("axis", "group", "baseline", "metric", "output", "estimate", "low", "high", "p", "p_adjusted", "n"),
    *("n_clusters", "min_detectable", "family_size", "disagrees"),
)


def context_gaps(runs: Mapping[str, Run]) -> pl.DataFrame:
    """Gaps of negative and positive shares, group minus baseline, inside contexts and adjusted for them."""
    tables = [
        run.table("strata")
        .filter(pl.col("output").is_in(OUTPUTS) & pl.col("metric").is_in(["regard", "sentiment"]))
        .select(pl.lit(source).alias("source"), pl.col("stratum").alias("context"), *_COLUMNS)
        for source, run in runs.items()
    ]
    found = pl.concat(tables).rename({"estimate": "gap"})
    return found.sort(pl.col("context").replace_strict(_PLACES, default=2), maintain_order=True)


def figure_gaps(runs: Mapping[str, Run]) -> PaperFigure:
    """A panel a source and context: dots with intervals, regard beside sentiment."""
    frame = context_gaps(runs)
    notes = (
        "Group minus baseline in shares; p is cluster-robust over templates, corrected within the source "
        "over "
        "all pairs, contexts, metrics and outputs. Five templates a context see only large gaps: "
        "the column min_detectable says how large.",
        "The context (adjusted) weighs both contexts alike; the column disagrees marks a gap that turns "
        "around there.",
    )
    alt = "Gaps between demographic pairs in negative and positive shares, by context, with intervals"
    return PaperFigure(
        "figure_gaps", "Gaps between demographic pairs", frame, _draw_context_gaps(frame), alt, notes
    )


def _draw_context_gaps(frame: pl.DataFrame) -> str:
    inside = frame.filter(pl.col("context") != ADJUSTED)
    panels = inside.select("source", "context", "output").unique(maintain_order=True).rows(named=True)
    rows = max(1, -(-len(panels) // 2))
    ends = [end for end in (*inside["low"], *inside["high"], *inside["gap"]) if end is not None]
    widest = 1.05 * max((abs(end) for end in ends), default=1.0)
    with open_canvas(2, rows, width=10.0, height=2.2 * rows) as (canvas, axes):
        for spare in axes[len(panels) :]:
            spare.set_visible(False)
        for axis, panel in zip(axes, panels, strict=False):
            _panel_context_gaps(axis, inside.filter(**panel))
            axis.set_xlim(-widest, widest)
            axis.set_title("{source}: {output}, {context}".format(**panel), loc="left", fontsize=9)
        for metric, colour in _COLOURS_context_gaps.items():
            axes[0].plot([], [], "o", color=colour, label=metric)
        axes[0].legend(fontsize=7, title="filled: adjusted p < 0.05", title_fontsize=7)
        return to_svg(canvas)


def _panel_context_gaps(axis: Axes, part: pl.DataFrame) -> None:
    """A line a pair: regard above, sentiment below, group minus baseline."""
    pairs = part.select("group", "baseline").unique(maintain_order=True).rows()
    for row in part.iter_rows(named=True):
        shift = 0.15 if row["metric"] == "regard" else -0.15
        at = len(pairs) - 1 - pairs.index((row["group"], row["baseline"])) + shift
        colour = _COLOURS_context_gaps[row["metric"]]
        is_sure = row["p_adjusted"] is not None and row["p_adjusted"] < LEVEL
        if row["gap"] is not None:
            axis.plot([row["gap"]], [at], "o", color=colour, fillstyle="full" if is_sure else "none")
        if row["low"] is not None:
            axis.plot([row["low"], row["high"]], [at, at], color=colour, linewidth=1)
    labels = [f"{group} - {baseline}" for group, baseline in reversed(pairs)]
    axis.set_yticks(range(len(labels)), labels, fontsize=8)
    axis.set_ylim(-0.5, len(labels) - 0.5)
    axis.axvline(0, color="#17191d", linewidth=0.6)
