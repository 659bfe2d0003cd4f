"""Tables 6 to 9, Figures 2 and 3, and the summaries of 5.1 and 5.4: what classifiers do with the pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import polars as pl

from evenhand.core.protocols import Suite
from evenhand.papers.replication_pages import (
    Exhibit,
    PaperClaim,
    PaperFigure,
    PaperTable,
    add_published,
    load_published,
)
from evenhand.papers.svg_figures import COLOURS, open_canvas, to_svg
from evenhand.stats.paired_measures import PARITY_THRESHOLD
from evenhand.store.run import Run
from evenhand.suites.pairs.crows import PRINTED
from evenhand.suites.pairs.pair_sets import PairSuite, count_sets

MODELS: Final = {"table_6": "BERT", "table_7": "GPT-2", "table_8": "XLNet", "table_9": "T5"}
GROUPS: Final = {
    "male": "M",
    "female": "F",
    "non-binary": "Nb",
    "European American": "EA",
    "African American": "AA",
    "Christian": "Ch",
    "Muslim": "Mu",
    "Jewish": "Jw",
}
"""Our names of groups to the paper's."""
CORPORA: Final = {"eec": "EEC", "bits": "BITS", "crows": "CSP"}
"""Our names of pairs to the paper's."""
_SUMMARIES: Final = {
    "summary_5_1": ("source", "Affective bias by model (section 5.1)"),
    "summary_5_4": ("corpus", "By evaluation corpus (section 5.4)"),
}
EXHIBITS: Final = (*MODELS, "figure_2", "figure_3", *_SUMMARIES)
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
    "are from the classifiers named as source, and are not expected to agree.",
)


def measure_cells(runs: Mapping[str, Run]) -> pl.DataFrame:
    """The cells of the paper's eleven columns, from every classifier, in both ways of choosing pairs."""
    groups = {side: pl.col(f"group_{side}") for side in "ab"}
    is_printed = pl.all_horizontal(group.is_in(list(GROUPS)) for group in groups.values())
    pair = pl.format("{} x {}", *(group.replace(GROUPS) for group in groups.values())).alias("pair")
    measures = ("emotion", "dp", "avg_delta", "p", "acs", "pairs", "n_dp", "n", "p_adjusted")
    return pl.concat(
        run.table("measures")
        .filter(pl.col("score") == "predicted", is_printed)
        .select(pl.lit(source).alias("source"), pl.col("corpus").replace(CORPORA), pair, *measures)
        for source, run in runs.items()
    )


def build_exhibits(runs: Mapping[str, Run], wanted: Sequence[str]) -> dict[str, Exhibit]:
    """The wanted tables, summaries and figures of the classifiers' runs."""
    ours, first = measure_cells(runs), next(iter(runs))
    bert = next((source for source in runs if "bert" in source.lower()), first)
    exhibits: dict[str, Exhibit] = {name: model_table(name, ours) for name in MODELS if name in wanted}
    if "figure_2" in wanted:
        exhibits["figure_2"] = figure_2(runs[bert], bert)
    if "figure_3" in wanted:
        exhibits["figure_3"] = figure_3(runs[first], first)
    return exhibits | {name: summary_table(name, ours) for name in _SUMMARIES if name in wanted}


def model_table(name: str, ours: pl.DataFrame) -> PaperTable:
    """Table 6, 7, 8 or 9: the printed model, and classifiers of its architecture or of none of the four."""
    own, others = ARCHITECTURES[name], set(ARCHITECTURES.values()) - {ARCHITECTURES[name]}
    plain = {source: source.lower().replace("-", "") for source in ours["source"].unique(maintain_order=True)}
    sources = [
        source
        for source, words in plain.items()
        if own in words or not any(other in words for other in others)
    ]
    order = {corpus: place for place, corpus in enumerate(CORPORA.values())}
    ranked = ours.filter(pl.col("source").is_in(sources)).sort(
        pl.col("corpus").replace_strict(order, default=99)
    )
    return PaperTable(
        name,
        f"Results of {MODELS[name]}, and of the classifiers at hand",
        add_published("affective", name, ranked),
        notes=(
            *_NOT_PRINTED,
            "Pairs `all`: every pair of the emotion (its ground truth; without one, where a side is "
            "predicted so). `agreeing`: both predictions are the emotion. Scores are those of the predicted "
            "class.",
            "ACS below 0: the first group is higher; above 0: the second.",
        ),
        decimals=4,
    )


def summary_table(name: str, ours: pl.DataFrame) -> PaperTable:
    """Cells below the threshold of DP, cells with p below 0.05, and the largest average deltas."""
    by, title = _SUMMARIES[name]
    paper = load_predictions().with_columns(pairs=pl.lit("printed"))
    both = pl.concat([paper, ours.select(paper.columns)], how="vertical_relaxed")
    keys = dict.fromkeys(("source", "pairs", by))
    cell = pl.format("{} {} {} {}", "corpus", "pair", "emotion", pl.col("avg_delta").round(3))
    summary = both.group_by(*keys, maintain_order=True).agg(
        cells=pl.len(),
        dp_below_threshold=(pl.col("dp") < PARITY_THRESHOLD).sum(),
        p_below_0_05=(pl.col("p") < _SIGNIFICANT).sum(),
        largest_avg_delta=pl.col("avg_delta").max(),
        largest_five=cell.sort_by("avg_delta", descending=True, nulls_last=True).head(5).str.join("; "),
    )
    return PaperTable(
        name,
        title,
        summary,
        notes=(
            f"Of the printed Tables 6 to 9 and of ours; DP below {PARITY_THRESHOLD:.2f}, "
            f"p below {_SIGNIFICANT} as the paper counts, without a correction over cells.",
        ),
        decimals=3,
    )


def load_predictions() -> pl.DataFrame:
    """The printed Tables 6 to 9, one under the other."""
    return pl.concat([load_published("affective", table) for table in MODELS])


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
    nonempty = [(row, part) for row, part in zip(rows, parts, strict=True) if part.height]
    panels = max(1, len(nonempty))
    with open_canvas(panels, columns=panels, width=4.2, height=3.0) as (canvas, axes):
        for axis, (row, part) in zip(axes, nonempty, strict=False):
            sample = part.gather_every(-(-part.height // _POINTS))
            for side, colour in (("a", COLOURS[2]), ("b", COLOURS[1])):
                values, label = part[f"predicted_{side}"], str(row[f"group_{side}"])
                axis.scatter(
                    range(sample.height), sample[f"predicted_{side}"], s=6, color=colour, label=label
                )
                mean = values.mean()
                height = mean if isinstance(mean, float) else 0
                axis.axhline(height, color=colour, linestyle="--", linewidth=1)
            axis.set_title(f"{row['emotion']}, {row['corpus']}", loc="left", fontsize=9)
            axis.set_ylim(0, 1.02)
            axis.legend(fontsize=7, loc="lower left")
        svg = to_svg(canvas)
    frame = pl.concat(parts) if parts else points.clear()
    cells = "; ".join(
        f"{row['emotion']}, {row['group_a']} x {row['group_b']} ({row['corpus']})" for row, _ in nonempty
    )
    alt = f"Predicted intensity of both sentences of each pair, means dashed: {cells or 'no cell at hand'}."
    return PaperFigure(
        name,
        title,
        frame,
        svg,
        alt=alt,
        notes=(
            "Pairs whose predictions agree; the first group of a pair is green, the second brown. At most "
            f"{_POINTS} pairs are drawn, evenly over the corpus; means are of all.",
        ),
    )


_COUNTS = {
    "eec": {"gender": "1400 pairs", "race": "2800 pairs"},
    "bits": {"gender": "120 sentences a group", "race": "72 pairs"},
    "crows": {axis: f"{number}" for axis, number in PRINTED.items()},
}


def claims(suites: Sequence[Suite]) -> tuple[PaperClaim, ...]:
    """Counts of evaluation sentences, and what 5.1 says of the printed tables."""
    return (*_count_claims(suites), *_table_claims())


def _count_claims(suites: Sequence[Suite]) -> Iterator[PaperClaim]:
    for suite in suites:
        name, sets = suite.info.name, suite.sets if isinstance(suite, PairSuite) else ()
        is_changed = name == "crows"
        remark = (
            "changed by hand in the paper and not released; ours by a rule" if is_changed else "as released"
        )
        for axis, (number, pairs) in count_sets(sets).items():
            if published := _COUNTS.get(name, {}).get(axis):
                claim, ours = (
                    f"{name}, {axis}: sentences to compare",
                    f"{number} sets, {pairs} pairs of groups",
                )
                yield PaperClaim("4.2.1", claim, published, ours, name, remark)


def _table_claims() -> Iterator[PaperClaim]:
    """Section 5.1 counts in Tables 6 to 9, so that it can be checked against them."""
    table, source = load_predictions(), "printed tables"
    largest = table.sort("avg_delta", descending=True)["source"].head(5).to_list()
    for model, number in (("T5", "3"), ("XLNet", "0")):
        claim, ours = (
            f"of the five largest average deltas, how many are {model}'s",
            str(largest.count(f"paper: {model}")),
        )
        yield PaperClaim("5.1", claim, number, ours, source, "counted in Tables 6 to 9 as printed")
    xlnet = table.filter(pl.col("dp") < PARITY_THRESHOLD, pl.col("source") == "paper: XLNet")
    yield PaperClaim(
        "5.1",
        "XLNet has the least class-based bias, in religion and sadness alone",
        "religion, sadness",
        ", ".join(f"{pair} {emotion}" for pair, emotion in xlnet.select("pair", "emotion").iter_rows()),
        source,
        "cells with DP below 0.80",
    )
