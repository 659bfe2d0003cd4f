"""A corpus and a classifier side by side, as HTML, JSON, Markdown and on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evenhand._version import __version__
from evenhand.audits.report.formats import run_json
from evenhand.report.document import EXPLORE_SCRIPTS, pack_tables, render_document
from evenhand.report.manifest import Fact, list_circumstances, read_objects, read_text
from evenhand.report.report_formats import ReportFormats
from evenhand.report.wording import (
    bullet_list,
    escape_markdown,
    format_count,
    format_name,
    format_number,
    format_percent,
    markdown_table,
    show_control_characters,
)
from evenhand.store.run import Run

_FOLDER = Path(__file__).parent
_STYLE = ".lean { display: block; width: 100%; max-width: 44rem; height: auto; margin-top: 1.6rem; }"
_KEYS = ("command", "name", "identity", "runs", "view")
_TABLES = ("agreements", "associations")
_SHOWN = 2000
_LISTED = 60
CAVEATS = (
    "Two things that lean the same way need not cause each other: this corpus may not be what the classifier "
    "learned from.",
    "Cells share groups and the four percentages of a group sum to 100, so that they are not independent; "
    "the "
    "intervals resample pairs of groups.",
    "The corpus counts words that stand in one sentence, not who feels what.",
)


@dataclass(frozen=True, slots=True)
class AssociationLine:
    """One cell: which way the corpus leans, and which way the classifier."""

    row: Mapping[str, str | float | bool | None]

    def text(self, column: str) -> str:
        """A name, as words."""
        return format_name(str(self.row[column]))

    def format_number(self, column: str, *, signed: bool = False) -> str:
        """A number; empty where there is none."""
        value = self.row[column]
        return format_number(float(value), signed=signed) if isinstance(value, float) else ""

    @property
    def pair(self) -> str:
        """The two groups."""
        return f"{self.text('group_a')} × {self.text('group_b')}"

    def towards(self, column: str) -> str:
        """The group a signed number points to."""
        value = self.row[column]
        if not isinstance(value, float) or value == 0:
            return ""
        return self.text("group_b" if value > 0 else "group_a")

    @property
    def agreement_words(self) -> str:
        """Whether both lean the same way, in words."""
        same = self.row["same_direction"]
        return str(self.row["null_reason"] or "") if same is None else "same way" if same else "opposite ways"


@dataclass(frozen=True, slots=True)
class AssociationReport:
    """What the page shows."""

    question: str
    verdicts: tuple[str, ...]
    lines: tuple[AssociationLine, ...]
    unlisted: int
    points: tuple[tuple[float, float, bool], ...]
    """Corpus and classifier, in units of the drawing, and whether the classifier's part is clear."""
    facts: tuple[Fact, ...]
    caveats: tuple[str, ...] = CAVEATS
    version: str = __version__


def build_report(run: Run) -> AssociationReport:
    """The content of the report."""
    table = run.table("associations")
    lines = tuple(AssociationLine(row) for row in table.iter_rows(named=True))
    return AssociationReport(
        question="Does the classifier lean the way the corpus does?",
        verdicts=tuple(_verdict(row) for row in run.table("agreements").iter_rows(named=True)),
        lines=lines[:_SHOWN],
        unlisted=max(0, len(lines) - _SHOWN),
        points=tuple(_points(lines)),
        facts=tuple(fact for fact in _facts(run) if fact.value),
    )


def associate_html(run: Run) -> str:
    """The report as one HTML page."""
    tables, downloads = pack_tables({name: run.table(name) for name in _TABLES})
    return render_document(
        _FOLDER / "association.html.j2",
        style=_STYLE,
        scripts=EXPLORE_SCRIPTS,
        page=build_report(run),
        tables=tables,
        downloads=downloads,
    )


def associate_json(run: Run) -> str:
    """The report as JSON text."""
    found = build_report(run)
    return run_json(
        run, manifest=_KEYS, tables=_TABLES, verdicts=list(found.verdicts), caveats=list(found.caveats)
    )


def associate_markdown(run: Run) -> str:
    """The report as Markdown text."""
    found = build_report(run)
    head = ("pair", "emotion", "corpus leans to", "points", "classifier leans to", "ACS", "so")
    rows = [
        (
            line.pair,
            line.text("emotion"),
            line.towards("corpus_difference"),
            line.format_number("corpus_difference", signed=True),
            line.towards("acs"),
            line.format_number("acs", signed=True),
            line.agreement_words,
        )
        for line in found.lines[:_LISTED]
    ]
    parts = [
        f"# {found.question}",
        *(f"**{escape_markdown(line)}**" for line in found.verdicts),
        markdown_table(head, rows),
    ]
    return "\n\n".join([*parts, "## What this cannot tell", bullet_list(found.caveats)]) + "\n"


def associate_summary(run: Run) -> RenderableType:
    """The verdict and the cells on the terminal."""
    found = build_report(run)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for head in ("pair", "emotion", "corpus", "classifier", "so"):
        table.add_column(head, overflow="fold")
    for line in found.lines[:40]:
        table.add_row(
            Text(line.pair),
            Text(line.text("emotion")),
            line.format_number("corpus_difference", signed=True),
            line.format_number("acs", signed=True),
            line.agreement_words,
        )
    note = Text("corpus: points of the emotion's share, second minus first; classifier: ACS", style="dim")
    return Group(*(Text(line, style="bold") for line in found.verdicts), table, note)


def _verdict(row: Mapping[str, object]) -> str:
    share, rho, low, high = (row[key] for key in ("share", "rho", "rho_low", "rho_high"))
    corpus, pair_corpus = (format_name(str(row[key])) for key in ("corpus", "pair_corpus"))
    where = f"{corpus} and {show_control_characters(str(row['model']))} on {pair_corpus}"
    if not isinstance(share, float):
        return f"{where}: no cell could be compared."
    cells = format_count(int(str(row["n"])), "cell")
    said = f"{where}: both lean the same way in {row['same']} of {cells} ({format_percent(share)})"
    if not isinstance(rho, float):
        return f"{said}; the rank correlation cannot be told: {row['null_reason']}."
    ends = (
        f" ({format_number(low, signed=True)} to {format_number(high, signed=True)})"
        if isinstance(low, float) and isinstance(high, float)
        else ""
    )
    is_told = isinstance(low, float) and isinstance(high, float) and not low <= 0 <= high
    clear = "" if is_told else ", which may be chance"
    return f"{said}; rank correlation {format_number(rho, signed=True)}{ends}{clear}."


def _points(lines: tuple[AssociationLine, ...]) -> Iterator[tuple[float, float, bool]]:
    known = [
        (float(x), float(y), bool(line.row["is_clear"]))
        for line in lines
        if isinstance(x := line.row["corpus_difference"], float) and isinstance(y := line.row["acs"], float)
    ]
    wide = max((abs(x) for x, _, _ in known), default=1.0) or 1.0
    high = max((abs(y) for _, y, _ in known), default=1.0) or 1.0
    for x, y, clear in known:
        yield round(300 + 280 * x / wide, 1), round(150 - 135 * y / high, 1), clear


def _facts(run: Run) -> Iterator[Fact]:
    yield Fact("Command to repeat", show_control_characters(read_text(run.manifest, "command")), is_code=True)
    for part in read_objects(run.manifest, "runs"):
        yield Fact(
            show_control_characters(read_text(part, "name")),
            show_control_characters(read_text(part, "command")),
            is_code=True,
        )
    yield from list_circumstances(run.manifest)


FORMATS = ReportFormats(associate_html, associate_json, associate_markdown, associate_summary)
