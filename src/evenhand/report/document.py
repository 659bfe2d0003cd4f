"""The document model of every report: sections of text, tables and charts.

A family of reports states its content once, as a `Report`. Each format has one renderer, in `html`,
`render_run` and, for the numbers, `json_tables`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import polars as pl
from markupsafe import Markup

from evenhand.core.digests import Json
from evenhand.report.charts import draw_pieces
from evenhand.report.manifest import Fact
from evenhand.report.wording import format_name, format_value
from evenhand.store.run import Run

EVERYWHERE: Final = "html md terminal"
"""The formats that show a block, a column or a row, by their names."""
NO_DRAWING: Final = Markup()
EXPLORE_SCRIPTS: Final = ("data.js", "packed.js", "explore.js", "download.js")
"""The scripts of a page whose tables are filtered, sorted and downloaded."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A field of a table. The page shows all of it, plain formats its text, flag and note."""

    text: str = ""
    _: KW_ONLY
    note: str = ""
    """Small print; a plain format puts that of a number in parentheses."""
    detail: str = ""
    """Small print that only the page has room for."""
    flag: str = ""
    """What a plain format writes instead of the colour, such as ``*``."""
    tags: tuple[str, ...] = ()
    tone: str = ""
    """CSS classes of the field."""
    arrow: str = ""
    """``higher`` or ``lower``."""
    is_strong: bool = False
    hint: str = ""
    """Shown on hover."""
    button: Mapping[str, str] | None = None
    """The text is a button with these ``data-`` attributes; the key ``class`` is its CSS class."""
    chart: Markup = NO_DRAWING


AnyCell: TypeAlias = Cell | str
Show: TypeAlias = str | Callable[[Any], AnyCell]
"""A key of an item, or what a cell shows of it."""
S = TypeVar("S", bound=str)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    head: str
    kind: str = ""
    """``num``, ``text`` for long texts, ``plot``, ``verdict``; empty for words."""
    note: str = ""
    name: str = ""
    """CSS class of its cells."""
    formats: str = EVERYWHERE
    drawing: Markup = NO_DRAWING
    """Stands in the head, as the ticks of a chart do."""
    is_sorted: bool = False
    """Whether the rows come sorted by it, the largest first."""
    can_sort: bool = True


Columns: TypeAlias = Mapping[Any, Show]
"""Columns, or their heads, and what they show."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table; the first cell names it."""

    cells: Sequence[AnyCell]
    tone: str = ""
    data: Mapping[str, str] = field(default_factory=dict)
    """``data-`` attributes for the page's script; an empty value is a bare attribute."""
    is_heading: bool = False
    """Whether it is the heading of the rows that follow, up to the next one."""
    formats: str = EVERYWHERE


AnyRow: TypeAlias = Row | Sequence[AnyCell]
_SORTS: Final[Mapping[str, str]] = {"num": "number", "": "words", "verdict": "words"}
"""How the page sorts by a kind of column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table; plain formats write the heading of a row as its first cell."""

    columns: Sequence[Column | str]
    """Columns, or their heads: those of numbers begin with ``#``, those of long texts with ``~``."""
    rows: Sequence[AnyRow]
    title: str = ""
    label: str = ""
    """For readers who do not see the page, where it has no title."""
    group_head: str = ""
    """What headings are, for the first column of a plain format."""
    source: str = ""
    """The Parquet table that holds all rows."""
    style: str = ""
    """CSS classes of the table."""
    frame: str = "wide"
    """CSS classes of the box in which it scrolls."""
    shown: int = 3000
    """Rows of the page: what a browser lays out in about a second."""
    listed: int = 50
    """Rows in Markdown: a pull-request comment has a size limit."""
    tall: int = 24
    """Rows beyond which it scrolls in its box."""
    printed: int = 40
    """Rows on a terminal."""
    has_wide_numbers: bool = True
    """Whether a terminal has room for the notes of cells."""
    short: Sequence[int] = ()
    """The columns of a terminal; none shows all."""
    unlisted: int = 0
    """Rows that are only in ``source``."""
    is_offensive: bool = False
    """Whether it shows texts that may offend: the page folds it, plain formats leave it out."""
    formats: str = EVERYWHERE

    @property
    def heads(self) -> list[Column]:
        """The columns."""
        heads = []
        for head in self.columns:
            if isinstance(head, str):
                kind = {"#": "num", "~": "text"}.get(head[:1], "")
                head = Column(head.lstrip("#~"), kind, can_sort=kind != "text")
            heads.append(head)
        return heads

    def _select(
        self, format_name: str, limit: int | None = None
    ) -> tuple[list[tuple[int, Column]], list[Row]]:
        """The columns that a format has, with their places in a row, and its rows."""
        columns = [(at, column) for at, column in enumerate(self.heads) if format_name in column.formats]
        rows = [part if isinstance(part, Row) else Row(part) for part in self.rows[:limit]]
        return columns, [row for row in rows if format_name in row.formats]

    def lay_out(self) -> tuple[list[tuple[int, Column, str, str]], list[list[Row]], int]:
        """The table as the page draws it.

        Columns with their places in a row, their CSS classes, and how they sort; the rows, of which each
        heading begins a new list; and how many rows the page does not show.
        """
        selected, rows = self._select("html", self.shown)
        columns = []
        for at, column in selected:
            kind = column.kind if column.kind in ("num", "text", "plot") else ""
            sort = _SORTS.get(column.kind, "") if column.can_sort and not self.group_head else ""
            columns.append((at, column, f"{kind} {column.name}".strip(), sort))
        bodies: list[list[Row]] = [[]]
        for row in rows:
            if row.is_heading and bodies[-1]:
                bodies.append([])
            bodies[-1].append(row)
        return columns, bodies, max(0, len(self.rows) - self.shown) + self.unlisted

    def lines(self, format_name: str) -> tuple[list[Column], list[list[str]], int]:
        """The table in a plain format: columns, rows, and how many rows are left out."""
        limit, places = (self.listed, ()) if format_name == "md" else (self.printed, self.short)
        with_note = self.has_wide_numbers or format_name == "md"
        selected, rows = self._select(format_name)
        columns = [(at, column) for at, column in selected if not places or at in places]
        lines, group = [], []
        for row in rows:
            if row.is_heading:
                group = [_write_plain(row.cells[0])]
                continue
            cells = [_write_plain(row.cells[at], column.kind == "num", with_note) for at, column in columns]
            lines.append([*group, *cells])
        heads = [Column(self.group_head)] if self.group_head else []
        heads += [column for _, column in columns]
        return heads, lines[:limit], max(0, len(lines) - limit) + self.unlisted


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph."""

    text: str
    style: str = "lede"
    """``lede``, ``note``, ``seen``, ``heading`` or a CSS class."""
    formats: str = "html md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bullets:
    """A list of sentences."""

    items: Sequence[str]
    title: str = ""
    style: str = "doubts"
    shown: int = 3
    """How many the page and Markdown show; the page folds the next forty."""
    formats: str = "html md"


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing, for the page."""

    drawing: Markup
    label: str = ""
    """For a drawing that scrolls on a narrow screen."""
    formats: str = "html"


@dataclass(frozen=True, slots=True)
class Legend:
    """How to read colours and marks: a sample and its meaning."""

    entries: Sequence[tuple[Markup, str]]
    label: str = "Colours"
    formats: str = "html"


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One finding of the first screen: its size, an interval, a claim and its evidence."""

    size: str
    unit: str = ""
    claim: str
    evidence: str
    kicker: str = ""
    direction: str = ""
    arrow: str = ""
    chart: Markup = NO_DRAWING
    button: Mapping[str, str] | None = None
    """Attributes of the button that opens its texts."""


@dataclass(frozen=True, slots=True)
class Cards:
    """The findings of the first screen; Markdown writes them as a list."""

    cards: Sequence[Card]
    title: str = ""
    formats: str = "html md"


class VerdictCount(NamedTuple):
    """How many findings have a verdict."""

    standing: str
    """Its CSS class."""
    word: str
    meaning: str
    amount: int


@dataclass(frozen=True, slots=True)
class Tally:
    """How many findings have each verdict, as a bar and its legend."""

    counts: Sequence[VerdictCount]
    can_filter: bool = False
    """Whether choosing a verdict shows its rows."""
    formats: str = "html"

    @property
    def bar(self) -> Markup:
        """The bar of all counts."""
        return draw_pieces({count.standing: count.amount for count in self.counts}, style="tally")


@dataclass(frozen=True, slots=True)
class Template:
    """A part that only the page has and a template of the family writes, such as a form."""

    name: str
    content: Any = None
    formats: str = "html"


Block: TypeAlias = Table | Text | Bullets | Chart | Legend | Cards | Tally | Template


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and its blocks; a section without content is left out."""

    id: str
    title: str
    blocks: Sequence[Block]
    nav: str = ""
    """Its name at the top of the page; empty leaves it out there."""
    group: str = ""
    """Sections that follow each other with the same group share a box of this CSS class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What only the page of a report has: style, scripts, and the data that they read."""

    folder: Path = Path(__file__).parent / "templates"
    """Where its own templates, style and script are."""
    style: str = ""
    script: str = ""
    """Files of ``folder``."""
    scripts: Sequence[str] = EXPLORE_SCRIPTS
    data: Mapping[str, Json] = field(default_factory=dict)
    downloads: Sequence[str] = ()
    """Tables that can be downloaded."""
    drawer: tuple[str, str] | None = None
    """Notice before texts are shown, and what they are called; None where the page shows none."""
    embed: Callable[[int], tuple[Mapping[str, Json], str]] | None = None
    """The texts that fit into so many bytes for the drawer, and a sentence on those left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The content of a report, for every format."""

    run: Run
    question: str
    details: str
    verdicts: Sequence[str]
    """The answer, a sentence each."""
    headline: str = ""
    """What the page says of the verdict above its findings; else the verdicts."""
    opening: Sequence[Block] = ()
    """The first screen, below the verdict."""
    sections: Sequence[Section]
    caveats: Sequence[str]
    notes: Sequence[str] = ()
    """Further limits, on the page and in Markdown."""
    facts: Sequence[Fact]
    closing: Sequence[Section] = ()
    """What follows the provenance."""
    manifest: Sequence[str]
    """Keys of the manifest in the JSON."""
    tables: Sequence[str]
    """Tables in the JSON."""
    values: Mapping[str, Json] = field(default_factory=dict)
    """What the JSON says before these."""
    page: Page = field(default_factory=Page)

    def select_sections(self, format_name: str) -> list[tuple[Section, list[Block]]]:
        """The first screen, then the sections that a format has something of."""
        parts: list[tuple[Section, list[Block]]] = []
        for section in (Section("findings", "", self.opening), *self.sections):
            blocks = []
            for block in section.blocks:
                # The first field of a block is its content; that of a table are its rows.
                content = block.rows if isinstance(block, Table) else getattr(block, fields(block)[0].name)
                if format_name in block.formats and content:
                    blocks.append(block)
            if blocks or not parts:
                parts.append((section, blocks))
        return parts


def table_section(  # noqa: PLR0913 (the parts of a section)
    id: str,
    title: str,
    lede: str,
    items: pl.DataFrame | Sequence[Any],
    columns: Columns,
    *,
    nav: str = "",
    note: str = "",
    drawing: Markup = NO_DRAWING,
    formats: str = EVERYWHERE,
    has_lede: bool = False,
    **options: Any,
) -> Section:
    """A section of a drawing and a table with a row per item, without content where both are empty.

    ``has_lede`` keeps the first paragraph where both are empty. The options are those of `build_table`.
    """
    size, most = len(items), 200
    shown = items.head(most).to_dicts() if isinstance(items, pl.DataFrame) else items[:most]
    table = build_table(shown, columns, formats=formats, unlisted=size - len(shown), **options)
    written = formats.replace("terminal", "")
    charts = [Chart(drawing, f"{title}, drawing")] if drawing else []
    parts: list[Block] = [Text(lede, formats=written), *charts, table, Text(note, "note", written)]
    return Section(id, title, parts if size or drawing or has_lede else (), nav)


def build_table(
    items: Iterable[Any],
    columns: Columns,
    *,
    tone: Callable[[Any], str] | None = None,
    data: Callable[[Any], Mapping[str, str]] | None = None,
    **options: Any,
) -> Table:
    """A table with a row per item: of a column that names a key its value, else what the function returns."""
    rows = [
        Row(
            [format_value(item[show]) if isinstance(show, str) else show(item) for show in columns.values()],
            tone(item) if tone else "",
            data(item) if data else {},
        )
        for item in items
    ]
    return Table(columns=list(columns), rows=rows, **options)


def words(column: str) -> Callable[[Mapping[str, Any]], str]:
    """What a column of identifiers shows: words; nothing where there is none."""
    return lambda row: format_name(row[column]) if row[column] else ""


def interval_column(level: str, name: str = "") -> Column:
    """The column of intervals of a level."""
    return Column("Interval", "num", level, name, can_sort=False)


def list_choices(names: Iterable[str]) -> list[tuple[str, str]]:
    """The choices of a filter by names: all, or one of them."""
    return [("", "all"), *((name, format_name(name)) for name in dict.fromkeys(names))]


def count_verdicts(
    standings: Sequence[S], *, words: Mapping[S, str], meanings: Mapping[S, str]
) -> list[VerdictCount]:
    """A count for every standing of ``words``, in their order."""
    return [
        VerdictCount(standing.replace(" ", "-"), word, meanings[standing], standings.count(standing))
        for standing, word in words.items()
    ]


def _write_plain(cell: AnyCell, is_number: bool = False, with_note: bool = True) -> str:
    """The field in a plain format."""
    if isinstance(cell, str):
        return cell
    note = f"({cell.note})" if cell.note and is_number else cell.note
    parts = (f"{cell.text}{cell.flag}", note if with_note else "", *(f"({tag})" for tag in cell.tags))
    return " ".join(filter(None, parts))
