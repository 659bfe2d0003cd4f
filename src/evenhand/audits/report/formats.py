"""``report.html`` of an audit or of scored texts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from markupsafe import Markup
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evenhand.audits.report.distance_tables import describe_distances
from evenhand.audits.report.embedded_texts import EmbeddedTexts, embed_texts
from evenhand.audits.report.findings import Findings, find_gaps, list_caveats
from evenhand.audits.report.gap_wording import STANDING_WORDS, Gap, GapStanding
from evenhand.audits.report.page import AuditPage, build_page
from evenhand.audits.report.stratum_gaps import MOST
from evenhand.core.digests import Json
from evenhand.report.document import SIZE_LIMIT, embed_json, pack_json, pack_tables, render_document
from evenhand.report.json_tables import GAP_KEY, to_columns, to_rows
from evenhand.report.manifest import read_mapping, read_text
from evenhand.report.report_formats import ReportFormats
from evenhand.report.wording import (
    bullet_list,
    escape_markdown,
    format_name,
    format_p,
    markdown_table,
    replace_minus,
    show_control_characters,
)
from evenhand.store.run import Run
from evenhand.store.schemas import SCHEMAS

_FOLDER = Path(__file__).parent
_SCRIPTS = ("data.js", "packed.js", "tabs.js", "explore.js", "views.js", "cuts.js", "texts.js", "download.js")
_WITH_TEXTS = ("prompts", "generations", "scores", "examples", "explanations")
_FIRST = ("comparisons", "groups", "omnibus", "exclusions", "cuts")
_TABLES = (*_FIRST, *(name for name in SCHEMAS if name not in (*_WITH_TEXTS, *_FIRST)))


def html_report(run: Run) -> str:
    """The report of a run as one HTML page."""
    content = build_page(run)
    carried = _pack_data(run, content.findings)
    budget = SIZE_LIMIT - len(_render_page(content, carried, _NO_TEXTS).encode("utf-8", "replace"))
    return _render_page(content, carried, embed_texts(run, budget=budget))


_NO_TEXTS = EmbeddedTexts({}, per_bar=0, left_out=0)


@dataclass(frozen=True, slots=True)
class _PageData:
    """What the page carries beside what it shows."""

    data: Markup
    """The keys of rows that are clicked, read at once."""
    tables: Markup
    """Whole tables, packed, unpacked after the page is there."""
    names: tuple[str, ...]
    """The tables that can be downloaded."""


def _pack_data(run: Run, found: Findings) -> _PageData:
    tables = {name: run.table(name) for name in _TABLES}
    keys: dict[str, Json] = {
        name: to_columns(tables[name].select([key for key in GAP_KEY if key in tables[name].columns]))
        for name in ("groups", "comparisons")
    }
    cards = read_mapping(run.manifest, "metrics")
    words = {spec: show_control_characters(read_text(cards, spec, "word_scores")) for spec in cards}
    whole, names = pack_tables(tables)
    explained: Json = {spec: said for spec, said in words.items() if said}
    return _PageData(
        data=embed_json({**keys, "explained": explained, "measures": _measures(found)}),
        tables=whole,
        names=(*names, "texts"),
    )


def _measures(found: Findings) -> dict[str, Json]:
    """What the drawer of texts has to know of a measure."""
    known: dict[str, dict[str, Json]] = {}
    for (metric, output), measure in found.measures.items():
        known.setdefault(metric, {})[output] = {
            "title": measure.title,
            "kind": measure.kind,
            "label": measure.label,
            "cut": measure.cut,
            "texts": measure.texts,
            "beyond": list(measure.beyond),
        }
    return dict(known)


def _render_page(content: AuditPage, carried: _PageData, shown: EmbeddedTexts) -> str:
    return render_document(
        _FOLDER / "templates" / "report.html.j2",
        style=(_FOLDER / "audit.css").read_text(encoding="utf-8"),
        scripts=_SCRIPTS,
        data=carried.data,
        page=content,
        texts=shown,
        words=STANDING_WORDS,
        tables=carried.tables,
        downloads=carried.names,
        most=MOST,
        examples=Markup(pack_json(shown.data)),
    )


FORMAT = 1
_MANIFEST = (
    "package",
    "command",
    "name",
    "created",
    "ended",
    "identity",
    "growth",
    "execution",
    "hardware",
    "metrics",
    "suites",
    "stages",
    "warnings",
)
_TABLES_json = (
    *("groups", "comparisons", "omnibus", "pairs", "strata", "cuts", "distributions", "distances"),
    "exclusions",
)


def json_report(run: Run) -> str:
    """The report of a run as JSON text."""
    found = find_gaps(run)
    return run_json(
        run,
        manifest=_MANIFEST,
        tables=_TABLES_json,
        verdict=found.verdict,
        counts=_counts(found),
        findings=[_finding(gap, gap.sentence) for gap in found.largest],
        cannot_tell=[_finding(gap, gap.doubt) for gap in found.inconclusive],
        caveats=list_caveats(run, found),
    )


def run_json(run: Run, *, manifest: Sequence[str], tables: Sequence[str], **said: Json) -> str:
    """What a report says, then these keys of the manifest and these tables, as JSON text."""
    content: dict[str, Json] = {
        "format": FORMAT,
        **said,
        "manifest": {key: run.manifest.get(key) for key in manifest},
        **{name: to_rows(run.table(name)) for name in tables},
    }
    return json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _counts(found: Findings) -> dict[str, Json]:
    counted: dict[str, Json] = {name: len(found.standing(name)) for name in STANDING_WORDS}
    return {"comparisons": len(found.primary), "exploratory": len(found.exploratory)} | counted


def _finding(gap: Gap, sentence: str) -> dict[str, Json]:
    row = gap.comparison
    return {
        "sentence": sentence,
        "suite": row.suite,
        "model": row.model,
        "axis": row.axis,
        "group": row.group,
        "baseline": row.baseline,
        "metric": row.metric,
        "output": row.output,
        "estimate": row.estimate,
        "low": row.low,
        "high": row.high,
        "p_adjusted": row.p_adjusted,
        "n": row.n,
        "n_clusters": row.n_clusters,
        "min_detectable": row.min_detectable,
    }


_SHOWN = 50
"""Rows of the comparison table; a pull request comment has a size limit."""
_HEAD = (
    "group",
    "baseline",
    "measure",
    "gap",
    "interval",
    "adjusted p",
    "texts",
    "clusters",
    "seen from",
    "so",
)


def markdown_report(run: Run) -> str:
    """The report of a run as Markdown text."""
    content = build_page(run)
    parts = [
        f"# {escape_markdown(content.question.question)}",
        escape_markdown(content.question.details),
        f"**{escape_markdown(content.findings.verdict)}**",
        *_section("Largest gaps", bullet_list(gap.sentence for gap in content.findings.confirmed_gaps[:3])),
        *_section(
            "What could not be told", bullet_list(gap.doubt for gap in content.findings.inconclusive[:3])
        ),
        *_section("Do the groups of an axis differ at all?", _omnibus(run, content)),
        *_section("Comparisons", _comparisons(content)),
        *_section("Distances", _distances(content)),
        *_section("Left out", _exclusions(content)),
        *_section("What this run cannot tell", bullet_list(content.caveats)),
        *_section("Where the numbers come from", _facts(content)),
    ]
    return "\n\n".join(parts) + "\n"


def _section(title: str, body: str) -> list[str]:
    return [f"## {title}", body] if body else []


def _comparisons(content: AuditPage) -> str:
    order = [gap for standing in STANDING_WORDS for gap in content.findings.standing(standing)]
    lines = markdown_table(_HEAD, [_comparison(gap) for gap in order[:_SHOWN]])
    left = len(content.gaps) - min(len(order), _SHOWN)
    more = f"\n\n{left:,} more comparisons are in `comparisons.parquet`." if left else ""
    family = f"Adjusted p: corrected over a family of {content.findings.families}."
    return f"{family}\n\n{lines}{more}" if order else ""


def _omnibus(run: Run, content: AuditPage) -> str:
    """One line an axis and primary output."""
    table = run.table("omnibus").filter(~pl.col("exploratory")).sort("p_adjusted", nulls_last=True)
    found = [
        (
            format_name(row["axis"]),
            content.findings.measures[row["metric"], row["output"]].full_title,
            format_p(row["p_adjusted"]) if row["p"] is not None else (row["null_reason"] or ""),
            f"{row['n_groups']:,}",
            f"{row['n_clusters']:,}",
        )
        for row in table.head(_SHOWN).iter_rows(named=True)
        if (row["metric"], row["output"]) in content.findings.measures
    ]
    return markdown_table(("axis", "measure", "adjusted p", "groups", "clusters"), found) if found else ""


def _comparison(gap: Gap) -> tuple[str, ...]:
    row, form = gap.comparison, gap.measure.signed_gap
    unit = gap.measure.unit
    return (
        gap.group,
        gap.short_baseline,
        gap.measure.full_title,
        "" if row.estimate is None else form(row.estimate) + unit,
        "" if row.low is None or row.high is None else f"{form(row.low)} to {form(row.high)}",
        gap.p,
        f"{row.n:,}",
        f"{row.n_clusters:,}",
        "" if row.min_detectable is None else gap.measure.gap(row.min_detectable) + unit,
        STANDING_WORDS[gap.standing],
    )


def _distances(content: AuditPage) -> str:
    tables = [
        f"### {escape_markdown(table.title)}\n\n"
        f"{markdown_table(table.head, [line.cells for line in table.lines])}"
        for table in content.distances.tables
    ]
    return "\n\n".join([escape_markdown(content.distances.explanation), *tables]) if tables else ""


def _exclusions(content: AuditPage) -> str:
    rows = [
        (row.stage, row.metric, row.reason, f"{row.count:,} of {row.of:,} ({row.share})")
        for row in content.exclusions
    ]
    return markdown_table(("stage", "metric", "reason", "texts"), rows) if rows else "Nothing was left out."


def _facts(content: AuditPage) -> str:
    return markdown_table(("what", "value"), [(fact.name, fact.value) for fact in content.facts])


_SIGNS: Mapping[GapStanding, str] = {"supported": "*", "unclear": "?", "small": "~", "missing": "-"}


def summarise_run(run: Run, *, limit: int = 8) -> RenderableType:
    """The verdict and the largest gaps: supported ones first, then the largest of the others.

    Names go in as plain text, so that none can be taken for markup; no meaning hangs on a colour.
    """
    found = find_gaps(run)
    shown = _select_gaps(found, limit)
    parts: list[RenderableType] = [Text(replace_minus(found.verdict), style="bold")]
    if leans := describe_distances(run):
        parts += [Text(replace_minus(leans))]
    if shown:
        parts += [Text(""), _table(shown), Text(_legend(shown, found), style="dim")]
    return Group(*parts)


def _select_gaps(found: Findings, limit: int) -> list[Gap]:
    order = (*found.largest, *found.standing("unclear"), *found.standing("small"))
    return list(order[:limit])


def _table(gaps: list[Gap]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column("", no_wrap=True)
    table.add_column("Group against baseline", ratio=3, overflow="fold")
    table.add_column("Measure", ratio=2, overflow="fold")
    table.add_column("Gap", justify="right", no_wrap=True)
    table.add_column(f"{gaps[0].level} interval", justify="right", no_wrap=True)
    table.add_column("Adj. p", justify="right", no_wrap=True)
    for gap in gaps:
        table.add_row(*(Text(replace_minus(cell)) for cell in _cells(gap)))
    return table


def _cells(gap: Gap) -> tuple[str, ...]:
    row = gap.comparison
    return (
        _SIGNS[gap.standing],
        # The axis is not repeated in a narrow column: the reserved baselines stay as they are spelled.
        f"{gap.group} vs {format_name(gap.baseline_group)}",
        gap.measure.full_title,
        "" if row.estimate is None else gap.measure.signed_gap(row.estimate),
        gap.signed_interval,
        gap.p,
    )


def _legend(shown: list[Gap], found: Findings) -> str:
    used = [
        f"{_SIGNS[standing]} {word}" for standing, word in STANDING_WORDS.items() if _stands(shown, standing)
    ]
    shares = ["shares in points"] if any(gap.measure.kind == "share" for gap in shown) else []
    size = max(gap.comparison.family_size for gap in shown)
    shares.append(f"p adjusted over {size:,}, intervals before correction")
    left = len(found.judged_gaps) - len(shown)
    more = [f"{left:,} more in the report"] if left else []
    return "; ".join([*used, *shares, *more])


def _stands(gaps: list[Gap], standing: GapStanding) -> bool:
    return any(gap.standing == standing for gap in gaps)


FORMATS = ReportFormats(html_report, json_report, markdown_report, summarise_run)
