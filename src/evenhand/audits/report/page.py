"""What the report of an audit or of scored texts says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import polars as pl

from evenhand.audits.report import side_tables
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
from evenhand.report.html import pack_json
from evenhand.report.json_tables import BAR_KEY, GAP_KEY, null_non_finite, to_columns
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
from evenhand.store.table_files import text_size

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
Reads = dict[str, list[str]]
"""For each text the strings that metrics read of it."""
Entries = dict[tuple[float, ...], int]
"""Each length with its weights once, and its number: the same word turns up in many texts."""
LONGEST = 800
"""Characters of a text the page shows; the run folder keeps the whole."""
_PER_BAR = (40, 30, 20, 12, 8, 4, 2)
_NOTICE = (
    "These texts were written by a model, or taken from your file, and some may be offensive or "
    "distressing. They are shown so that a number can be checked against what was written"
)
_SIGNS: Mapping[GapStanding, str] = {"supported": "*", "unclear": "?", "small": "~", "missing": "-"}
_MEANINGS = {standing: DEFINITIONS[word] for standing, word in STANDING_WORDS.items()}


def build_report(run: Run) -> doc.Report:
    """The content of the report."""
    findings, (question, details) = find_gaps(run), describe_question(run)
    strata, warnings = side_tables.build_strata(run, findings)
    distances, leans = side_tables.build_distances(run)
    doubts = [f"{gap.doubt}." for gap in findings.inconclusive]
    caveats = list_caveats(run, findings)
    tally = doc.count_verdicts(
        [gap.standing for gap in findings.judged_gaps], words=STANDING_WORDS, meanings=_MEANINGS
    )
    cards = list(map(_card, findings.confirmed_gaps[:3]))
    rest = findings.verdict.removeprefix(findings.headline).lstrip(":; ")
    return doc.Report(
        run=run,
        question=question,
        details=details,
        verdicts=[findings.verdict],
        headline=findings.headline,
        opening=(
            doc.Text(leans, "", "terminal"),
            doc.Cards(cards, "Largest gaps"),
            doc.Text("" if cards else rest[:1].upper() + rest[1:], "seen", "html"),
            doc.Tally(tally if findings.judged_gaps else (), can_filter=True),
            doc.Bullets(items=warnings, title="Contradicted inside strata"),
            doc.Bullets(items=doubts, title=INCONCLUSIVE.capitalize()),
            *_summarise(findings),
        ),
        sections=(
            _omnibus(run, findings),
            side_tables.build_overview(run, findings),
            *_explore(run, findings),
            distances,
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
    keys = ("title", "kind", "label", "cut", "texts", "beyond")
    for (metric, output), measure in findings.measures.items():
        measures.setdefault(metric, {})[output] = {key: getattr(measure, key) for key in keys}
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
    form = {"id": "filters", "label": "Filter charts and comparisons", "selects": selects}
    kinds = {"has_exploratory": bool(findings.exploratory and findings.primary)}
    yield doc.Section("filters", "", (doc.Template("filters.html.j2", form | kinds),), group="explore")
    if figures:
        yield doc.Section("charts", "Charts", _charts(findings, figures, undrawn), "Charts", "explore")
    if findings.gaps:
        yield _comparisons(run, findings)
    yield doc.Section("downloads", "", (doc.Template("downloads.html.j2"),), group="explore")


def _charts(findings: Findings, figures: list[ChartFigure], undrawn: int) -> tuple[doc.Block, ...]:
    # Figures with a finding first: of dozens, they are what a reader came for.
    shown = [figure for figure in figures if figure.has_values]
    shown.sort(key=lambda figure: not any(panel.supported_count for panel in figure.panels))
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
        "“min. detectable” is the smallest true gap that these texts would have shown, after correction, "
        "with 80 % power."
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


def pack_word_weights(explanations: pl.DataFrame, *, longest: int) -> tuple[dict[str, Any], Reads]:
    """For each metric its outputs, entries and spans per text; for each text the strings metrics read.

    A text is ``[number of the string, start, entry, start, entry ..]``, an entry the length of a word and its
    weight for each output. Places count as a browser counts, in UTF-16 units. The entry of a mask is -1 less
    its length.
    """
    reads: Reads = {}
    metrics: dict[str, Any] = {}
    for (metric,), part in explanations.group_by("metric", maintain_order=True):
        outputs = part["output"].unique(maintain_order=True).to_list()
        entries: Entries = {}
        rows: dict[str, list[dict[str, Any]]] = {}
        for row in part.iter_rows(named=True):
            rows.setdefault(row["text_id"], []).append(row)
        texts = {
            text_id: _text(own, outputs, entries, reads.setdefault(text_id, []), longest)
            for text_id, own in rows.items()
        }
        numbered: list[Json] = [[*key] for key in entries]
        metrics[str(metric)] = {"outputs": outputs, "entries": numbered, "texts": dict(texts)}
    return metrics, reads


def _text(
    rows: Sequence[Mapping[str, Any]],
    outputs: Sequence[str],
    entries: Entries,
    reads: list[str],
    longest: int,
) -> list[Json]:
    read = show_control_characters(rows[0]["read"])[:longest]
    if read not in reads:
        reads.append(read)
    weights: dict[tuple[int, int], list[float]] = {}
    for row in rows:
        for span in row["words"] or ():
            known = weights.setdefault((span["start"], span["end"]), [0.0] * len(outputs))
            known[outputs.index(row["output"])] = float(f"{span['weight']:.3g}")
    # For each character the place a browser counts it at, and the end.
    places = [*accumulate((2 if ord(letter) > 0xFFFF else 1 for letter in read), initial=0)]
    spans: list[tuple[int, int, list[float] | None]] = [(*place, values) for place, values in weights.items()]
    spans += [(span["start"], span["end"], None) for span in rows[0]["masks"] or ()]
    flat: list[Json] = [reads.index(read)]
    for start, end, values in sorted(spans, key=lambda span: span[:2]):
        if end <= len(read):
            length = places[end] - places[start]
            entry = -1 - length if values is None else entries.setdefault((length, *values), len(entries))
            flat += [places[start], entry]
    return flat


def embed_texts(run: Run, budget: int) -> tuple[dict[str, Json], str]:
    """The examples of a run in at most ``budget`` packed bytes, the same number for every bar.

    Where they do not fit, every bar keeps fewer, lowest, highest and drawn ones in turn.
    """
    # Rows numbered in each bar so that a prefix holds each kind of example alike.
    turn = pl.int_range(pl.len()).over(*BAR_KEY, "why")
    kind = pl.col("why").replace_strict({"lowest": 0, "highest": 1}, default=2, return_dtype=pl.Int64)
    ordered = null_non_finite(run.table("examples")).with_columns(turn=turn, kind=kind)
    ranked = ordered.sort("turn", "kind", maintain_order=True).with_columns(
        rank=pl.int_range(pl.len()).over(*BAR_KEY)
    )
    table = ranked.sort("kind", "turn", maintain_order=True).drop("turn", "kind")
    words = run.table("explanations")
    for per_bar in _PER_BAR:
        kept = table.filter(pl.col("rank") < per_bar)
        shown = kept.select(pl.col("prompt", "text").str.slice(0, LONGEST)).unique()
        # Packed six to one, which spares making what cannot fit.
        if sum(text_size(column) for column in shown.iter_columns()) // 6 > budget:
            continue
        data = _embed_table(kept, words)
        if len(pack_json(data)) <= budget:
            break
    else:
        per_bar, kept = 0, table.clear()
        data = _embed_table(kept, words.clear())
    more = f"{table.height - kept.height:,} more are in examples.parquet"
    note = f"This page holds at most {per_bar} texts per group and measure; {more}."
    return data, note if kept.height < table.height else ""


def _embed_table(table: pl.DataFrame, explanations: pl.DataFrame) -> dict[str, Json]:
    wanted = table.select("metric", "output", "text_id").unique()
    kept = explanations.join(wanted, on=["metric", "output", "text_id"], how="semi", maintain_order="left")
    words, reads = pack_word_weights(kept, longest=LONGEST)
    places: dict[tuple[str, str, str], int] = {}
    bars: dict[tuple[str, ...], list[Json]] = {}
    for row in table.iter_rows(named=True):
        prompt, text = (
            show_control_characters(shown if len(shown) <= LONGEST else shown[:LONGEST] + " …")
            for shown in (row["prompt"] or "", row["text"] or "")
        )
        key = (row["text_id"] or "", prompt, text)
        place = places.setdefault(key, len(places))
        bar = bars.setdefault(tuple(row[column] for column in BAR_KEY), [])
        bar.append([place, row["why"], row["value"], row["label"]])
    return {
        # What a metric read follows the text it was made of: the two pack into little more than one.
        "texts": [[prompt, text, *reads.get(text_id, [])] for text_id, prompt, text in places],
        "bars": [[*key, examples] for key, examples in bars.items()],
        # The spans of each text by its number on the page.
        "words": {
            metric: {
                **known,
                "texts": {
                    str(place): known["texts"][text_id]
                    for (text_id, _, _), place in places.items()
                    if text_id in known["texts"]
                },
            }
            for metric, known in words.items()
        },
    }
