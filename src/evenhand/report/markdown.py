"""``report.md``: the report for a pull request or a wiki, without the texts."""

from __future__ import annotations

import polars as pl

from evenhand.report.gaps import WORDS, Gap
from evenhand.report.markdown_text import bullets, escaped, grid
from evenhand.report.page import Page, page
from evenhand.report.wording import name, probability
from evenhand.store.run import Run

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
    content = page(run)
    parts = [
        f"# {escaped(content.asked.question)}",
        escaped(content.asked.details),
        f"**{escaped(content.found.verdict)}**",
        *_section("Largest gaps", bullets(gap.sentence for gap in content.found.best[:3])),
        *_section("What could not be told", bullets(gap.doubt for gap in content.found.cannot_tell[:3])),
        *_section("Do the groups of an axis differ at all?", _omnibus(run, content)),
        *_section("Comparisons", _comparisons(content)),
        *_section("Distances", _distances(content)),
        *_section("Left out", _exclusions(content)),
        *_section("What this run cannot tell", bullets(content.caveats)),
        *_section("Where the numbers come from", _facts(content)),
    ]
    return "\n\n".join(parts) + "\n"


def _section(title: str, body: str) -> list[str]:
    return [f"## {title}", body] if body else []


def _comparisons(content: Page) -> str:
    order = [gap for standing in WORDS for gap in content.found.standing(standing)]
    lines = grid(_HEAD, [_comparison(gap) for gap in order[:_SHOWN]])
    left = len(content.gaps) - min(len(order), _SHOWN)
    more = f"\n\n{left:,} more comparisons are in `comparisons.parquet`." if left else ""
    family = f"Adjusted p: corrected over a family of {content.found.families}."
    return f"{family}\n\n{lines}{more}" if order else ""


def _omnibus(run: Run, content: Page) -> str:
    """One line an axis and primary output."""
    table = run.table("omnibus").filter(~pl.col("exploratory")).sort("p_adjusted", nulls_last=True)
    found = [
        (
            name(row["axis"]),
            content.found.measures[row["metric"], row["output"]].full_title,
            probability(row["p_adjusted"]) if row["p"] is not None else (row["null_reason"] or ""),
            f"{row['n_groups']:,}",
            f"{row['n_clusters']:,}",
        )
        for row in table.head(_SHOWN).iter_rows(named=True)
        if (row["metric"], row["output"]) in content.found.measures
    ]
    return grid(("axis", "measure", "adjusted p", "groups", "clusters"), found) if found else ""


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
        WORDS[gap.standing],
    )


def _distances(content: Page) -> str:
    tables = [
        f"### {escaped(table.title)}\n\n{grid(table.head, [line.cells for line in table.lines])}"
        for table in content.distances.tables
    ]
    return "\n\n".join([escaped(content.distances.explanation), *tables]) if tables else ""


def _exclusions(content: Page) -> str:
    rows = [
        (row.stage, row.metric, row.reason, f"{row.count:,} of {row.of:,} ({row.share})")
        for row in content.exclusions
    ]
    return grid(("stage", "metric", "reason", "texts"), rows) if rows else "Nothing was left out."


def _facts(content: Page) -> str:
    return grid(("what", "value"), [(fact.name, fact.value) for fact in content.facts])
