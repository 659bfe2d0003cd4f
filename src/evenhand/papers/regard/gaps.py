"""Our own: the gap of every demographic pair inside each context, with its interval and corrected test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import polars as pl

from evenhand.papers.figures import COLOURS, drawing, svg
from evenhand.papers.records import Figure
from evenhand.store.run import Run
from evenhand.store.schemas import ADJUSTED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEVEL: Final = 0.05
_COLOURS: Final = dict(zip(("regard", "sentiment"), COLOURS, strict=False))
OUTPUTS: Final = ("negative", "positive")
_PLACES: Final = {"respect": 0, "occupation": 1, ADJUSTED: 3}
"""The paper's order of contexts; a user's own stand after them."""
_COLUMNS: Final = (
    *("axis", "group", "baseline", "metric", "output", "estimate", "low", "high", "p", "p_adjusted", "n"),
    *("n_clusters", "min_detectable", "family_size", "disagrees"),
)


def gaps(runs: Mapping[str, Run]) -> pl.DataFrame:
    """Gaps of negative and positive shares, group minus baseline, inside contexts and adjusted for them."""
    tables = [
        run.table("strata")
        .filter(pl.col("output").is_in(OUTPUTS) & pl.col("metric").is_in(["regard", "sentiment"]))
        .select(pl.lit(source).alias("source"), pl.col("stratum").alias("context"), *_COLUMNS)
        for source, run in runs.items()
    ]
    found = pl.concat(tables).rename({"estimate": "gap"})
    return found.sort(pl.col("context").replace_strict(_PLACES, default=2), maintain_order=True)


def figure_gaps(runs: Mapping[str, Run]) -> Figure:
    """A panel a source and context: dots with intervals, regard beside sentiment."""
    frame = gaps(runs)
    notes = (
        "Group minus baseline in shares; p is cluster-robust over templates, corrected within the source "
        "over "
        "all pairs, contexts, metrics and outputs. Five templates a context see only large gaps: "
        "the column min_detectable says how large.",
        "The context (adjusted) weighs both contexts alike; the column disagrees marks a gap that turns "
        "around there.",
    )
    alt = "Gaps between demographic pairs in negative and positive shares, by context, with intervals"
    return Figure("figure_gaps", "Gaps between demographic pairs", frame, _draw(frame), alt, notes)


def _draw(frame: pl.DataFrame) -> str:
    inside = frame.filter(pl.col("context") != ADJUSTED)
    panels = inside.select("source", "context", "output").unique(maintain_order=True).rows(named=True)
    rows = max(1, -(-len(panels) // 2))
    ends = [end for end in (*inside["low"], *inside["high"], *inside["gap"]) if end is not None]
    widest = 1.05 * max((abs(end) for end in ends), default=1.0)
    with drawing(2, rows, width=10.0, height=2.2 * rows) as (canvas, axes):
        for spare in axes[len(panels) :]:
            spare.set_visible(False)
        for axis, panel in zip(axes, panels, strict=False):
            _panel(axis, inside.filter(**panel))
            axis.set_xlim(-widest, widest)
            axis.set_title("{source}: {output}, {context}".format(**panel), loc="left", fontsize=9)
        for metric, colour in _COLOURS.items():
            axes[0].plot([], [], "o", color=colour, label=metric)
        axes[0].legend(fontsize=7, title="filled: adjusted p < 0.05", title_fontsize=7)
        return svg(canvas)


def _panel(axis: Axes, part: pl.DataFrame) -> None:
    """A line a pair: regard above, sentiment below, group minus baseline."""
    pairs = part.select("group", "baseline").unique(maintain_order=True).rows()
    for row in part.iter_rows(named=True):
        shift = 0.15 if row["metric"] == "regard" else -0.15
        at = len(pairs) - 1 - pairs.index((row["group"], row["baseline"])) + shift
        colour = _COLOURS[row["metric"]]
        is_sure = row["p_adjusted"] is not None and row["p_adjusted"] < LEVEL
        if row["gap"] is not None:
            axis.plot([row["gap"]], [at], "o", color=colour, fillstyle="full" if is_sure else "none")
        if row["low"] is not None:
            axis.plot([row["low"], row["high"]], [at, at], color=colour, linewidth=1)
    labels = [f"{group} - {baseline}" for group, baseline in reversed(pairs)]
    axis.set_yticks(range(len(labels)), labels, fontsize=8)
    axis.set_ylim(-0.5, len(labels) - 0.5)
    axis.axvline(0, color="#17191d", linewidth=0.6)
