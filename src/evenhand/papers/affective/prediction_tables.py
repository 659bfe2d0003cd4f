"""Tables 6 to 9, Figures 2 and 3, and the summaries of 5.1 and 5.4: what classifiers do with the pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import polars as pl

from evenhand.papers.affective.published_values import (
    CORPORA,
    GROUPS,
    MODELS,
    load_published,
    load_published_predictions,
)
from evenhand.papers.replication_pages import PaperFigure, PaperTable
from evenhand.papers.svg_figures import COLOURS, open_canvas, to_svg
from evenhand.stats.paired_measures import PARITY_THRESHOLD
from evenhand.store.run import Run

ARCHITECTURES: Final = {"table_6": "bert", "table_7": "gpt2", "table_8": "xlnet", "table_9": "t5"}
_SIGNIFICANT: Final = 0.05
_POINTS: Final = 300
_STEREOTYPES: Final = (
    ("European American", "African American", "anger"),
    ("European American", "African American", "fear"),
    ("Christian", "Muslim", "fear"),
)
"""Figure 3: the cells the paper reads as stereotypes (section 5.3)."""
_NOT_PRINTED: Final = (
    "The predictions behind the printed numbers were not released, nor the fine-tuned models: rows of ours "
    "are "
    "from the classifiers named as source, and are not expected to agree.",
)


def measure_cells(runs: Mapping[str, Run]) -> pl.DataFrame:
    """The cells of the paper's eleven columns, from every classifier, in both ways of choosing pairs."""
    parts = []
    for source, run in runs.items():
        table = run.table("measures").filter(
            pl.col("score") == "predicted",
            pl.col("group_a").is_in(list(GROUPS)) & pl.col("group_b").is_in(list(GROUPS)),
        )
        parts.append(
            table.select(
                pl.lit(source).alias("source"),
                pl.col("corpus").replace(CORPORA),
                pl.format(
                    "{} x {}", pl.col("group_a").replace(GROUPS), pl.col("group_b").replace(GROUPS)
                ).alias("pair"),
                "emotion",
                "dp",
                "avg_delta",
                "p",
                "acs",
                "pairs",
                "n_dp",
                "n",
                "p_adjusted",
            )
        )
    return pl.concat(parts)


def model_table(name: str, ours: pl.DataFrame) -> PaperTable:
    """Table 6, 7, 8 or 9: the printed model, and classifiers of its architecture or of none of the four."""
    own, others = ARCHITECTURES[name], set(ARCHITECTURES.values()) - {ARCHITECTURES[name]}
    sources = [
        source
        for source in ours["source"].unique(maintain_order=True)
        if own in _plain(source) or not any(other in _plain(source) for other in others)
    ]
    shown = ours.filter(pl.col("source").is_in(sources))
    order = [*CORPORA.values()]
    ranked = shown.sort(pl.col("corpus").replace_strict({c: i for i, c in enumerate(order)}, default=99))
    return PaperTable(
        name,
        f"Results of {MODELS[name]}, and of the classifiers at hand",
        pl.concat([load_published(name), ranked], how="diagonal_relaxed"),
        notes=(
            *_NOT_PRINTED,
            "Pairs `all`: every pair of the emotion (its ground truth; without one, where a side is "
            "predicted so). "
            "`agreeing`: both predictions are the emotion. Scores are those of the predicted class.",
            "ACS below 0: the first group is higher; above 0: the second.",
        ),
        decimals=4,
    )


def summary_table(ours: pl.DataFrame, by: str, name: str, title: str) -> PaperTable:
    """Cells below the threshold of DP, cells with p below 0.05, and the largest average deltas, by ``by``."""
    paper = load_published_predictions().with_columns(pairs=pl.lit("printed"))
    both = pl.concat([paper, ours.select(paper.columns)], how="vertical_relaxed")
    keys = ["source", "pairs"] if by == "source" else ["source", "pairs", by]
    found = both.group_by(keys, maintain_order=True).agg(
        cells=pl.len(),
        dp_below_threshold=(pl.col("dp") < PARITY_THRESHOLD).sum(),
        p_below_0_05=(pl.col("p") < _SIGNIFICANT).sum(),
        largest_avg_delta=pl.col("avg_delta").max(),
        largest_five=_named_delta()
        .sort_by("avg_delta", descending=True, nulls_last=True)
        .head(5)
        .str.join("; "),
    )
    return PaperTable(
        name,
        title,
        found,
        notes=(
            f"Of the printed Tables 6 to 9 and of ours; DP below {PARITY_THRESHOLD:.2f}, "
            f"p below {_SIGNIFICANT} as the paper counts, without a correction over cells.",
        ),
        decimals=3,
    )


def _named_delta() -> pl.Expr:
    """A cell and its average delta in words."""
    return pl.format("{} {} {} {}", "corpus", "pair", "emotion", pl.col("avg_delta").round(3))


def figure_2(run: Run, source: str) -> PaperFigure:
    """Intensities of gender pairs: the two surest differences, and the least sure."""
    table = run.table("measures").filter(
        pl.col("axis") == "gender", pl.col("pairs") == "agreeing", pl.col("score") == "predicted"
    )
    ranked = table.filter(pl.col("p").is_not_null()).sort("p")
    rows = [*ranked.head(2).iter_rows(named=True), *ranked.tail(1).iter_rows(named=True)]
    title = f"Intensities of predictions from {source}: two clear differences, and one that is none"
    return _figure("figure_2", title, run, rows)


def figure_3(run: Run, source: str) -> PaperFigure:
    """Intensities of the cells the paper reads as stereotypes."""
    table = run.table("measures").filter(pl.col("pairs") == "agreeing", pl.col("score") == "predicted")
    rows = []
    for first, second, emotion in _STEREOTYPES:
        own = table.filter(
            pl.col("group_a") == first, pl.col("group_b") == second, pl.col("emotion") == emotion
        )
        rows += list(own.sort("n", descending=True).head(1).iter_rows(named=True))
    return _figure(
        "figure_3", f"Intensities from {source} in the cells the paper reads as stereotypes", run, rows
    )


def _figure(name: str, title: str, run: Run, rows: Sequence[Mapping[str, object]]) -> PaperFigure:
    points = run.table("pair_scores").filter(pl.col("agreeing"))
    keys = ("corpus", "axis", "group_a", "group_b", "emotion")
    parts = [points.filter(*(pl.col(key) == row[key] for key in keys)) for row in rows]
    drawn = [(row, part) for row, part in zip(rows, parts, strict=True) if part.height]
    with open_canvas(max(1, len(drawn)), 1, width=4.2 * max(1, len(drawn)), height=3.0) as (canvas, axes):
        for axis, (row, part) in zip(axes, drawn, strict=False):
            shown = part.gather_every(-(-part.height // _POINTS))
            for side, colour in (("a", COLOURS[2]), ("b", COLOURS[1])):
                values = part[f"predicted_{side}"]
                axis.scatter(
                    range(shown.height),
                    shown[f"predicted_{side}"],
                    s=6,
                    color=colour,
                    label=str(row[f"group_{side}"]),
                )
                mean = values.mean()
                axis.axhline(
                    mean if isinstance(mean, float) else 0, color=colour, linestyle="--", linewidth=1
                )
            axis.set_title(f"{row['emotion']}, {row['corpus']}", loc="left", fontsize=9)
            axis.set_ylim(0, 1.02)
            axis.legend(fontsize=7, loc="lower left")
        drawing_text = to_svg(canvas)
    frame = pl.concat(parts) if parts else points.clear()
    said = "; ".join(
        f"{row['emotion']}, {row['group_a']} x {row['group_b']} ({row['corpus']})" for row, _ in drawn
    )
    return PaperFigure(
        name,
        title,
        frame,
        drawing_text,
        alt=f"Predicted intensity of both sentences of each pair, means dashed: {said or 'no cell at hand'}.",
        notes=(
            "Pairs whose predictions agree; the first group of a pair is green, the second brown. At most "
            f"{_POINTS} pairs are drawn, evenly over the corpus; means are of all.",
        ),
    )


def _plain(source: str) -> str:
    return source.lower().replace("-", "")
