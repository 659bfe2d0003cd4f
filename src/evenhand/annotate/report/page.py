"""The reports of ``annotate agreement`` and ``ratings``, and what all reports on human labels share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import polars as pl

from evenhand.report.document import Page, Report, Section, Show, table_section, words
from evenhand.report.manifest import Fact, list_facts, read_mapping, read_text
from evenhand.report.verdicts import ALPHA
from evenhand.report.wording import (
    format_count,
    format_name,
    format_number,
    format_p,
    format_percent,
    format_value,
)
from evenhand.stats.results import NO_VARIATION, SAME_DIFFERENCE
from evenhand.store.run import Run

Row: TypeAlias = Mapping[str, Any]
_STATISTICS = {
    "fleiss_kappa": "Fleiss' kappa",
    "alpha_nominal": "alpha, nominal",
    "alpha_ordinal": "alpha, ordinal",
    "alpha_interval": "alpha, interval",
    "spearman": "Spearman's rho",
}
_HIGH, _FAIR = 0.8, 2 / 3
"""Krippendorff's thresholds: reliable from 0.8, tentative conclusions from 2/3."""
_AGREEMENT_CAVEATS = (
    "Agreement is not truth: people who share a blind spot agree. It bounds how well a metric can be tested.",
    "Kappa and alpha fall if one label is frequent, even if people rarely differ: read them with the "
    "shares of labels.",
    "Confidence intervals resample texts, not people: they describe other texts with these annotators.",
    "Dawid and Skene's model assumes independent errors given the truth; people who copy each other look "
    "better than they are.",
)
_RATING_CAVEATS = (
    "The tests treat participants as the sample: they generalise to other people's answers on these texts, "
    "not to other texts.",
    "A scale from 1 to 7 is ordinal: equal steps need not feel equal. The t test follows the paper.",
    "An inconclusive difference does not prove that there is none.",
)


def build_report(run: Run) -> Report:
    """Build the content of the report."""
    is_agreement = read_text(run.manifest, "identity", "command") == "agreement"
    return _build_agreement(run) if is_agreement else _build_ratings(run)


def build_people_report(run: Run, *, tables: Sequence[str], **content: Any) -> Report:
    """Build a report on human labels."""
    return Report(
        run=run,
        **content,
        facts=list_facts(run, _own_facts(run)),
        manifest=("command", "name", "identity", "package"),
        tables=tables,
        values={
            "verdicts": list(content["verdicts"]),
            "caveats": list(content["caveats"]),
            "warnings": run.manifest.get("warnings"),
        },
        page=Page(scripts=("data.js", "explore.js")),
    )


def _own_facts(run: Run) -> Iterator[Fact]:
    identity = read_mapping(run.manifest, "identity")
    yield Fact("Labels", read_text(identity, "inputs", "file"))
    yield Fact("Digest of the labels", read_text(identity, "inputs", "digest"), is_code=True)
    if consensus := read_mapping(identity, "consensus"):
        method, agreement, least = (read_text(consensus, key) for key in ("method", "agreement", "least"))
        yield Fact("One label per text", f"{method}, share of {agreement}, at least {least} ratings")
    yield Fact("Metric", read_text(identity, "metric", "spec"))
    yield Fact("Metric version", read_text(identity, "metric", "version"))
    yield Fact("Weights or lexicon", read_text(identity, "metric", "weights"), is_code=True)


def interval(name: str = "", *, signed: bool = False) -> Callable[[Row], str]:
    """A formatter for an estimate's interval; empty if there is none."""
    ends = [f"{name}_{end}" if name else end for end in ("low", "high")]

    def show(row: Row) -> str:
        known = [format_number(row[end], signed=signed) for end in ends]
        return " to ".join(known) if all(known) else ""

    return show


def estimate(name: str) -> Callable[[Row], str]:
    """A formatter for an estimate with its interval, or the reason why there is none."""

    def show(row: Row) -> str:
        if row[name] is None:
            return row["null_reason" if name == "value" else f"{name}_null"] or ""
        ends = interval("" if name == "value" else name)(row)
        return format_number(row[name]) + (f" ({ends})" if ends else "")

    return show


def value(row: Row) -> str:
    """A value, or the reason why there is none."""
    return format_value(row["null_reason"] if row["value"] is None else row["value"])


def interval_or_reason(row: Row) -> str:
    """The interval, or the reason why a value has none; empty if there is no value."""
    return interval()(row) or ("" if row["value"] is None else f"none: {row['null_reason']}")


def _build_agreement(run: Run) -> Report:
    overall = run.table("agreement")
    questions = overall.partition_by("question", as_dict=True, maintain_order=True)
    return build_people_report(
        run,
        tables=("agreement", "annotators", "annotator_pairs", "items", "dissents", "errors"),
        question=f"How well do people agree in {run.manifest['name']}?",
        details="Every text was labelled by several people. Kappa, alpha and rho are 1 for full agreement "
        "and 0 for agreement by chance alone.",
        verdicts=tuple(_agreement_verdict(str(question), rows) for (question,), rows in questions.items()),
        sections=tuple(_list_sections(run, overall)),
        caveats=_AGREEMENT_CAVEATS,
    )


def _agreement_verdict(question: str, rows: pl.DataFrame) -> str:
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


def _build_ratings(run: Run) -> Report:
    table = run.table("methods")
    baseline = table["baseline"][0] if table.height else "the baseline"
    clear = table.filter((pl.col("null_reason") == SAME_DIFFERENCE) | (pl.col("p_adjusted") < ALPHA))
    verdicts = [_rating_verdict(row) for row in clear.iter_rows(named=True)]
    methods = table_section(
        "methods",
        "Every method",
        "Difference: the method minus the baseline, over people who read both; t has one degree of freedom "
        "fewer than their number. p is corrected over all questions and methods (Benjamini and Hochberg).",
        table,
        {
            **{"Question": words("question"), "Method": "method", "#Mean": "mean", "#Interval": interval()},
            "#Difference": lambda row: format_number(row["difference"], signed=True),
            "#Its interval": interval("difference", signed=True),
            "#t": lambda row: format_number(row["t"], signed=True),
            "#p": lambda row: format_value(row["null_reason"]) if row["p"] is None else format_p(row["p"]),
            "#Adjusted p": lambda row: "" if row["p_adjusted"] is None else format_p(row["p_adjusted"]),
            **{"#People": "participants", "#Read both": "paired", "#Ratings": "ratings"},
        },
        source="methods",
        nav="Methods",
        short=(0, 1, 2, 4, 5, 8),
    )
    return build_people_report(
        run,
        tables=("methods",),
        question=f"How do people rate each method in {run.manifest['name']}?",
        details="A person's answers about one method are averaged first; each method is then compared with "
        f"{baseline} over the people who read both (paired t tests, as in Table 6 of the political paper).",
        verdicts=verdicts or ["No difference from the baseline is larger than chance."],
        sections=(methods,),
        caveats=_RATING_CAVEATS,
    )


def _rating_verdict(row: Row) -> str:
    gap = row["difference"]
    method, baseline = (row[key] for key in ("method", "baseline"))
    participants = format_count(row["paired"], "participant")
    size = f"{format_number(abs(gap))} {'higher' if gap > 0 else 'lower'}"
    finding = f"{format_name(row['question'])}: {method} is {size} than {baseline}"
    if row["null_reason"] == SAME_DIFFERENCE:
        return f"{finding} for each of {participants}: no t test is possible."
    ends = interval("difference", signed=True)(row)
    return f"{finding} ({ends}; adjusted p {format_p(row['p_adjusted'])}, {participants})."
