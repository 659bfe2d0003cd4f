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
from evenhand.core.digests import Json
from evenhand.report.document import document
from evenhand.report.forms import Forms
from evenhand.report.json import run_json
from evenhand.report.markdown_text import bullets, escaped, grid
from evenhand.report.provenance import Fact, circumstances
from evenhand.report.reading import mapping_at, text_at
from evenhand.report.wording import count, number, visible
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
class Section:
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
class PeoplePage:
    """What the page shows."""

    question: str
    lede: str
    verdicts: tuple[str, ...]
    sections: tuple[Section, ...]
    caveats: tuple[str, ...]
    facts: tuple[Fact, ...]
    version: str = __version__


def forms_of(content: Callable[[Run], PeoplePage], tables: Sequence[str]) -> Forms:
    """The page in all its forms; ``tables`` are those that stand in the JSON."""
    return Forms(
        html=lambda run: _html(content(run)),
        json=lambda run: _json(content(run), run, tables),
        markdown=lambda run: _markdown(content(run)),
        summary=lambda run: _summary(content(run)),
    )


def _html(page: PeoplePage) -> str:
    return document(_FOLDER / "people.html.j2", style=_STYLE, scripts=("data.js", "explore.js"), page=page)


def _markdown(page: PeoplePage) -> str:
    """Long tables are cut, texts left out."""
    parts = [
        f"# {escaped(page.question)}",
        escaped(page.lede),
        *(f"**{escaped(line)}**" for line in page.verdicts),
    ]
    for section in page.sections:
        if section.is_offensive or not section.rows:
            continue
        parts += [
            f"## {escaped(section.title)}",
            *([escaped(section.lede)] if section.lede else []),
            grid([head for head, _ in section.columns], section.rows[:_LISTED]),
        ]
        hidden = max(0, len(section.rows) - _LISTED) + section.unlisted
        notes = [escaped(section.note)] if section.note else []
        parts += notes + ([f"{hidden:,} more rows are in `{section.table}.parquet`."] if hidden else [])
    limits = bullets(page.caveats)
    return "\n\n".join([*parts, "## What this cannot tell", limits]) + "\n"


def _json(page: PeoplePage, run: Run, tables: Sequence[str]) -> str:
    return run_json(
        run,
        manifest=("command", "name", "identity", "package"),
        tables=tables,
        verdicts=list(page.verdicts),
        caveats=list(page.caveats),
        warnings=run.manifest.get("warnings"),
    )


def _summary(page: PeoplePage) -> RenderableType:
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
            parts.append(Text(f"{count(hidden, 'more row')} in {section.table}.parquet", style="dim"))
    return Group(*parts)


def facts_of(run: Run) -> tuple[Fact, ...]:
    """Where the numbers come from."""
    identity = mapping_at(run.manifest, "identity")
    found = [
        Fact("Command to repeat", visible(text_at(run.manifest, "command")), is_code=True),
        Fact("Labels", visible(text_at(identity, "inputs", "file"))),
        Fact("Digest of the labels", text_at(identity, "inputs", "digest"), is_code=True),
        Fact("One label a text", _rule(mapping_at(identity, "consensus"))),
        Fact("Metric", visible(text_at(identity, "metric", "spec"))),
        Fact("Metric version", visible(text_at(identity, "metric", "version"))),
        Fact("Weights or lexicon", text_at(identity, "metric", "weights"), is_code=True),
        *circumstances(run.manifest),
    ]
    return tuple(fact for fact in found if fact.value)


def shown(value: object, *, signed: bool = False) -> str:
    """A number; empty where there is none."""
    return number(float(value), signed=signed) if isinstance(value, int | float) else ""


def interval(row: Mapping[str, object], name: str = "", *, signed: bool = False) -> str:
    """The two ends of an estimate's interval."""
    low, high = (row[f"{name}_low" if name else "low"], row[f"{name}_high" if name else "high"])
    if not isinstance(low, float) or not isinstance(high, float):
        return ""
    return f"{number(low, signed=signed)} to {number(high, signed=signed)}"


def interval_or_why(row: Mapping[str, object]) -> str:
    """The interval, or why a value has none; nothing where there is no value."""
    return interval(row) or ("" if row["value"] is None else f"none: {row['null_reason']}")


def estimate(row: Mapping[str, object], name: str) -> str:
    """An estimate with its interval, or why there is none."""
    if row[name] is None:
        return str(row[f"{name}_null"] or "")
    ends = interval(row, name)
    return f"{shown(row[name])}" + (f" ({ends})" if ends else "")


def _rule(consensus: Mapping[str, Json]) -> str:
    if not consensus:
        return ""
    method = text_at(consensus, "method")
    return (
        f"{method}, share of {text_at(consensus, 'agreement')}, {text_at(consensus, 'least')} ratings or more"
    )
