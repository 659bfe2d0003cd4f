"""``report.md``: the report for a pull request or a wiki, without the texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import polars as pl

from evenhand.report.gaps import WORDS, Gap
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
_LINKING = re.compile(
    r"@|#(?=\d)|\b[a-z][a-z0-9+.-]{0,30}:(?=//)|\bmailto:|\bxmpp:|\bwww(?=\.)", re.IGNORECASE
)
"""What code hosts turn into mentions, references and links although nobody wrote one.

The bound keeps a text of words and dots from being read to its end once a word.
"""
_JOINER = "\u2060"
"""Word joiner: nothing to see, and no link can reach over it."""
_SPECIAL = frozenset("\\`*_{}[]()<>#+!|~$")


def markdown_report(run: Run) -> str:
    """The report of a run as Markdown text."""
    content = page(run)
    parts = [
        f"# {escaped(content.asked.question)}",
        escaped(content.asked.details),
        f"**{escaped(content.found.verdict)}**",
        *_section("Largest gaps", _bullets(gap.sentence for gap in content.found.best[:3])),
        *_section("What could not be told", _bullets(gap.doubt for gap in content.found.cannot_tell[:3])),
        *_section("Do the groups of an axis differ at all?", _omnibus(run, content)),
        *_section("Comparisons", _comparisons(content)),
        *_section("Distances", _distances(content)),
        *_section("Left out", _exclusions(content)),
        *_section("What this run cannot tell", _bullets(content.caveats)),
        *_section("Where the numbers come from", _facts(content)),
    ]
    return "\n\n".join(parts) + "\n"


def escaped(text: str) -> str:
    """The text with everything Markdown, HTML or a code host would read as markup made plain, on one line.

    Nobody is mentioned, and nothing becomes a link.
    """
    line = _LINKING.sub(lambda match: match[0] + _JOINER, " ".join(text.split()))
    return "".join(f"\\{letter}" if letter in _SPECIAL else letter for letter in line.replace("&", "&amp;"))


def _section(title: str, body: str) -> list[str]:
    return [f"## {title}", body] if body else []


def _bullets(sentences: Iterable[str]) -> str:
    return "\n".join(f"- {escaped(sentence)}" for sentence in sentences)


def _comparisons(content: Page) -> str:
    order = [gap for standing in WORDS for gap in content.found.standing(standing)]
    lines = _table(_HEAD, [_comparison(gap) for gap in order[:_SHOWN]])
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
    return _table(("axis", "measure", "adjusted p", "groups", "clusters"), found) if found else ""


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
        f"### {escaped(table.title)}\n\n{_table(table.head, [line.cells for line in table.lines])}"
        for table in content.distances.tables
    ]
    return "\n\n".join([escaped(content.distances.explanation), *tables]) if tables else ""


def _exclusions(content: Page) -> str:
    rows = [
        (row.stage, row.metric, row.reason, f"{row.count:,} of {row.of:,} ({row.share})")
        for row in content.exclusions
    ]
    return _table(("stage", "metric", "reason", "texts"), rows) if rows else "Nothing was left out."


def _facts(content: Page) -> str:
    return _table(("what", "value"), [(fact.name, fact.value) for fact in content.facts])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head)]
    body = [[escaped(cell) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in [*lines, *body])
