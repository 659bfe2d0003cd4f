"""Figure 2: shares of negative, neutral and positive regard and sentiment, by context and demographic."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_lowercase
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from evenhand.papers.figures import POLARITY, drawing, svg
from evenhand.papers.records import Figure
from evenhand.papers.regard.published import GPT2, LM1B, METRICS
from evenhand.papers.regard.texts import ANNOTATED
from evenhand.stats import clustered_proportion

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROWS: Final = {GPT2: "1", LM1B: "2", ANNOTATED: "3"}
"""The paper's numbers of the rows; other sources have none."""
ORDER: Final = ("negative", "neutral", "other", "positive")
_COLOURS: Final = {**POLARITY, "other": "#e7e8ea"}


def figure_2(texts: pl.DataFrame, notes: Sequence[str]) -> Figure:
    """A row a source, a panel a context and metric, a bar a demographic, whiskers for both ends."""
    frame = shares(texts)
    alt = (
        "Shares of negative, neutral and positive regard and sentiment for each demographic, by context: "
        + ", ".join(frame["source"].unique(maintain_order=True))
    )
    return Figure("figure_2", "Regard and sentiment by demographic", frame, _draw(frame), alt, tuple(notes))


def shares(texts: pl.DataFrame) -> pl.DataFrame:
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
    with drawing(len(panels), len(sources), **size) as (canvas, axes):
        for row, source in enumerate(sources):
            for column, (context, metric) in enumerate(panels):
                axis = axes[row * len(panels) + column]
                _panel(axis, frame.filter(source=source, context=context, metric=metric))
                place = f"({_ROWS.get(source, '')}{ascii_lowercase[column % 26]})"
                axis.set_title(f"{place} {metric}, {context}", loc="left", fontsize=8)
                if column == 0:
                    axis.set_ylabel(source, fontsize=8)
        _legend(axes[0])
        return svg(canvas)


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
