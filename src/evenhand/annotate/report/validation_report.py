"""A metric against people: the report of ``evenhand validate``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from evenhand.annotate.report.page import (
    PeopleReport,
    ReportSection,
    build_formats,
    format_estimate,
    format_interval,
    format_interval_or_reason,
    format_number_or_blank,
    list_facts,
)
from evenhand.annotate.report.validation_plots import curve_svg, spreads_svg
from evenhand.report.manifest import read_mapping
from evenhand.report.wording import (
    format_count,
    format_name,
    format_number,
    format_p,
    format_percent,
    show_control_characters,
)
from evenhand.store.run import Run

TABLES = ("validation", "confusion", "score_spreads", "best_cuts", "cut_curves", "exclusions")
_ALL = "(all)"
_MEASURES = {
    "spearman": "Spearman's rho of the labels",
    "spearman_score": "Spearman's rho of the score",
    "accuracy": "Accuracy",
    "always_commonest": "Accuracy of always saying the commonest label",
    "kappa": "Cohen's kappa",
    "precision": "Precision",
    "recall": "Recall",
    "f1": "F1",
}
_SHOWN = 200
CAVEATS = (
    "People's labels are taken as right. Where they disagree among themselves, no metric can agree with all: "
    "see `evenhand annotate agreement` for how far they do.",
    "Agreement over all texts says nothing of single groups: a metric may agree less where it matters most.",
    "The best cut was fitted on these very texts: its own figures are too good. Those in the column held out "
    "are of texts the cut was not fitted on; other texts and other people may still give another cut.",
    "p-values of rank correlations take clusters as independent; those of many outputs are not corrected.",
)


def build_report(run: Run) -> PeopleReport:
    """The content of the page."""
    metric = show_control_characters(
        str(read_mapping(run.manifest, "identity", "metric").get("spec") or "the metric")
    )
    table = run.table("validation")
    outputs = table["output"].unique(maintain_order=True).to_list()
    several = len(outputs) > 1
    sections: list[ReportSection] = [_measures(table)]
    for place, output in enumerate(outputs):
        found = [
            section
            for section in (
                _by_label(table, output, several),
                _confusion(run, output, several),
                _spread(run, output, several),
                _cut(run, output, several),
            )
            if section.rows or section.drawing
        ]
        sections += found if not place else [replace(section, nav="") for section in found]
    sections += [section for section in (_misses(run, outputs), _left_out(run)) if section.rows]
    return PeopleReport(
        question=f"Does {metric} agree with people?",
        lede="Every text has a label from people and one from the metric. People are taken as right.",
        verdicts=tuple(_verdict(table, output) for output in outputs),
        sections=tuple(sections),
        caveats=CAVEATS,
        facts=list_facts(run),
    )


FORMATS = build_formats(build_report, TABLES)


def _verdict(table: pl.DataFrame, output: str) -> str:
    of = {
        row["measure"]: row
        for row in table.filter((pl.col("output") == output) & (pl.col("label") == _ALL)).iter_rows(
            named=True
        )
    }
    rho = of.get("spearman") or of.get("spearman_score")
    told = f"{format_name(output)}: "
    if "accuracy" in of and of["accuracy"]["value"] is not None:
        accuracy, least = of["accuracy"], of["always_commonest"]["value"]
        told += (
            f"the same label in {format_percent(accuracy['value'])} of {format_count(accuracy['n'], 'text')}"
        )
        ends = (accuracy["low"], accuracy["high"])
        if ends[0] is not None:
            told += f" ({format_percent(ends[0])} to {format_percent(ends[1])})"
            if ends[0] <= least:
                told += (
                    f", not surely more than by always saying the commonest label ({format_percent(least)})"
                )
    if rho and rho["value"] is not None:
        told += ("; " if told.strip()[-1] != ":" else "") + f"rank correlation {format_number(rho['value'])}"
        ends_of = format_interval(rho)
        told += f" ({ends_of})" if ends_of else ""
    return f"{told}." if told.strip()[-1] != ":" else f"{told}nothing can be told."


def _measures(table: pl.DataFrame) -> ReportSection:
    rows = tuple(
        (
            format_name(row["output"]),
            _MEASURES[row["measure"]],
            format_number_or_blank(row["value"]) or str(row["null_reason"]),
            format_interval_or_reason(row),
            format_p(row["p"]) if row["p"] is not None else "",
            f"{row['n']:,}",
            f"{row['n_clusters']:,}",
        )
        for row in table.filter(pl.col("label") == _ALL).iter_rows(named=True)
    )
    return ReportSection(
        "measures",
        "Over all texts",
        "Precision, recall and F1 are weighted by how often people give a label (Table 8 of the BOLD paper).",
        ("Output", "Measure", "#Value", "#Interval", "#p", "#Texts", "#Clusters"),
        rows,
        table="validation",
        short=(0, 1, 2, 3, 5) if table["output"].n_unique() > 1 else (1, 2, 3, 4, 5),
    )


def _title(words: str, output: str, several: bool) -> str:
    return f"{words}: {format_name(output)}" if several else words


def _id(words: str, output: str) -> str:
    return words + "-" + "".join(letter if letter.isalnum() else "-" for letter in output)


def _by_label(table: pl.DataFrame, output: str, several: bool) -> ReportSection:
    of = table.filter((pl.col("output") == output) & (pl.col("label") != _ALL))
    rows = []
    for label in of["label"].unique(maintain_order=True):
        parts = {row["measure"]: row for row in of.filter(pl.col("label") == label).iter_rows(named=True)}
        rows.append(
            (show_control_characters(label), *(_cell(parts[key]) for key in ("precision", "recall", "f1")))
        )
    return ReportSection(
        _id("labels", output),
        _title("Each label", output, several),
        "Precision: of the texts the metric gives a label, the share people give it. Recall: of the texts "
        "people give it, the share the metric finds.",
        ("Label", "#Precision", "#Recall", "#F1"),
        tuple(rows),
        nav="Labels",
        table="validation",
        short=(0, 1, 2, 3),
    )


def _cell(row: Mapping[str, object]) -> str:
    if row["value"] is None:
        return str(row["null_reason"])
    ends = format_interval(row)
    return format_number_or_blank(row["value"]) + (f" ({ends})" if ends else "")


def _confusion(run: Run, output: str, several: bool) -> ReportSection:
    of = run.table("confusion").filter(pl.col("output") == output)
    labels = of["human"].unique(maintain_order=True).to_list()
    counts = {(row["human"], row["predicted"]): row["count"] for row in of.iter_rows(named=True)}
    rows = tuple((f"people: {label}", *(f"{counts[label, other]:,}" for other in labels)) for label in labels)
    return ReportSection(
        _id("confusion", output),
        _title("Confusion", output, several),
        "Texts by what people say (rows) and what the metric says (columns).",
        ("", *(f"#metric: {label}" for label in labels)),
        rows,
        nav="Confusion",
        table="confusion",
    )


def _spread(run: Run, output: str, several: bool) -> ReportSection:
    of = run.table("score_spreads").filter(pl.col("output") == output).to_dicts()
    best = run.table("best_cuts").filter(pl.col("output") == output).to_dicts()
    own = [row["own"] for row in best if row["own"] is not None]
    cuts = [sign * cut for cut in own for sign in ((-1, 1) if of and of[0]["low"] < 0 else (1,))]
    rows = tuple(
        (
            show_control_characters(row["label"]),
            f"{row['n']:,}",
            *(format_number_or_blank(row[key]) for key in ("mean", "q05", "q25", "q50", "q75", "q95")),
        )
        for row in of
    )
    return ReportSection(
        _id("spread", output),
        _title("Scores by what people say", output, several),
        "Figure 6 of the BOLD paper. Dashed upright lines are the metric's own cuts.",
        ("People say", "#Texts", "#Mean", "#5 %", "#25 %", "#Median", "#75 %", "#95 %"),
        rows,
        drawing=spreads_svg(of, cuts),
        nav="Scores",
        table="score_spreads",
    )


def _cut(run: Run, output: str, several: bool) -> ReportSection:
    found = run.table("best_cuts").filter(pl.col("output") == output).to_dicts()
    if not found:
        return ReportSection(_id("cut", output), "")
    best = found[0]
    rows = (
        (
            "its own cut",
            format_number_or_blank(best["own"]) or "none",
            format_number_or_blank(best["own_kappa"]),
            format_number_or_blank(best["own_accuracy"]),
        ),
        (
            "best cut, where fitted",
            format_estimate(best, "cut"),
            format_estimate(best, "kappa"),
            format_estimate(best, "accuracy"),
        ),
        (
            f"best cut, held out ({best['folds']} folds)",
            "",
            format_estimate(best, "kappa_held_out"),
            format_estimate(best, "accuracy_held_out"),
        ),
    )
    points = run.table("cut_curves").filter(pl.col("output") == output).to_dicts()
    return ReportSection(
        _id("cut", output),
        _title("The cut that would agree best", output, several),
        "By Cohen's kappa, which a cut that gives all texts one label cannot win. Labels change at the cut, "
        "with three labels at minus the cut and at the cut.",
        ("Which", "#Cut", "#Kappa", "#Accuracy"),
        rows,
        drawing=curve_svg(points, best),
        note="The middle row was fitted on the texts it is judged on: too good by construction. The last row "
        "is the one to quote.",
        nav="Best cut",
        table="best_cuts",
        short=(0, 1, 2, 3),
    )


def _misses(run: Run, outputs: list[str]) -> ReportSection:
    table = run.table("judged").filter((pl.col("output") == outputs[0]) & pl.col("predicted").is_not_null())
    labels = read_mapping(run.manifest, "identity", "labels", outputs[0])
    meant = {theirs: str(ours) for theirs, ours in labels.items() if ours is not None}
    human = pl.col("human").replace_strict(meant, default=None, return_dtype=pl.String)
    wrong = table.with_columns(human.alias("meant")).filter(pl.col("meant") != pl.col("predicted"))
    wrong = wrong.sort("share", "item_id", descending=[True, False])
    rows = tuple(
        (
            show_control_characters(row["text"]),
            f"{row['human']} ({format_percent(row['share'])})",
            row["predicted"],
            format_number_or_blank(row["value"]),
        )
        for row in wrong.head(_SHOWN).iter_rows(named=True)
    )
    return ReportSection(
        "misses",
        "The texts on which they differ",
        "Those on which people agree most come first.",
        ("~Text", "People say", "Metric says", "#Score"),
        rows,
        unlisted=max(0, wrong.height - _SHOWN),
        nav="Texts",
        table="judged",
        is_offensive=True,
    )


def _left_out(run: Run) -> ReportSection:
    rows = tuple(
        (row["reason"], f"{row['count']:,}", f"{row['of']:,}")
        for row in run.table("exclusions").iter_rows(named=True)
    )
    return ReportSection("left-out", "Left out", "", ("Reason", "#Texts", "#Of"), rows, table="exclusions")
