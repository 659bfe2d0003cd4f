"""The reports on human labels: ``annotate agreement``, ``annotate ratings`` and ``validate``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, TypeAlias

import polars as pl
from markupsafe import Markup

from evenhand.report.charts import COLOURS, DASHES, Plot, draw, element
from evenhand.report.document import Page, Report, Section, Show, table_section, words
from evenhand.report.manifest import Fact, list_facts, read_mapping, read_text
from evenhand.report.wording import (
    format_count,
    format_name,
    format_number,
    format_p,
    format_percent,
    format_value,
)
from evenhand.stats.corrections import ALPHA
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
_CAVEATS = {
    "agreement": (
        "Agreement is not truth: people who share a blind spot agree. It bounds how well a metric can be "
        "tested.",
        "Kappa and alpha fall if one label is frequent, even if people rarely differ: read them with the "
        "shares of labels.",
        "Confidence intervals resample texts, not people: they describe other texts with these annotators.",
        "Dawid and Skene's model assumes independent errors given the truth; people who copy each other look "
        "better than they are.",
    ),
    "ratings": (
        "The tests treat participants as the sample: they generalise to other people's answers on these "
        "texts, not to other texts.",
        "A scale from 1 to 7 is ordinal: equal steps need not feel equal. The t test follows the paper.",
        "An inconclusive difference does not prove that there is none.",
    ),
    "validate": (
        "Human labels are taken as correct. If people disagree with each other, no metric can agree with "
        "all: see `evenhand annotate agreement`.",
        "Agreement over all texts says nothing about single groups: it may be lower where it matters most.",
        "The best threshold was fitted on these texts, so its own figures are optimistic. Those in the "
        "held-out row come from texts it was not fitted on; other texts and other people may still give "
        "another.",
        "p-values of rank correlations assume independent clusters; those of several outputs are not "
        "corrected.",
    ),
}
_TABLES = {
    "agreement": ("agreement", "annotators", "annotator_pairs", "items", "dissents", "errors"),
    "ratings": ("methods",),
    "validate": ("validation", "confusion", "score_spreads", "best_cuts", "cut_curves", "exclusions"),
}


def build_report(run: Run) -> Report:
    """Build the content of the report."""
    command = read_text(run.manifest, "identity", "command")
    builders = {"agreement": _build_agreement, "ratings": _build_ratings, "validate": _build_validation}
    content, caveats = builders[command](run), _CAVEATS[command]
    return Report(
        run=run,
        **content,
        caveats=caveats,
        facts=list_facts(run, _own_facts(run)),
        manifest=("command", "name", "identity", "package"),
        tables=_TABLES[command],
        values={
            "verdicts": list(content["verdicts"]),
            "caveats": list(caveats),
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


def _build_agreement(run: Run) -> dict[str, Any]:
    overall = run.table("agreement")
    questions = overall.partition_by("question", as_dict=True, maintain_order=True)
    return {
        "question": f"How well do people agree in {run.manifest['name']}?",
        "details": "Every text was labelled by several people. Kappa, alpha and rho are 1 for full agreement "
        "and 0 for agreement by chance alone.",
        "verdicts": tuple(_agreement_verdict(str(question), rows) for (question,), rows in questions.items()),
        "sections": tuple(_list_sections(run, overall)),
    }


def _agreement_verdict(question: str, rows: pl.DataFrame) -> str:
    statistics = {row["statistic"]: row for row in rows.filter(categories="all").iter_rows(named=True)}
    row = statistics.get("alpha_ordinal") or statistics["alpha_nominal"]
    what = f"{format_name(question)}: Krippendorff's {_STATISTICS[row['statistic']]},"
    if row["value"] is None:
        return f"{what} could not be computed: {row['null_reason']}."
    texts = format_count(row["n_items"], "text")
    return f"{what} is {estimate('value')(row)} over {texts}: {_standing(row)}."


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


def _build_ratings(run: Run) -> dict[str, Any]:
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
    return {
        "question": f"How do people rate each method in {run.manifest['name']}?",
        "details": "A person's answers about one method are averaged first; each method is then compared "
        f"with {baseline} over the people who read both (paired t tests, as in Table 6 of the political "
        "paper).",
        "verdicts": verdicts or ["No difference from the baseline is larger than chance."],
        "sections": (methods,),
    }


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


def _build_validation(run: Run) -> dict[str, Any]:
    metric = read_text(run.manifest, "identity", "metric", "spec") or "the metric"
    table = run.table("validation")
    outputs = table["output"].unique(maintain_order=True).to_list()
    return {
        "question": f"Does {metric} agree with people?",
        "details": "Every text has a human label and one from the metric. Human labels are taken as correct.",
        "verdicts": tuple(_validation_verdict(table, output) for output in outputs),
        "sections": (
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
            *(section for output in outputs for section in _list_output_sections(run, output, outputs)),
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
    }


def _validation_verdict(table: pl.DataFrame, output: str) -> str:
    whole = table.filter((pl.col("output") == output) & (pl.col("label") == _ALL))
    rows = {row["measure"]: row for row in whole.iter_rows(named=True)}
    parts, rho = [_accuracy_words(rows)], rows.get("spearman") or rows.get("spearman_score")
    if rho and rho["value"] is not None:
        parts.append(f"rank correlation {estimate('value')(rho)}")
    answer = "; ".join(filter(None, parts)) or "nothing could be computed"
    return f"{format_name(output)}: {answer}."


def _accuracy_words(rows: Mapping[str, Row]) -> str:
    accuracy = rows.get("accuracy")
    if not accuracy or accuracy["value"] is None:
        return ""
    text = f"the same label in {format_percent(accuracy['value'])} of {format_count(accuracy['n'], 'text')}"
    if accuracy["low"] is not None:
        text += f" ({format_percent(accuracy['low'])} to {format_percent(accuracy['high'])})"
        least = rows["always_commonest"]["value"]
        if accuracy["low"] <= least:
            text += f", not clearly more than always giving the most frequent label ({format_percent(least)})"
    return text


def _list_output_sections(run: Run, output: str, outputs: Sequence[str]) -> Iterator[Section]:
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
