"""A page on what people said, as HTML, Markdown, JSON and on the terminal: sections of one table each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from markupsafe import Markup
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evenhand._version import __version__
from evenhand.audits.report.formats import run_json
from evenhand.core.digests import Json
from evenhand.report.document import render_document
from evenhand.report.manifest import Fact, list_circumstances, read_mapping, read_text
from evenhand.report.report_formats import ReportFormats
from evenhand.report.wording import (
    bullet_list,
    escape_markdown,
    format_count,
    format_number,
    markdown_table,
    show_control_characters,
)
from evenhand.store.run import Run

_FOLDER = Path(__file__).parent
_STYLE = (
    ".drawing { display: block; width: 100%; min-width: 40rem; max-width: 46rem; height: auto; "
    "margin-top: 1.2rem; }\n"
    ".drawing text { fill: var(--soft); font-size: 11px; }\n"
    "td.text { max-width: 34rem; min-width: 14rem; overflow-wrap: anywhere; }"
)
_LISTED = 40
_ON_TERMINAL = 12


@dataclass(frozen=True, slots=True)
class ReportSection:
    """A heading, what it says in words, a drawing, a table."""

    id: str
    title: str
    lede: str = ""
    heads: tuple[str, ...] = ()
    """The first column names the row; numbers begin with ``#``, long texts with ``~``."""
    rows: tuple[tuple[str, ...], ...] = ()
    drawing: Markup = field(default_factory=Markup)
    note: str = ""
    unlisted: int = 0
    table: str = ""
    """The Parquet table that holds all rows."""
    is_offensive: bool = False
    """Whether it shows texts that may offend: then it is folded."""
    nav: str = ""
    """Its name at the top of the page; empty leaves it out there."""
    short: tuple[int, ...] = ()
    """The columns shown on a terminal; none keeps the section off it."""

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Every head and the kind of its cells."""
        kinds = {"#": "num", "~": "text"}
        return [(head.lstrip("#~"), kinds.get(head[:1], "")) for head in self.heads]


@dataclass(frozen=True, slots=True)
class PeopleReport:
    """What the page shows."""

    question: str
    lede: str
    verdicts: tuple[str, ...]
    sections: tuple[ReportSection, ...]
    caveats: tuple[str, ...]
    facts: tuple[Fact, ...]
    version: str = __version__


def build_formats(content: Callable[[Run], PeopleReport], tables: Sequence[str]) -> ReportFormats:
    """The page in all its forms; ``tables`` are those that stand in the JSON."""
    return ReportFormats(
        html=lambda run: _html(content(run)),
        json=lambda run: _json(content(run), run, tables),
        markdown=lambda run: _markdown(content(run)),
        summary=lambda run: _summary(content(run)),
    )


def _html(page: PeopleReport) -> str:
    return render_document(
        _FOLDER / "people.html.j2", style=_STYLE, scripts=("data.js", "explore.js"), page=page
    )


def _markdown(page: PeopleReport) -> str:
    """Long tables are cut, texts left out."""
    parts = [
        f"# {escape_markdown(page.question)}",
        escape_markdown(page.lede),
        *(f"**{escape_markdown(line)}**" for line in page.verdicts),
    ]
    for section in page.sections:
        if section.is_offensive or not section.rows:
            continue
        parts += [
            f"## {escape_markdown(section.title)}",
            *([escape_markdown(section.lede)] if section.lede else []),
            markdown_table([head for head, _ in section.columns], section.rows[:_LISTED]),
        ]
        hidden = max(0, len(section.rows) - _LISTED) + section.unlisted
        notes = [escape_markdown(section.note)] if section.note else []
        parts += notes + ([f"{hidden:,} more rows are in `{section.table}.parquet`."] if hidden else [])
    limits = bullet_list(page.caveats)
    return "\n\n".join([*parts, "## What this cannot tell", limits]) + "\n"


def _json(page: PeopleReport, run: Run, tables: Sequence[str]) -> str:
    return run_json(
        run,
        manifest=("command", "name", "identity", "package"),
        tables=tables,
        verdicts=list(page.verdicts),
        caveats=list(page.caveats),
        warnings=run.manifest.get("warnings"),
    )


def _summary(page: PeopleReport) -> RenderableType:
    """The verdicts and the short tables."""
    parts: list[RenderableType] = [Text(line, style="bold") for line in page.verdicts]
    for section in page.sections:
        if not section.short or not section.rows:
            continue
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, title_justify="left")
        table.title = section.title
        for head, kind in (section.columns[at] for at in section.short):
            table.add_column(head, justify="right" if kind == "num" else "left", overflow="fold")
        for row in section.rows[:_ON_TERMINAL]:
            table.add_row(*(Text(row[at]) for at in section.short))
        parts += [Text(""), table]
        if hidden := max(0, len(section.rows) - _ON_TERMINAL) + section.unlisted:
            parts.append(Text(f"{format_count(hidden, 'more row')} in {section.table}.parquet", style="dim"))
    return Group(*parts)


def list_facts(run: Run) -> tuple[Fact, ...]:
    """Where the numbers come from."""
    identity = read_mapping(run.manifest, "identity")
    found = [
        Fact("Command to repeat", show_control_characters(read_text(run.manifest, "command")), is_code=True),
        Fact("Labels", show_control_characters(read_text(identity, "inputs", "file"))),
        Fact("Digest of the labels", read_text(identity, "inputs", "digest"), is_code=True),
        Fact("One label a text", _rule(read_mapping(identity, "consensus"))),
        Fact("Metric", show_control_characters(read_text(identity, "metric", "spec"))),
        Fact("Metric version", show_control_characters(read_text(identity, "metric", "version"))),
        Fact("Weights or lexicon", read_text(identity, "metric", "weights"), is_code=True),
        *list_circumstances(run.manifest),
    ]
    return tuple(fact for fact in found if fact.value)


def format_number_or_blank(value: object, *, signed: bool = False) -> str:
    """A number; empty where there is none."""
    return format_number(float(value), signed=signed) if isinstance(value, int | float) else ""


def format_interval(row: Mapping[str, object], name: str = "", *, signed: bool = False) -> str:
    """The two ends of an estimate's interval."""
    low, high = (row[f"{name}_low" if name else "low"], row[f"{name}_high" if name else "high"])
    if not isinstance(low, float) or not isinstance(high, float):
        return ""
    return f"{format_number(low, signed=signed)} to {format_number(high, signed=signed)}"


def format_interval_or_reason(row: Mapping[str, object]) -> str:
    """The interval, or why a value has none; nothing where there is no value."""
    return format_interval(row) or ("" if row["value"] is None else f"none: {row['null_reason']}")


def format_estimate(row: Mapping[str, object], name: str) -> str:
    """An estimate with its interval, or why there is none."""
    if row[name] is None:
        return str(row[f"{name}_null"] or "")
    ends = format_interval(row, name)
    return f"{format_number_or_blank(row[name])}" + (f" ({ends})" if ends else "")


def _rule(consensus: Mapping[str, Json]) -> str:
    if not consensus:
        return ""
    method, agreement, least = (read_text(consensus, key) for key in ("method", "agreement", "least"))
    return f"{method}, share of {agreement}, {least} ratings or more"
