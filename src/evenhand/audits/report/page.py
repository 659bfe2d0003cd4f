"""What the report of an audit or of scored texts says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import polars as pl

from evenhand.audits.report import side_tables
from evenhand.audits.report.embedded_texts import embed_texts
from evenhand.audits.report.figures import ChartFigure, build_figures
from evenhand.audits.report.findings import (
    CORRECTIONS,
    STANDING_WORDS,
    Findings,
    Gap,
    GapStanding,
    find_gaps,
    list_caveats,
)
from evenhand.audits.report.provenance import build_cards, describe_question, list_run_facts
from evenhand.core.digests import Json
from evenhand.report import document as doc
from evenhand.report.charts import draw_estimate, draw_interval, draw_sample
from evenhand.report.json_tables import BAR_KEY, GAP_KEY, to_columns
from evenhand.report.manifest import format_level, read_mapping, read_text
from evenhand.report.verdicts import DEFINITIONS, INCONCLUSIVE, LARGER
from evenhand.report.wording import (
    format_name,
    format_number,
    format_p,
    format_percent,
    show_control_characters,
)
from evenhand.store.run import Run
from evenhand.store.schemas import SCHEMAS

MOST_ROWS = 3000
"""Rows of the charts, and of the comparisons table: what a browser lays out in about a second."""
_SCRIPTS = ("data.js", "packed.js", "tabs.js", "explore.js", "views.js", "cuts.js", "texts.js", "download.js")
_WITH_TEXTS = ("prompts", "generations", "scores", "examples", "explanations")
_FIRST = ("comparisons", "groups", "omnibus", "exclusions", "cuts")
_DOWNLOADS = (*_FIRST, *(name for name in SCHEMAS if name not in (*_WITH_TEXTS, *_FIRST)))
_MANIFEST = (
    *("package", "command", "name", "created", "ended", "identity", "growth", "execution", "hardware"),
    *("metrics", "suites", "stages", "warnings"),
)
_TABLES = (
    *("groups", "comparisons", "omnibus", "pairs", "strata", "cuts", "distributions", "distances"),
    "exclusions",
)
_NOTICE = (
    "These texts were written by a model, or taken from your file, and some may be offensive or "
    "distressing. They are shown so that a number can be checked against what was written"
)
_SIGNS: Mapping[GapStanding, str] = {"supported": "*", "unclear": "?", "small": "~", "missing": "-"}
_MEANINGS: Mapping[GapStanding, str] = {
    standing: DEFINITIONS[word] for standing, word in STANDING_WORDS.items()
}


def build_report(run: Run) -> doc.Report:
    """The content of the report."""
    findings, (question, details) = find_gaps(run), describe_question(run)
    strata, warnings = side_tables.build_strata(run, findings)
    doubts = [f"{gap.doubt}." for gap in findings.inconclusive]
    caveats = list_caveats(run, findings)
    tally = doc.count_verdicts(
        [gap.standing for gap in findings.judged_gaps], words=STANDING_WORDS, meanings=_MEANINGS
    )
    cards = list(map(_card, findings.confirmed_gaps[:3]))
    return doc.Report(
        run=run,
        question=question,
        details=details,
        verdicts=[findings.verdict],
        headline=findings.headline,
        opening=(
            doc.Text(side_tables.describe_distances(run), "", "terminal"),
            doc.Cards(cards, "Largest gaps"),
            doc.Text("" if cards else findings.details, "seen", "html"),
            doc.Tally(tally if findings.judged_gaps else (), can_filter=True),
            doc.Bullets(items=warnings, title="Contradicted inside strata"),
            doc.Bullets(items=doubts, title=INCONCLUSIVE.capitalize()),
            *_summarise(findings),
        ),
        sections=(
            _omnibus(run, findings),
            side_tables.build_overview(run, findings),
            *_explore(run, findings),
            side_tables.build_distances(run),
            strata,
            side_tables.build_pairs(run, findings),
            _exclusions(run),
        ),
        caveats=caveats,
        facts=list_run_facts(run),
        closing=(build_cards(run.manifest),),
        manifest=_MANIFEST,
        tables=_TABLES,
        values={
            "verdict": findings.verdict,
            "counts": {
                **{"comparisons": len(findings.primary), "exploratory": len(findings.exploratory)},
                **{standing: len(findings.by_standing[standing]) for standing in STANDING_WORDS},
            },
            "findings": [
                _finding(gap, f"{gap.claim} ({gap.evidence})") for gap in findings.by_standing["supported"]
            ],
            "cannot_tell": [_finding(gap, gap.doubt) for gap in findings.inconclusive],
            "caveats": caveats,
        },
        page=doc.Page(
            folder=Path(__file__).parent / "templates",
            style="audit.css",
            scripts=_SCRIPTS,
            data=_page_data(run, findings),
            downloads=_DOWNLOADS,
            drawer=(_NOTICE, "texts"),
            embed=partial(embed_texts, run),
        ),
    )


def _page_data(run: Run, findings: Findings) -> dict[str, Json]:
    """The keys of rows that are clicked, and what the drawer of texts has to know of each measure."""
    cards = read_mapping(run.manifest, "metrics")
    words = {spec: show_control_characters(read_text(cards, spec, "word_scores")) for spec in cards}
    measures: dict[str, dict[str, Json]] = {}
    for (metric, output), measure in findings.measures.items():
        shown: dict[str, Json] = {
            key: getattr(measure, key) for key in ("title", "kind", "label", "cut", "texts")
        }
        measures.setdefault(metric, {})[output] = shown | {"beyond": list(measure.beyond)}
    return {
        "groups": to_columns(run.table("groups").select(BAR_KEY)),
        "comparisons": to_columns(run.table("comparisons").select(GAP_KEY)),
        "explained": {spec: line for spec, line in words.items() if line},
        "measures": dict(measures),
    }


def _finding(gap: Gap, sentence: str) -> dict[str, Json]:
    columns = (
        *("suite", "model", "axis", "group", "baseline", "metric", "output", "estimate", "low", "high"),
        *("p_adjusted", "n", "n_clusters", "min_detectable"),
    )
    return {"sentence": sentence} | {column: getattr(gap.comparison, column) for column in columns}


def _card(gap: Gap) -> doc.Card:
    row, measure = gap.comparison, gap.measure
    estimate = row.estimate or 0.0
    low, high = (estimate if end is None else end for end in (row.low, row.high))
    return doc.Card(
        size=measure.gap(abs(estimate)),
        unit=measure.scale,
        claim=gap.statement,
        evidence=gap.evidence,
        direction=gap.direction,
        arrow=gap.direction,
        chart=draw_estimate(estimate, low, high),
        button={"texts": str(gap.index), "name": gap.group},
    )


def _summarise(findings: Findings, *, limit: int = 8) -> Iterator[doc.Table | doc.Text]:
    """The largest gaps on the terminal: supported ones first, then the largest of the others."""
    shown: tuple[GapStanding, ...] = ("supported", "unclear", "small")
    gaps = [gap for standing in shown for gap in findings.by_standing[standing]][:limit]
    if not gaps:
        return
    columns: dict[doc.Column | str, Callable[[Gap], str]] = {
        "": lambda gap: _SIGNS[gap.standing],
        # The reserved baselines stay as they are spelled: the column is too narrow for the axis.
        "Group against baseline": lambda gap: f"{gap.group} vs {format_name(gap.baseline_group)}",
        "Measure": lambda gap: gap.measure.full_title,
        "#Gap": lambda gap: gap.measure.gap(gap.comparison.estimate, signed=True),
        f"#{gaps[0].level} interval": lambda gap: gap.signed_interval,
        "#Adj. p": lambda gap: gap.p,
    }
    yield doc.build_table(gaps, columns, formats="terminal")
    standings = {gap.standing for gap in gaps}
    legend = [
        f"{_SIGNS[standing]} {word}" for standing, word in STANDING_WORDS.items() if standing in standings
    ]
    legend += ["shares in points"] if any(gap.measure.kind == "share" for gap in gaps) else []
    size = max(gap.comparison.family_size for gap in gaps)
    legend.append(f"p adjusted over {size:,}, intervals before correction")
    left = len(findings.judged_gaps) - len(gaps)
    legend += [f"{left:,} more in the report"] if left else []
    yield doc.Text("; ".join(legend), "note", "terminal")


def _omnibus(run: Run, findings: Findings) -> doc.Section:
    """One line per axis and primary output, in Markdown; the page shows them in the overview."""
    table = run.table("omnibus").filter(~pl.col("exploratory")).sort("p_adjusted", nulls_last=True)
    columns: dict[doc.Column | str, doc.Show] = {
        "Axis": lambda row: format_name(row["axis"]),
        "Measure": lambda row: findings.measure(row).full_title,
        "#Adjusted p": lambda row: (
            (row["null_reason"] or "") if row["p"] is None else format_p(row["p_adjusted"])
        ),
        **{"#Groups": "n_groups", "#Clusters": "n_clusters"},
    }
    rows = [row for row in table.to_dicts() if (row["metric"], row["output"]) in findings.measures]
    answers = doc.build_table(rows, columns, source="omnibus", formats="md")
    return doc.Section("omnibus", "Do the groups of an axis differ at all?", (answers,))


def _explore(run: Run, findings: Findings) -> Iterator[doc.Section]:
    """Charts and comparisons, with the form that filters both."""
    figures, undrawn = build_figures(run, findings, most_rows=MOST_ROWS)
    shown = [figure for figure in figures if figure.has_values]
    if not figures and not findings.gaps:
        return
    selects = (
        ("Axis", "axis", doc.list_choices(figure.axis for figure in shown)),
        ("Metric", "metric", doc.list_choices(figure.metric for figure in shown)),
        ("Show", "standing", [("", "every gap"), *STANDING_WORDS.items()]),
    )
    form = {
        **{"id": "filters", "label": "Filter charts and comparisons", "selects": selects},
        "has_exploratory": bool(findings.exploratory and findings.primary),
    }
    yield doc.Section("filters", "", (doc.Template("filters.html.j2", form),), group="explore")
    if figures:
        yield doc.Section("charts", "Charts", _charts(findings, figures, undrawn), "Charts", "explore")
    if findings.gaps:
        yield _comparisons(run, findings)
    yield doc.Section("downloads", "", (doc.Template("downloads.html.j2"),), group="explore")


def _charts(
    findings: Findings, figures: list[ChartFigure], undrawn: int
) -> tuple[doc.Legend | doc.Template | doc.Text, ...]:
    # Figures with a finding first: of dozens, they are what a reader came for.
    shown = sorted(
        (figure for figure in figures if figure.has_values), key=lambda each: not each.supported_count
    )
    valueless = "; ".join(figure.title for figure in figures if not figure.has_values)
    legend = (
        (draw_sample("supported higher"), f"higher than the baseline: {LARGER}"),
        (draw_sample("supported lower"), f"lower: {LARGER}"),
        (draw_sample("unclear"), INCONCLUSIVE),
        (draw_interval(None, None, reference=50, style="sample"), "value of the baseline"),
    )
    content = {
        "figures": shown,
        "has_many_suites": len({figure.suite for figure in figures}) > 1,
        "has_many_models": len({figure.model for figure in figures}) > 1,
        "has_gaps": bool(findings.gaps),
    }
    missing = f"Not drawn, because none of their texts has a value: {valueless}. “Left out” says why."
    more = f"{undrawn:,} more estimates are not on this page; they are in report.json and groups.parquet."
    return (
        doc.Legend(legend if findings.gaps else (), "How to read the charts"),
        doc.Template("figures.html.j2", content),
        doc.Text(missing if valueless else "", "note", "html"),
        doc.Text(more if undrawn else "", "note", "html"),
    )


def _comparisons(run: Run, findings: Findings) -> doc.Section:
    doubted = (
        " “Check disagrees”: permuting groups between clusters gives such a gap by chance more often than "
        "its adjusted p allows; treat it with caution."
    )
    others = ", exploratory ones in their own families" if findings.exploratory and findings.primary else ""
    rows = [gap.comparison for gap in findings.judged_gaps]
    families = ", ".join(
        f"{size:,} comparisons ({CORRECTIONS.get(how, how)})"
        for size, how in dict.fromkeys((row.family_size, row.correction) for row in rows)
    )
    lede = (
        f"Gap = group minus baseline. Adjusted p: corrected over a family of {families}{others}; "
        "“min. detectable” is the smallest gap that these texts would have shown with 80 % power."
    )
    columns: dict[doc.Column | str, Callable[[Gap], doc.AnyCell]] = {
        "Group": lambda gap: doc.Cell(gap.group, note=f"against {gap.baseline}", button={"class": "name"}),
        "Measure": lambda gap: doc.Cell(
            gap.measure.full_title, tags=("exploratory",) * gap.comparison.exploratory
        ),
        doc.Column("Gap", "num", name="gap"): lambda gap: gap.measure.cell(
            gap.comparison.estimate, arrow=gap.arrow
        ),
        doc.interval_column(format_level(run)): lambda gap: gap.signed_interval,
        "#Adjusted p": lambda gap: gap.p,
        doc.Column("Verdict", "verdict"): lambda gap: doc.Cell(
            STANDING_WORDS[gap.standing]
            + (f": {format_name(gap.comparison.null_reason)}" if gap.comparison.null_reason else ""),
            tags=("check disagrees",) * gap.is_doubted,
        ),
        "#Min. detectable": lambda gap: gap.measure.cell(gap.comparison.min_detectable, signed=False),
        "#Effect size": lambda gap: format_number(gap.comparison.effect_size, signed=True),
        doc.Column("Texts", "num", "/ baseline"): lambda gap: doc.Cell(
            f"{gap.comparison.n:,}",
            note=f"/ {gap.comparison.n_baseline:,}",
            detail=f"null: {gap.nulls}" if gap.nulls else "",
        ),
        "#Clusters": lambda gap: f"{gap.comparison.n_clusters:,}",
    }
    table = doc.build_table(
        findings.gaps,
        columns,
        tone=lambda gap: f"{gap.standing} {gap.direction}".strip(),
        data=lambda gap: {"c": str(gap.index)} | ({"exploratory": ""} if gap.comparison.exploratory else {}),
        source="comparisons",
        style="comparisons",
        frame="wide stacks",
        shown=MOST_ROWS,
        formats="html md",
    )
    text = doc.Text(lede + (doubted if any(gap.is_doubted for gap in findings.gaps) else ""))
    empty = doc.Template("no_match.html.j2", ("no-comparisons", "No comparison matches the filter."))
    return doc.Section("comparisons", "Comparisons", (text, table, empty), "Comparisons", "explore")


def _exclusions(run: Run) -> doc.Section:
    columns: dict[doc.Column | str, doc.Show] = {
        "Reason": lambda row: format_name(row["reason"] or "not given"),
        "Stage": lambda row: format_name(row["stage"] or "not given"),
        "Metric": lambda row: format_name(row["metric"]) if row["metric"] else "every one",
        "#Texts": lambda row: f"{row['count'] or 0:,}",
        "#Of": lambda row: f"{row['of'] or 0:,}",
        "#Share": lambda row: format_percent((row["count"] or 0) / row["of"]) if row["of"] else "",
    }
    rows = run.table("exclusions").to_dicts()
    table = doc.build_table(rows, columns, source="exclusions", style="plain", frame="", formats="html md")
    nothing = doc.Text("" if rows else "The run records nothing that was left out.", "")
    return doc.Section("left-out", "Left out", (table, nothing))
