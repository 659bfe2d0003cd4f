"""Inter-annotator agreement: the report of ``annotate agreement``."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from evenhand.annotate.report.page import (
    Row,
    build_people_report,
    estimate,
    interval,
    interval_or_reason,
    value,
)
from evenhand.report.document import Report, Section, Show, table_section, words
from evenhand.report.wording import (
    format_count,
    format_name,
    format_number,
    format_percent,
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
"""Krippendorff's thresholds: reliable from 0.8, tentative conclusions from 2/3."""
CAVEATS = (
    "Agreement is not truth: people who share a blind spot agree. It bounds how well a metric can be tested.",
    "Kappa and alpha fall if one label is frequent, even if people rarely differ: read them with the "
    "shares of labels.",
    "Confidence intervals resample texts, not people: they describe other texts with these annotators.",
    "Dawid and Skene's model assumes independent errors given the truth; people who copy each other look "
    "better than they are.",
)


def build_report(run: Run) -> Report:
    """Build the content of the report."""
    overall = run.table("agreement")
    questions = overall.partition_by("question", as_dict=True, maintain_order=True)
    return build_people_report(
        run,
        tables=TABLES,
        question=f"How well do people agree in {run.manifest['name']}?",
        details="Every text was labelled by several people. Kappa, alpha and rho are 1 for full agreement "
        "and 0 for agreement by chance alone.",
        verdicts=tuple(_verdict(str(question), rows) for (question,), rows in questions.items()),
        sections=tuple(_list_sections(run, overall)),
        caveats=CAVEATS,
    )


def _verdict(question: str, rows: pl.DataFrame) -> str:
    ordinal = rows.filter(pl.col("statistic") == "alpha_ordinal")
    chosen = ordinal if ordinal.height else rows.filter(pl.col("statistic") == "alpha_nominal")
    row = chosen.row(0, named=True)
    what = f"{format_name(question)}: Krippendorff's {_STATISTICS[row['statistic']]},"
    if row["value"] is None:
        return f"{what} could not be computed: {row['null_reason']}."
    ends = interval()(row)
    value = f"{what} is {format_number(row['value'])}" + (f" ({ends})" if ends else "")
    return f"{value} over {format_count(row['n_items'], 'text')}: {_standing(row)}."


def _standing(row: Row) -> str:
    low, high = row["low"], row["high"]
    if low is None or high is None:
        few = row["null_reason"] != NO_VARIATION
        return "too few texts for an interval" if few else "nobody differs, so there is no interval"
    if low >= _HIGH:
        return "reliable by Krippendorff's threshold of 0.8"
    if high < _FAIR:
        return "below 2/3, Krippendorff's threshold for tentative conclusions"
    if low >= _FAIR:
        return "sufficient for tentative conclusions (above 2/3, not clearly above 0.8)"
    return "not clearly above 2/3, Krippendorff's threshold for tentative conclusions"


def _annotators(run: Run) -> Section:
    table = run.table("annotators").sort("question", "agreement", nulls_last=True)
    columns: dict[str, Show] = {
        **{"Question": words("question"), "Annotator": "annotator", "#Ratings": "n"},
        **{"#Agreement": estimate("agreement"), "#Kappa": estimate("kappa"), "#Rho": estimate("spearman")},
        "#Against most": "dissents",
    }
    lede = (
        "Sorted by agreement, lowest first. Agreement is the share of others' labels of the same texts that "
        "are equal; kappa corrects it for chance; against most counts labels that differ from those of more "
        "than half of the others (at least two)."
    )
    if table["skill"].null_count() < table.height:
        columns["#True label"] = estimate("skill")
        lede += " True label: the probability of giving it, by Dawid and Skene."
    if table["checks_met"].null_count() < table.height:
        columns["#Checks passed"] = lambda row: (
            "" if row["checks_met"] is None else f"{row['checks_passed']} of {row['checks_met']}"
        )
    short = (0, 1, 2, 3, 6) if table["question"].n_unique() > 1 else (1, 2, 3, 6, *range(7, len(columns)))
    title, nav = "Agreement with the others", "Annotators"
    return table_section("annotators", title, lede, table, columns, source="annotators", nav=nav, short=short)


def _list_sections(run: Run, overall: pl.DataFrame) -> Iterator[Section]:
    """Agreement over all texts, who differs from whom, and how people err."""
    yield table_section(
        "overall",
        "Over all texts",
        "Fleiss' kappa, Krippendorff's alpha for nominal, ordinal and interval labels, and "
        "Spearman's rho over all pairs of ratings of one text. Labels: all, or only those with their own "
        "place on the scale. Left out: texts with fewer than two such ratings.",
        overall,
        {
            "Question": words("question"),
            "Statistic": lambda row: _STATISTICS[row["statistic"]],
            **{"Labels": "categories", "#Value": value, "#Interval": interval_or_reason},
            **{"#Ratings": "n", "#Texts": "n_items", "#Left out": "n_left_out"},
        },
        source="agreement",
        nav="Overall",
        short=(0, 1, 2, 3, 4) if overall["question"].n_unique() > 1 else (1, 2, 3, 4),
    )
    yield _annotators(run)
    dissents, errors = run.table("dissents"), run.table("errors")
    labels = dissents.group_by("question", "annotator", "others", "said", maintain_order=True).len()
    yield table_section(
        "where",
        "Who differs from the others, and how",
        "How often one person's label differs from that of more than half of the others.",
        labels.sort("len", descending=True, maintain_order=True),
        {
            **{"Question": words("question"), "Annotator": "annotator", "Others' label": "others"},
            **{"Their label": "said", "#Texts": "len"},
        },
        source="dissents",
        nav="Differences",
        formats="html md",
    )
    yield table_section(
        "errors",
        "Annotators' errors, by Dawid and Skene",
        "The labels an annotator gives to texts with another true label; the most likely errors first.",
        errors.filter(pl.col("true") != pl.col("said")).sort("probability", descending=True),
        {
            **{"Question": words("question"), "Annotator": "annotator", "True label": "true"},
            **{"Their label": "said", "#Probability": lambda row: format_percent(row["probability"])},
        },
        source="errors",
        formats="html md",
    )
    yield table_section(
        "pairs",
        "Pairs of annotators",
        "",
        run.table("annotator_pairs"),
        {
            **{"Question": words("question"), "Pair": lambda row: f"{row['first']} and {row['second']}"},
            **{"#Texts": "n", "#Same label": estimate("agreement"), "#Rho": estimate("spearman")},
        },
        source="annotator_pairs",
        nav="Pairs",
        formats="html md",
    )
    yield from _list_texts(run.table("items"), dissents)


def _list_texts(items: pl.DataFrame, dissents: pl.DataFrame) -> Iterator[Section]:
    """The texts on which people disagree."""
    yield table_section(
        "items",
        "The most disputed texts",
        "Disagreement is the share of pairs of labels that differ.",
        items.filter(pl.col("disagreement") > 0).sort("disagreement", descending=True),
        {
            **{"Question": words("question"), "~Text": "text", "Said": "said"},
            **{"#Disagreement": "disagreement", "Label": lambda row: row["label"] or str(row["null_reason"])},
        },
        source="items",
        nav="Texts",
        formats="html",
        is_offensive=True,
    )
    yield table_section(
        "dissents",
        "Texts on which one person differs from the others",
        "",
        dissents,
        {
            **{"Annotator": "annotator", "~Text": "text", "Their label": "said"},
            "Others' label": lambda row: f"{row['others']} ({format_percent(row['share'])})",
        },
        source="dissents",
        formats="html",
        is_offensive=True,
    )
