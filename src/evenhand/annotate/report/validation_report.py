"""A metric compared with human labels: the report of ``evenhand validate``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import itemgetter

import polars as pl
from markupsafe import Markup

from evenhand.annotate.report.page import (
    Row,
    build_people_report,
    estimate,
    interval,
    interval_or_reason,
    value,
    words,
)
from evenhand.report.charts import COLOURS, DASHES, Plot, draw, element
from evenhand.report.document import Report, Section, Show, table_section
from evenhand.report.manifest import read_mapping
from evenhand.report.wording import (
    format_count,
    format_name,
    format_number,
    format_p,
    format_percent,
    format_value,
    show_control_characters,
)
from evenhand.store.run import Run

TABLES = ("validation", "confusion", "score_spreads", "best_cuts", "cut_curves", "exclusions")
_ALL = "(all)"
_MEASURES = {
    "spearman": "Spearman's rho of the labels",
    "spearman_score": "Spearman's rho of the score",
    "accuracy": "Accuracy",
    "always_commonest": "Accuracy of always giving the most frequent label",
    "kappa": "Cohen's kappa",
    "precision": "Precision",
    "recall": "Recall",
    "f1": "F1",
}
CAVEATS = (
    "Human labels are taken as correct. If people disagree with each other, no metric can agree with all: "
    "see `evenhand annotate agreement`.",
    "Agreement over all texts says nothing about single groups: it may be lower where it matters most.",
    "The best cut was fitted on these texts, so its own figures are optimistic. Those in the held-out row "
    "come from texts it was not fitted on; other texts and other people may still give another cut.",
    "p-values of rank correlations assume independent clusters; those of several outputs are not corrected.",
)


def build_report(run: Run) -> Report:
    """Build the content of the report."""
    metric = show_control_characters(
        str(read_mapping(run.manifest, "identity", "metric").get("spec") or "the metric")
    )
    table = run.table("validation")
    outputs = table["output"].unique(maintain_order=True).to_list()
    several = len(outputs) > 1
    sections: list[Section] = [_measures(table)]
    for place, output in enumerate(outputs):
        own = (
            _by_label(table, output, several),
            _confusion(run, output, several),
            _spread(run, output, several),
            _cut(run, output, several),
        )
        sections += [section if not place else replace(section, nav="") for section in own]
    return build_people_report(
        run,
        tables=TABLES,
        question=f"Does {metric} agree with people?",
        details="Every text has a human label and one from the metric. Human labels are taken as correct.",
        verdicts=tuple(_verdict(table, output) for output in outputs),
        sections=(*sections, _misses(run, outputs), _left_out(run)),
        caveats=CAVEATS,
    )


def _verdict(table: pl.DataFrame, output: str) -> str:
    whole = table.filter((pl.col("output") == output) & (pl.col("label") == _ALL))
    rows = {row["measure"]: row for row in whole.iter_rows(named=True)}
    parts = [_accuracy_words(rows), _correlation_words(rows.get("spearman") or rows.get("spearman_score"))]
    answer = "; ".join(filter(None, parts)) or "nothing could be computed"
    return f"{format_name(output)}: {answer}."


def _accuracy_words(rows: Mapping[str, Row]) -> str:
    accuracy = rows.get("accuracy")
    if not accuracy or accuracy["value"] is None:
        return ""
    words = f"the same label in {format_percent(accuracy['value'])} of {format_count(accuracy['n'], 'text')}"
    if accuracy["low"] is None:
        return words
    words += f" ({format_percent(accuracy['low'])} to {format_percent(accuracy['high'])})"
    least = rows["always_commonest"]["value"]
    if accuracy["low"] > least:
        return words
    return f"{words}, not clearly more than always giving the most frequent label ({format_percent(least)})"


def _correlation_words(rho: Row | None) -> str:
    if not rho or rho["value"] is None:
        return ""
    ends = interval()(rho)
    return f"rank correlation {format_number(rho['value'])}" + (f" ({ends})" if ends else "")


def _measures(table: pl.DataFrame) -> Section:
    return table_section(
        "measures",
        "Over all texts",
        "Precision, recall and F1 are weighted by how often people give a label (Table 8 of the BOLD paper).",
        table.filter(pl.col("label") == _ALL),
        {
            **{"Output": words("output"), "Measure": lambda row: _MEASURES[row["measure"]]},
            **{"#Value": value, "#Interval": interval_or_reason},
            "#p": lambda row: "" if row["p"] is None else format_p(row["p"]),
            **{"#Texts": "n", "#Clusters": "n_clusters"},
        },
        source="validation",
        short=(0, 1, 2, 3, 5) if table["output"].n_unique() > 1 else (1, 2, 3, 4, 5),
    )


def _name(words: str, title: str, output: str, several: bool) -> tuple[str, str]:
    """The identifier and the title of a section of one output."""
    plain = "".join(letter if letter.isalnum() else "-" for letter in output)
    return f"{words}-{plain}", f"{title}: {format_name(output)}" if several else title


def _by_label(table: pl.DataFrame, output: str, several: bool) -> Section:
    own = table.filter((pl.col("output") == output) & (pl.col("label") != _ALL))
    parts = own.partition_by("label", maintain_order=True)
    labels = [{row["measure"]: row for row in part.iter_rows(named=True)} for part in parts]
    return table_section(
        *_name("labels", "Each label", output, several),
        "Precision: of the texts with a label of the metric, the share with that human label. Recall: of the "
        "texts with a human label, the share that the metric gives it to.",
        labels,
        {
            "Label": lambda rows: show_control_characters(rows["precision"]["label"]),
            "#Precision": lambda rows: estimate("value")(rows["precision"]),
            "#Recall": lambda rows: estimate("value")(rows["recall"]),
            "#F1": lambda rows: estimate("value")(rows["f1"]),
        },
        source="validation",
        nav="Labels",
    )


def _confusion(run: Run, output: str, several: bool) -> Section:
    counts = run.table("confusion").filter(pl.col("output") == output)
    wide = counts.pivot("predicted", index="human", values="count")
    return table_section(
        *_name("confusion", "Confusion", output, several),
        "Texts by human label (rows) and the metric's label (columns).",
        wide,
        {
            "People": lambda row: f"people: {row['human']}",
            **{f"#metric: {label}": label for label in counts["human"].unique(maintain_order=True)},
        },
        source="confusion",
        nav="Confusion",
        formats="html md",
    )


def _spread(run: Run, output: str, several: bool) -> Section:
    rows = run.table("score_spreads").filter(pl.col("output") == output).to_dicts()
    own = run.table("best_cuts").filter(pl.col("output") == output)["own"].drop_nulls()
    cuts = [sign * cut for cut in own for sign in ((-1, 1) if rows and rows[0]["low"] < 0 else (1,))]
    return table_section(
        *_name("spread", "Scores by human label", output, several),
        "As in Figure 6 of the BOLD paper. Dashed vertical lines are the metric's own cuts.",
        rows,
        {
            **{"People": "label", "#Texts": "n", "#Mean": "mean", "#5 %": "q05", "#25 %": "q25"},
            **{"#Median": "q50", "#75 %": "q75", "#95 %": "q95"},
        },
        source="score_spreads",
        nav="Scores",
        drawing=draw_spreads(rows, cuts),
        formats="html md",
    )


def _cut(run: Run, output: str, several: bool) -> Section:
    fitted = run.table("best_cuts").filter(pl.col("output") == output).to_dicts()
    if not fitted:
        return Section("cut", "", ())
    best = fitted[0]
    kinds = {
        "its own cut": [format_value(best[key]) for key in ("own", "own_kappa", "own_accuracy")],
        "best cut, fitted": [estimate(key)(best) for key in ("cut", "kappa", "accuracy")],
        f"best cut, held out ({best['folds']} folds)": [
            "",
            *(estimate(key)(best) for key in ("kappa_held_out", "accuracy_held_out")),
        ],
    }
    points = run.table("cut_curves").filter(pl.col("output") == output).to_dicts()
    return table_section(
        *_name("cut", "The cut with the best agreement", output, several),
        "By Cohen's kappa, which is 0 for a cut that gives all texts one label. Labels change at the cut, "
        "or, with three labels, at minus the cut and at the cut.",
        [(kind, *cells) for kind, cells in kinds.items()],
        {head: itemgetter(at) for at, head in enumerate(("Which", "#Cut", "#Kappa", "#Accuracy"))},
        source="best_cuts",
        nav="Best cut",
        drawing=draw_curve(points, best),
        note="The middle row was fitted on the texts it is evaluated on, so it is optimistic. Quote the last "
        "row.",
    )


def _misses(run: Run, outputs: list[str]) -> Section:
    table = run.table("judged").filter((pl.col("output") == outputs[0]) & pl.col("predicted").is_not_null())
    labels = read_mapping(run.manifest, "identity", "labels", outputs[0])
    meant = {theirs: str(ours) for theirs, ours in labels.items() if ours is not None}
    human = pl.col("human").replace_strict(meant, default=None, return_dtype=pl.String)
    wrong = table.filter(human != pl.col("predicted"))
    return table_section(
        "misses",
        "Texts on which they differ",
        "Those with the highest human agreement come first.",
        wrong.sort("share", "item_id", descending=[True, False]),
        {
            **{"~Text": "text", "People": lambda row: f"{row['human']} ({format_percent(row['share'])})"},
            **{"Metric": "predicted", "#Score": "value"},
        },
        source="judged",
        nav="Texts",
        formats="html",
        is_offensive=True,
    )


def _left_out(run: Run) -> Section:
    columns: dict[str, Show] = {"Reason": "reason", "#Texts": "count", "#Of": "of"}
    rows = run.table("exclusions")
    return table_section("left-out", "Left out", "", rows, columns, source="exclusions", formats="html md")


_FRAME = {"width": 560.0, "height": 190.0, "left": 46.0, "top": 14.0}


def draw_spreads(rows: Sequence[Row], cuts: Sequence[float] = ()) -> Markup:
    """The share of texts in every bin of the score, one line per human label (Figure 6)."""
    shares = [[count / (sum(row["counts"]) or 1) for count in row["counts"]] for row in rows]
    top = max((share for own in shares for share in own), default=0.0)
    if top <= 0:
        return Markup()
    low, high = rows[0]["low"], rows[0]["high"]
    plot = Plot(x=(low, high), y=(0.0, top), **_FRAME)
    ends = {"low": format_number(low), "high": format_number(high), "bottom": "0", "top": f"{top:.0%}"}
    parts = [plot.frame(**ends, across="score", upward="share of the texts with that label")]
    parts += [_cut_line(plot, cut, "3 3") for cut in cuts if low <= cut <= high]
    for place, (row, own) in enumerate(zip(rows, shares, strict=True)):
        edges = [low + (high - low) * at / len(own) for at in range(len(own) + 1)]
        steps = [(x, share) for *sides, share in zip(edges, edges[1:], own, strict=False) for x in sides]
        stroke = {"stroke": COLOURS[place % 6], "stroke_dasharray": DASHES[place % 6]}
        parts.append(plot.line([(low, 0.0), *steps, (high, 0.0)], stroke_width=1.8, **stroke))
        x, y = plot.left + plot.width + 14, plot.top + 12 + 18 * place
        parts.append(element("line", x1=x, x2=x + 26, y1=y - 4, y2=y - 4, stroke_width=2, **stroke))
        parts.append(element("text", f"{row['label']} ({row['n']})", x=x + 32, y=y))
    return _draw(parts, "Distributions of the score, one line per human label")


def draw_curve(points: Sequence[Row], best: Row) -> Markup:
    """Cohen's kappa at every cut, with the metric's own cut, the best cut and its confidence interval."""
    known = [(row["cut"], row["kappa"]) for row in points if row["kappa"] is not None]
    if len(known) < 2:
        return Markup()
    kappas = [kappa for _, kappa in known]
    (low, high), bottom, top = (known[0][0], known[-1][0]), min(0.0, *kappas), max(0.05, *kappas)
    plot = Plot(x=(low, high), y=(bottom, top), **_FRAME)
    ends = {"low": low, "high": high, "bottom": bottom, "top": top}
    named = {name: format_number(value) for name, value in ends.items()}
    parts = [plot.frame(**named, across="cut", upward="Cohen's kappa")]
    if best["cut_low"] is not None and best["cut_high"] is not None:
        band = (min(max(best[end], low), high) for end in ("cut_low", "cut_high"))
        parts.append(plot.band(*band, fill=COLOURS[2], fill_opacity=0.13))
    parts.append(plot.line(known, stroke=COLOURS[2], stroke_width=1.8))
    for name, cut, dash, down in (("own", best["own"], "3 3", 12), ("best", best["cut"], "", 26)):
        if cut is not None and low <= cut <= high:
            parts.append(_cut_line(plot, cut, dash))
            parts.append(element("text", name, x=plot.at(cut, top)[0] + 4, y=plot.top + down))
    return _draw(parts, "Agreement with people at every cut; the shaded area is the interval of the best cut")


def _cut_line(plot: Plot, cut: float, dash: str) -> Markup:
    return plot.upright(cut, stroke="currentColor", stroke_opacity=0.55, stroke_dasharray=dash)


def _draw(parts: Sequence[Markup], label: str) -> Markup:
    return draw(parts, width=776, height=230, label=label, style="drawing")
