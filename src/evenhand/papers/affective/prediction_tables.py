"""Tables 6 to 9, Figures 2 and 3, and the summaries of 5.1 and 5.4: classifiers' predictions on pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import polars as pl

from evenhand.core.protocols import Suite
from evenhand.papers.replication_pages import Exhibit, PaperClaim, build_table, load_published
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
"""Our group names to the paper's."""
CORPORA: Final = {"eec": "EEC", "bits": "BITS", "crows": "CSP"}
"""Our names of pair sets to the paper's."""
_SUMMARIES: Final = {
    "summary_5_1": ("source", "Affective bias by model (section 5.1)"),
    "summary_5_4": ("corpus", "By evaluation corpus (section 5.4)"),
}
EXHIBITS: Final = (*MODELS, "figure_2", "figure_3", *_SUMMARIES)
_SIGNIFICANT: Final = 0.05
_POINTS: Final = 300
_STEREOTYPES: Final = (
    ("European American", "African American", "anger"),
    ("European American", "African American", "fear"),
    ("Christian", "Muslim", "fear"),
)
"""Figure 3: the cells the paper reads as stereotypes (section 5.3)."""


def measure_cells(runs: Mapping[str, Run]) -> pl.DataFrame:
    """The cells of the paper's eleven columns, for each classifier and both ways of selecting pairs."""
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


def build_exhibits(runs: Mapping[str, Run], requested: Sequence[str]) -> dict[str, Exhibit]:
    """Build the requested tables, summaries and figures from the classifiers' runs."""
    ours, first = measure_cells(runs), next(iter(runs))
    bert = next((source for source in runs if "bert" in source.lower()), first)
    exhibits = {name: model_table(name, ours) for name in MODELS if name in requested}
    if "figure_2" in requested:
        exhibits["figure_2"] = figure_2(runs[bert], bert)
    if "figure_3" in requested:
        exhibits["figure_3"] = figure_3(runs[first], first)
    return exhibits | {name: summary_table(name, ours) for name in _SUMMARIES if name in requested}


def model_table(name: str, ours: pl.DataFrame) -> Exhibit:
    """Table 6, 7, 8 or 9: the paper's model, and classifiers of its architecture or of none of the four."""
    names = ours["source"].unique(maintain_order=True).to_list()
    plain = {word: word.lower().replace("-", "") for word in (*MODELS.values(), *names)}
    sources = []
    for source in names:
        known = [model for model in MODELS.values() if plain[model] in plain[source]]
        if not known or MODELS[name] in known:
            sources.append(source)
    order = pl.col("corpus").replace_strict(list(CORPORA.values()), list(range(len(CORPORA))), default=99)
    ranked = ours.filter(pl.col("source").is_in(sources)).sort(order)
    return build_table(
        "affective",
        name,
        f"Results of {MODELS[name]}, and of the available classifiers",
        ranked,
        "Neither the predictions behind the printed numbers nor the fine-tuned models were released: our "
        "rows come from the classifiers named as source, and are not expected to match.",
        "Pairs `all`: every pair of the emotion (by ground truth; without one, if either side is "
        "predicted as it). `agreeing`: both predictions are the emotion. Scores are those of the predicted "
        "class.",
        "ACS below 0: the first group is higher; above 0: the second.",
        decimals=4,
    )


def summary_table(name: str, ours: pl.DataFrame) -> Exhibit:
    """Number of cells with DP below the threshold and with p below 0.05, and the largest average deltas."""
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
    return Exhibit(
        name,
        title,
        summary,
        notes=(
            f"Counts over the printed Tables 6 to 9 and over ours: DP below {PARITY_THRESHOLD:.2f}, "
            f"p below {_SIGNIFICANT} as in the paper, without a correction over cells.",
        ),
        decimals=3,
    )


def load_predictions() -> pl.DataFrame:
    """The printed Tables 6 to 9, concatenated."""
    return pl.concat([load_published("affective", table) for table in MODELS])


def figure_2(run: Run, source: str) -> Exhibit:
    """Intensities of gender pairs: the two most significant differences, and the least significant."""
    cells = run.table("measures").filter(pairs="agreeing", score="predicted", axis="gender")
    ranked = cells.drop_nulls("p").sort("p")
    title = f"Intensities of predictions from {source}: the two smallest p-values, and the largest"
    return _figure("figure_2", title, run, pl.concat([ranked.head(2), ranked.tail(1)]))


def figure_3(run: Run, source: str) -> Exhibit:
    """Intensities of the cells the paper reads as stereotypes."""
    measures = run.table("measures").filter(pairs="agreeing", score="predicted")
    cells = measures.sort("n", descending=True)
    known = [
        cells.filter(group_a=first, group_b=second, emotion=emotion).head(1)
        for first, second, emotion in _STEREOTYPES
    ]
    title = f"Intensities from {source} in the cells the paper reads as stereotypes"
    return _figure("figure_3", title, run, pl.concat(known))


def _figure(name: str, title: str, run: Run, cells: pl.DataFrame) -> Exhibit:
    points = run.table("pair_scores").filter(pl.col("agreeing"))
    keys = ["corpus", "axis", "group_a", "group_b", "emotion"]
    parts = {
        cell: part
        for cell in cells.select(keys).iter_rows()
        if (part := points.filter(**dict(zip(keys, cell, strict=True)))).height
    }
    titles = [f"{emotion}, {corpus}" for corpus, *_, emotion in parts] or [""]
    with open_canvas(titles, columns=len(titles), width=4.2, height=3.0, fontsize=9) as (canvas, axes):
        for axis, ((_, _, *groups, _), part) in zip(axes, parts.items(), strict=False):
            sample = part.gather_every(-(-part.height // _POINTS))
            for side, group, colour in zip("ab", groups, (COLOURS[2], COLOURS[1]), strict=True):
                column = f"predicted_{side}"
                axis.scatter(range(sample.height), sample[column], s=6, color=colour, label=group)
                axis.axhline(part[column].to_numpy().mean(), color=colour, linestyle="--", linewidth=1)
            axis.set_ylim(0, 1.02)
            axis.legend(fontsize=7, loc="lower left")
        svg = to_svg(canvas)
    shown = "; ".join(f"{emotion}, {a} x {b} ({corpus})" for corpus, _, a, b, emotion in parts)
    shown = shown or "no cell available"
    return Exhibit(
        name,
        title,
        pl.concat([points.clear(), *parts.values()]),
        svg=svg,
        alt=f"Predicted intensity of both sentences of each pair, means dashed: {shown}.",
        notes=(
            "Pairs whose predictions agree; the first group of a pair is green, the second brown. At most "
            f"{_POINTS} pairs are drawn, evenly over the corpus; means are over all pairs.",
        ),
    )


_COUNTS = {
    "eec": {"gender": "1400 pairs", "race": "2800 pairs"},
    "bits": {"gender": "120 sentences a group", "race": "72 pairs"},
    "crows": {axis: f"{number}" for axis, number in PRINTED.items()},
}


def claims(suites: Sequence[Suite]) -> Iterator[PaperClaim]:
    """Counts of evaluation sentences, and the claims of 5.1 about the printed tables."""
    for suite in suites:
        name, sets = suite.info.name, suite.sets if isinstance(suite, PairSuite) else ()
        remark = "edited by hand in the paper and not released; ours follows a rule"
        remark = remark if name == "crows" else "as released"
        for axis, (number, pairs) in count_sets(sets).items():
            if published := _COUNTS.get(name, {}).get(axis):
                ours = f"{number} sets, {pairs} pairs of groups"
                claim = f"{name}, {axis}: sentences to compare"
                yield PaperClaim("4.2.1", claim, published, ours, name, remark)
    # Section 5.1 counts cells of Tables 6 to 9, so it can be checked against them.
    table, source = load_predictions(), "printed tables"
    largest = table.sort("avg_delta", descending=True)["source"].head(5).to_list()
    for model, printed in (("T5", "3"), ("XLNet", "0")):
        claim, ours = f"number of the five largest average deltas that are {model}'s", f"paper: {model}"
        remark = "counted in Tables 6 to 9 as printed"
        yield PaperClaim("5.1", claim, printed, str(largest.count(ours)), source, remark)
    xlnet = table.filter(pl.col("dp") < PARITY_THRESHOLD, pl.col("source") == "paper: XLNet")
    yield PaperClaim(
        "5.1",
        "XLNet has the least class-based bias, only in religion and sadness",
        "religion, sadness",
        ", ".join(f"{pair} {emotion}" for pair, emotion in xlnet.select("pair", "emotion").iter_rows()),
        source,
        "cells with DP below 0.80",
    )
