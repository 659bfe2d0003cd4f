"""The report of a comparison as HTML, Markdown, JSON, and on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evenhand._version import __version__
from evenhand.audits.report.compare_lines import ChangeLine
from evenhand.audits.report.compare_page import CompareReport, build_report
from evenhand.audits.report.formats import run_json
from evenhand.report.document import EXPLORE_SCRIPTS, pack_tables, render_document
from evenhand.report.report_formats import ReportFormats
from evenhand.report.wording import bullet_list, escape_markdown, markdown_table, replace_minus
from evenhand.store.run import Run

_FOLDER = Path(__file__).parent
_SHOWN = 1000
"""Rows of a table on the page."""
_LISTED = 50
"""Rows of a table in Markdown."""
_TABLES = ("standings", "leaderboard", "changes", "comparisons", "groups")
_KEYS = ("package", "command", "name", "created", "ended", "identity", "runs", "paired", "warnings")


def compare_html(run: Run) -> str:
    """The comparison as one HTML page."""
    tables, downloads = pack_tables({name: run.table(name) for name in _TABLES})
    return render_document(
        _FOLDER / "compare.html.j2",
        style=_read_own("compare.css"),
        scripts=EXPLORE_SCRIPTS,
        script=_read_own("compare.js"),
        page=build_report(run),
        shown=_SHOWN,
        tables=tables,
        downloads=downloads,
        version=__version__,
    )


def compare_json(run: Run) -> str:
    """The comparison as JSON text."""
    found = build_report(run)
    return run_json(run, manifest=_KEYS, tables=_TABLES, verdict=found.verdict, caveats=list(found.caveats))


def compare_markdown(run: Run) -> str:
    """The comparison as Markdown text."""
    page = build_report(run)
    parts = [
        f"# {escape_markdown(page.question)}",
        escape_markdown(page.details),
        f"**{escape_markdown(page.verdict)}**",
        "## Standings",
        markdown_table(_STANDING_HEAD, [_standing(page, place) for place in range(len(page.standings))]),
        "## Gaps against the reference",
        _lines(page.gaps),
        "## Values against the reference",
        _lines(page.values),
        "## Leaderboard: the typical gap between two groups",
        markdown_table(
            ("axis", "measure", *page.names),
            [
                (board.what, board.measure, *(f"{place.rank} ({place.spread})" for place in board.places))
                for board in page.boards[:_LISTED]
            ],
        ),
        "## What this cannot tell",
        bullet_list((*page.caveats, *page.warnings)),
    ]
    return "\n\n".join(parts) + "\n"


def compare_summary(run: Run, *, limit: int = 8) -> RenderableType:
    """The comparison in the terminal: the verdict, the standings, the clearest changes."""
    page = build_report(run)
    parts: list[RenderableType] = [Text(replace_minus(page.verdict), style="bold"), Text("")]
    standings = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for head in _STANDING_HEAD:
        standings.add_column(head, justify="left" if head == "run" else "right", overflow="fold")
    for place in range(len(page.standings)):
        standings.add_row(*(Text(cell) for cell in _standing(page, place)))
    parts.append(standings)
    if page.clear_changes:
        parts += [Text(""), _changes(page.clear_changes[:limit])]
    return Group(*parts)


_STANDING_HEAD = ("rank", "run", "narrower", "wider", "tied", "not testable")


def _standing(page: CompareReport, place: int) -> tuple[str, ...]:
    item = page.standings[place]
    return (item.rank, item.run, *(f"{n:,}" for n in (item.narrower, item.wider, item.tied, item.null)))


def _changes(lines: Sequence[ChangeLine]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for head in ("Run", "Gap", "Measure"):
        table.add_column(head, overflow="fold")
    for head in ("Was", "Is", "Change", "Adj. p", "So"):
        table.add_column(head, justify="right", no_wrap=True)
    for line in lines:
        cells = (
            line.run,
            line.what,
            line.measure,
            line.before,
            line.after,
            line.full_change,
            line.p,
            line.verdict,
        )
        table.add_row(*(Text(replace_minus(cell)) for cell in cells))
    return table


def _lines(lines: Sequence[ChangeLine]) -> str:
    head = ("run", "group", "measure", "was", "is", "change", "interval", "adjusted p", "so", "seen from")
    shown = [
        (
            line.run,
            line.what,
            line.measure + (" (exploratory)" if line.exploratory else ""),
            line.before,
            line.after,
            line.full_change,
            line.interval,
            line.p,
            line.verdict,
            line.seen_from,
        )
        for line in lines[:_LISTED]
    ]
    left = len(lines) - len(shown)
    return markdown_table(head, shown) + (f"\n\n{left:,} more are in `changes.parquet`." if left else "")


def _read_own(file: str) -> str:
    return (_FOLDER / file).read_text(encoding="utf-8")


FORMATS = ReportFormats(compare_html, compare_json, compare_markdown, compare_summary)
