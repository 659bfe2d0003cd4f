"""How far people agree: the report of ``annotate agreement``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import polars as pl

from evenhand.annotate.report.page import (
    SHOWN,
    build_people_report,
    format_estimate,
    format_interval,
    format_interval_or_reason,
    format_number_or_blank,
)
from evenhand.report.document import Report, Section, Table, table_section
from evenhand.report.wording import (
    format_count,
    format_name,
    format_number,
    format_percent,
    show_control_characters,
)
from evenhand.stats.results import NO_VARIATION
from evenhand.store.run import Run

TABLES = ("agreement", "annotators", "annotator_pairs", "items", "dissents", "errors")
_STATISTICS = {
    "fleiss_kappa": "Fleiss' kappa",
    "alpha_nominal": "alpha, nominal",
    "alpha_ordinal": "alpha, ordinal",
    "alpha_interval": "alpha, interval",
    "spearman": "Spearman's rho",
}
_HIGH, _FAIR = 0.8, 2 / 3
"""Krippendorff's own marks: reliable from 0.8, tentative conclusions from 2/3."""
CAVEATS = (
    "Agreement is not truth: people who share a blind spot agree. It bounds how well a metric can be tested.",
    "Kappa and alpha fall where one label is frequent, even if people rarely differ: read them beside the "
    "shares of labels.",
    "Intervals resample texts, not people: they say what other texts would give with these annotators.",
    "Dawid and Skene's model takes errors as independent given the truth; people who copy each other look "
    "better than they are.",
)


def build_report(run: Run) -> Report:
    """The content of the report."""
    overall = run.table("agreement")
    questions = overall.partition_by("question", as_dict=True, maintain_order=True)
    return build_people_report(
        run,
        tables=TABLES,
        question=f"How far do people agree in {show_control_characters(str(run.manifest['name']))}?",
        details="Every text was labelled by several people. Kappa, alpha and rho are 1 where they fully "
        "agree and 0 where they agree as far as chance would have it.",
        verdicts=tuple(_verdict(str(question), rows) for (question,), rows in questions.items()),
        sections=(
            _overall(overall),
            _annotators(run),
            _where(run),
            _errors(run),
            _pairs(run),
            _items(run),
            _dissents(run),
        ),
        caveats=CAVEATS,
    )


def _verdict(question: str, rows: pl.DataFrame) -> str:
    ordinal = rows.filter(pl.col("statistic") == "alpha_ordinal")
    chosen = ordinal if ordinal.height else rows.filter(pl.col("statistic") == "alpha_nominal")
    row = chosen.row(0, named=True)
    what = f"{format_name(question)}: Krippendorff's {_STATISTICS[row['statistic']]},"
    if row["value"] is None:
        return f"{what} could not be computed: {row['null_reason']}."
    ends = format_interval(row)
    value = f"{what} is {format_number(row['value'])}" + (f" ({ends})" if ends else "")
    return f"{value} over {format_count(row['n_items'], 'text')}: {_standing(row)}."


def _standing(row: Mapping[str, object]) -> str:
    low, high = row["low"], row["high"]
    if not isinstance(low, float) or not isinstance(high, float):
        few = row["null_reason"] != NO_VARIATION
        return "too few texts for an interval" if few else "nobody differs, so that there is no interval"
    if low >= _HIGH:
        return "reliable by Krippendorff's mark of 0.8"
    if high < _FAIR:
        return "below 2/3, from where on Krippendorff draws tentative conclusions"
    if low >= _FAIR:
        return "good for tentative conclusions (above 2/3, not surely above 0.8)"
    return "not surely above 2/3, from where on Krippendorff draws tentative conclusions"


def _overall(table: pl.DataFrame) -> Section:
    rows = tuple(
        (
            format_name(row["question"]),
            _STATISTICS[row["statistic"]],
            row["categories"],
            format_number_or_blank(row["value"]) or str(row["null_reason"]),
            format_interval_or_reason(row),
            f"{row['n']:,}",
            f"{row['n_items']:,}",
            f"{row['n_left_out']:,}",
        )
        for row in table.iter_rows(named=True)
    )
    heads = ("Question", "Statistic", "Labels", "#Value", "#Interval", "#Ratings", "#Texts", "#Left out")
    return table_section(
        "overall",
        "Over all texts",
        "Fleiss' kappa, Krippendorff's alpha for labels without order, in order, and as numbers, and "
        "Spearman's rho over all pairs of ratings of one text. Labels: all, or only those with a place in "
        "order of their own. Left out: texts with fewer than two such ratings.",
        Table(
            columns=heads,
            rows=rows,
            source="agreement",
            short=(0, 1, 2, 3, 4) if len({row[0] for row in rows}) > 1 else (1, 2, 3, 4),
        ),
        nav="Overall",
    )


def _annotators(run: Run) -> Section:
    table = run.table("annotators").sort("question", "agreement", nulls_last=True)
    has_skill = table["skill"].null_count() < table.height
    has_checks = table["checks_met"].null_count() < table.height
    rows = []
    for row in table.iter_rows(named=True):
        cells = [
            format_name(row["question"]),
            show_control_characters(row["annotator"]),
            f"{row['n']:,}",
            format_estimate(row, "agreement"),
            format_estimate(row, "kappa"),
            format_estimate(row, "spearman"),
            f"{row['dissents']:,}",
        ]
        cells += [format_estimate(row, "skill")] if has_skill else []
        checks = f"{row['checks_passed']} of {row['checks_met']}" if row["checks_met"] is not None else ""
        rows.append((*cells, checks) if has_checks else tuple(cells))
    heads = ["Question", "Annotator", "#Ratings", "#Agreement", "#Kappa", "#Rho", "#Against most"]
    heads += ["#True label"] if has_skill else []
    heads += ["#Checks passed"] if has_checks else []
    return table_section(
        "annotators",
        "Who agrees with the others",
        "The lowest agreement first. Agreement is the share of the others' labels of the same texts that are "
        "the same; kappa is what is left of it beyond chance; against most counts labels against more than "
        "half of two others or more."
        + (" True label: the probability of naming it, by Dawid and Skene." if has_skill else ""),
        Table(
            columns=tuple(heads),
            rows=tuple(rows[:SHOWN]),
            source="annotators",
            unlisted=max(0, len(rows) - SHOWN),
            short=(0, 1, 2, 3, 6)
            if len({row[0] for row in rows}) > 1
            else (1, 2, 3, 6, *range(7, len(heads))),
        ),
        nav="Annotators",
    )


def _where(run: Run) -> Section:
    """Which labels people stand alone with: who says what where the others say something else."""
    table = run.table("dissents")
    times = Counter(table.select("question", "annotator", "others", "said").iter_rows())
    rows = tuple(
        (
            format_name(question),
            show_control_characters(person),
            show_control_characters(others),
            show_control_characters(said),
            f"{n:,}",
        )
        for (question, person, others, said), n in times.most_common(SHOWN)
    )
    return table_section(
        "where",
        "Who differs from the others, and how",
        "How often one person says something else than more than half of the others.",
        Table(
            columns=("Question", "Annotator", "Others say", "They say", "#Texts"),
            rows=rows,
            source="dissents",
            unlisted=max(0, len(times) - SHOWN),
            formats="html md",
        ),
        nav="Differences",
    )


def _errors(run: Run) -> Section:
    table = run.table("errors")
    wrong = table.filter(pl.col("true") != pl.col("said")).sort("probability", descending=True)
    rows = tuple(
        (
            format_name(row["question"]),
            show_control_characters(row["annotator"]),
            row["true"],
            row["said"],
            format_percent(row["probability"]),
        )
        for row in wrong.head(SHOWN).iter_rows(named=True)
    )
    return table_section(
        "errors",
        "How people err, by Dawid and Skene",
        "What an annotator says of a text that truly has a label; the likeliest errors first.",
        Table(
            columns=("Question", "Annotator", "True label", "They say", "#Probability"),
            rows=rows,
            source="errors",
            unlisted=max(0, wrong.height - SHOWN),
            formats="html md",
        ),
    )


def _pairs(run: Run) -> Section:
    table = run.table("annotator_pairs")
    rows = tuple(
        (
            format_name(row["question"]),
            f"{show_control_characters(row['first'])} and {show_control_characters(row['second'])}",
            f"{row['n']:,}",
            format_estimate(row, "agreement"),
            format_estimate(row, "spearman"),
        )
        for row in table.head(SHOWN).iter_rows(named=True)
    )
    return table_section(
        "pairs",
        "Every two people",
        "",
        Table(
            columns=("Question", "Pair", "#Texts", "#Same label", "#Rho"),
            rows=rows,
            source="annotator_pairs",
            unlisted=max(0, table.height - SHOWN),
            formats="html md",
        ),
        nav="Pairs",
    )


def _items(run: Run) -> Section:
    table = run.table("items").filter(pl.col("disagreement") > 0).sort("disagreement", descending=True)
    rows = tuple(
        (
            format_name(row["question"]),
            show_control_characters(row["text"]),
            row["said"],
            format_number_or_blank(row["disagreement"]),
            row["label"] or str(row["null_reason"]),
        )
        for row in table.head(SHOWN).iter_rows(named=True)
    )
    return table_section(
        "items",
        "The most disputed texts",
        "Disagreement is the share of pairs of labels that differ.",
        Table(
            columns=("Question", "~Text", "Said", "#Disagreement", "Label"),
            rows=rows,
            source="items",
            unlisted=max(0, table.height - SHOWN),
            formats="html",
            is_offensive=True,
        ),
        nav="Texts",
    )


def _dissents(run: Run) -> Section:
    table = run.table("dissents")
    rows = tuple(
        (
            show_control_characters(row["annotator"]),
            show_control_characters(row["text"]),
            row["said"],
            f"{row['others']} ({format_percent(row['share'])})",
        )
        for row in table.head(SHOWN).iter_rows(named=True)
    )
    return table_section(
        "dissents",
        "The texts on which one person stands alone",
        "",
        Table(
            columns=("Annotator", "~Text", "They say", "Others say"),
            rows=rows,
            source="dissents",
            unlisted=max(0, table.height - SHOWN),
            formats="html",
            is_offensive=True,
        ),
    )
