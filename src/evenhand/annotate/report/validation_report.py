"""A metric compared with human labels: the report of ``evenhand validate``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import polars as pl
from markupsafe import Markup

from evenhand.annotate.report.page import (
    Row,
    build_people_report,
    estimate,
    interval,
    interval_or_reason,
    value,
)
from evenhand.report.charts import COLOURS, DASHES, Plot, draw, element
from evenhand.report.document import Report, Section, table_section, words
from evenhand.report.manifest import read_mapping, read_text
from evenhand.report.wording import (
    format_count,
    format_name,
    format_number,
    format_p,
    format_percent,
    format_value,
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
    "The best threshold was fitted on these texts, so its own figures are optimistic. Those in the held-out "
    "row come from texts it was not fitted on; other texts and other people may still give another.",
    "p-values of rank correlations assume independent clusters; those of several outputs are not corrected.",
)


def build_report(run: Run) -> Report:
    """Build the content of the report."""
    metric = read_text(run.manifest, "identity", "metric", "spec") or "the metric"
    table = run.table("validation")
    outputs = table["output"].unique(maintain_order=True).to_list()
    return build_people_report(
        run,
        tables=TABLES,
        question=f"Does {metric} agree with people?",
        details="Every text has a human label and one from the metric. Human labels are taken as correct.",
        verdicts=tuple(_verdict(table, output) for output in outputs),
        sections=(
            table_section(
                "measures",
                "Over all texts",
                "Precision, recall and F1 are weighted by how often people give a label (Table 8 of the BOLD "
                "paper).",
                table.filter(label=_ALL),
                {
                    **{"Output": words("output"), "Measure": lambda row: _MEASURES[row["measure"]]},
                    **{"#Value": value, "#Interval": interval_or_reason},
                    "#p": lambda row: "" if row["p"] is None else format_p(row["p"]),
                    **{"#Texts": "n", "#Clusters": "n_clusters"},
                },
                source="validation",
                short=(0, 1, 2, 3, 5) if len(outputs) > 1 else (1, 2, 3, 4, 5),
            ),
            *(section for output in outputs for section in _list_sections(run, output, outputs)),
            _misses(run, outputs),
            table_section(
                "left-out",
                "Left out",
                "",
                run.table("exclusions"),
                {"Reason": "reason", "#Texts": "count", "#Of": "of"},
                source="exclusions",
                formats="html md",
            ),
        ),
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


def _list_sections(run: Run, output: str, outputs: Sequence[str]) -> Iterator[Section]:
    """The sections of one output; those of the first are named at the top of the page."""
    table, counts, spreads, curves, fitted = (
        run.table(name).filter(output=output)
        for name in ("validation", "confusion", "score_spreads", "cut_curves", "best_cuts")
    )

    def section(name: str, title: str, *content: Any, nav: str, **options: Any) -> Section:
        plain = "".join(letter if letter.isalnum() else "-" for letter in output)
        whole = f"{title}: {format_name(output)}" if len(outputs) > 1 else title
        nav = nav if output == outputs[0] else ""
        return table_section(f"{name}-{plain}", whole, *content, nav=nav, **options)

    labels = table.filter(pl.col("label") != _ALL).partition_by("label", maintain_order=True)
    yield section(
        "labels",
        "Each label",
        "Precision: of the texts with a label of the metric, the share with that human label. Recall: of the "
        "texts with a human label, the share that the metric gives it to.",
        [{row["measure"]: row for row in part.iter_rows(named=True)} for part in labels],
        {
            "Label": lambda rows: rows["precision"]["label"],
            "#Precision": lambda rows: estimate("value")(rows["precision"]),
            "#Recall": lambda rows: estimate("value")(rows["recall"]),
            "#F1": lambda rows: estimate("value")(rows["f1"]),
        },
        source="validation",
        nav="Labels",
    )
    yield section(
        "confusion",
        "Confusion",
        "Texts by human label (rows) and the metric's label (columns).",
        counts.pivot("predicted", index="human", values="count"),
        {
            "People": lambda row: f"people: {row['human']}",
            **{f"#metric: {label}": label for label in counts["human"].unique(maintain_order=True)},
        },
        source="confusion",
        nav="Confusion",
        formats="html md",
    )
    rows = spreads.to_dicts()
    signs = (-1, 1) if rows and rows[0]["low"] < 0 else (1,)
    yield section(
        "spread",
        "Scores by human label",
        "As in Figure 6 of the BOLD paper. Dashed vertical lines are the metric's own thresholds.",
        rows,
        {
            **{"People": "label", "#Texts": "n", "#Mean": "mean", "#5 %": "q05", "#25 %": "q25"},
            **{"#Median": "q50", "#75 %": "q75", "#95 %": "q95"},
        },
        source="score_spreads",
        nav="Scores",
        drawing=draw_spreads(rows, [sign * cut for cut in fitted["own"].drop_nulls() for sign in signs]),
        formats="html md",
    )
    for best in fitted.head(1).to_dicts():
        kinds = (
            ("its own threshold", *(format_value(best[key]) for key in ("own", "own_kappa", "own_accuracy"))),
            ("best threshold, fitted", *(estimate(key)(best) for key in ("cut", "kappa", "accuracy"))),
            (
                *(f"best threshold, held out ({best['folds']} folds)", ""),
                *(estimate(key)(best) for key in ("kappa_held_out", "accuracy_held_out")),
            ),
        )
        yield section(
            "cut",
            "The threshold with the best agreement",
            "By Cohen's kappa, which is 0 for a threshold that gives all texts one label. Labels change at "
            "the threshold t or, with three labels, at -t and at t.",
            kinds,
            {head: itemgetter(at) for at, head in enumerate(("Which", "#Threshold", "#Kappa", "#Accuracy"))},
            source="best_cuts",
            nav="Best threshold",
            drawing=draw_curve(curves.to_dicts(), best),
            note="The middle row was fitted on the texts it is evaluated on, so it is optimistic. Quote the "
            "last row.",
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


_FRAME = {"width": 560.0, "height": 190.0, "left": 46.0, "top": 14.0}
_CUT: Mapping[str, object] = {"stroke": "currentColor", "stroke_opacity": 0.55}
_draw = partial(draw, width=776, height=230, style="drawing")


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
    parts += [plot.upright(cut, **_CUT, stroke_dasharray="3 3") for cut in cuts if low <= cut <= high]
    for place, (row, own) in enumerate(zip(rows, shares, strict=True)):
        edges = [low + (high - low) * at / len(own) for at in range(len(own) + 1)]
        steps = [(x, share) for *sides, share in zip(edges, edges[1:], own, strict=False) for x in sides]
        stroke = {"stroke": COLOURS[place % 6], "stroke_dasharray": DASHES[place % 6]}
        parts.append(plot.line([(low, 0.0), *steps, (high, 0.0)], stroke_width=1.8, **stroke))
        x, y = plot.left + plot.width + 14, plot.top + 12 + 18 * place
        parts.append(element("line", x1=x, x2=x + 26, y1=y - 4, y2=y - 4, stroke_width=2, **stroke))
        parts.append(element("text", f"{row['label']} ({row['n']})", x=x + 32, y=y))
    return _draw(parts, label="Distributions of the score, one line per human label")


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
    parts = [plot.frame(**named, across="threshold", upward="Cohen's kappa")]
    if best["cut_low"] is not None and best["cut_high"] is not None:
        band = (min(max(best[end], low), high) for end in ("cut_low", "cut_high"))
        parts.append(plot.band(*band, fill=COLOURS[2], fill_opacity=0.13))
    parts.append(plot.line(known, stroke=COLOURS[2], stroke_width=1.8))
    for name, cut, dash, down in (("own", best["own"], "3 3", 12), ("best", best["cut"], "", 26)):
        if cut is not None and low <= cut <= high:
            parts.append(plot.upright(cut, **_CUT, stroke_dasharray=dash))
            parts.append(element("text", name, x=plot.at(cut, top)[0] + 4, y=plot.top + down))
    return _draw(
        parts,
        label="Agreement with people at every threshold; the shaded area is the interval of the best one",
    )
