"""A replication as Markdown and as one HTML page in the style of the report."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import jinja2
import polars as pl
from markupsafe import Markup

from evenhand.core.digests import Json
from evenhand.report.html import security_policy, stylesheet
from evenhand.report.wording import MINUS, escape_markdown, markdown_table
from evenhand.store.atomic_writes import replace_file, write_text
from evenhand.store.parquet import write_parquet


@dataclass(frozen=True, slots=True)
class PaperTable:
    """A table of the paper, in long form: the paper's columns in snake case, and ``source``."""

    id: str
    """``table_3``."""
    title: str
    frame: pl.DataFrame
    """Rows of ours and, where the paper prints them, rows with the source ``paper: NAME`` beside them."""
    notes: tuple[str, ...] = ()
    decimals: int = 2
    """Digits shown after the point; the Parquet file keeps all."""
    is_offensive: bool = False
    """Whether it shows texts that may offend: they are then behind a notice."""


@dataclass(frozen=True, slots=True)
class PaperFigure:
    """A figure of the paper, with the numbers it draws."""

    id: str
    title: str
    frame: pl.DataFrame
    svg: str
    alt: str
    """What the figure shows, in a sentence, for readers who do not see it."""
    notes: tuple[str, ...] = ()
    narrow: str = ""
    """The same for a narrow screen, as SVG; where there is none the wide one is scrolled."""


Exhibit = PaperTable | PaperFigure


@dataclass(frozen=True, slots=True)
class PaperClaim:
    """One number of the paper's text, beside ours."""

    section: str
    claim: str
    """What is claimed, in our words."""
    paper: str
    """As printed."""
    ours: str | None
    """With its interval and n; None where it cannot be computed, with the reason in ``remark``."""
    source: str = ""
    """Which texts or model ours is from."""
    remark: str = ""

    def row(self) -> dict[str, Json]:
        """The claim as a row of ``claims.parquet``."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Replication:
    """All that one paper's replication shows."""

    paper: str
    title: str
    """What was replicated, on which sources, in a sentence."""
    citation: str
    exhibits: tuple[Exhibit, ...]
    claims: tuple[PaperClaim, ...] = ()
    findings: tuple[str, ...] = ()
    """What came out, in a few sentences; shown first."""
    remarks: tuple[str, ...] = ()
    """What a reader must know before quoting a number: the subset, what differs from the paper, and why."""
    sources: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


ROWS_SHOWN = 500
"""Rows of a table on the page; the Parquet file has all."""
MANY = 8
"""Columns from which on a table is printed sideways, and said to go on where a window is small."""
TALL = 30
"""Rows from which on a table is scrolled in a window of its own, so that what follows it is found."""
LONG = 40
"""Letters from which on a cell is words, and may break."""
SHORT = 24
"""Letters from which on a number of a claim, with its interval and n, may break."""
_STYLE = Path(__file__).with_name("page.css")


def table_markdown(table: PaperTable) -> str:
    """A table as a GitHub Markdown page."""
    lines = [f"# {escape_markdown(_heading(table))}", "", _grid(table.frame, table.decimals)]
    return "\n".join([*lines, *_notes(table.notes)]) + "\n"


def claims_markdown(claims: Sequence[PaperClaim]) -> str:
    """The paper's numbers beside ours, a line each."""
    rows = [
        [claim.section, claim.claim, claim.paper, claim.ours or "-", claim.source, claim.remark]
        for claim in claims
    ]
    head = ["Section", "Claim", "Paper", "Ours", "Source", "Remark"]
    return "\n".join(["# Claims of the text, paper and ours", "", markdown_table(head, rows)]) + "\n"


def markdown_page(replication: Replication) -> str:
    """The replication as one Markdown page."""
    parts = [f"# {escape_markdown(replication.title)}", f"Paper: {escape_markdown(replication.citation)}"]
    if replication.findings:
        parts += ["## What came out", *(f"- {escape_markdown(finding)}" for finding in replication.findings)]
    parts += ["## Read this first", *(f"- {escape_markdown(remark)}" for remark in replication.remarks)]
    for exhibit in replication.exhibits:
        parts += [f"## {escape_markdown(_heading(exhibit))}", ""]
        if isinstance(exhibit, PaperFigure):
            parts += [f"![{escape_markdown(exhibit.alt)}]({exhibit.id}.svg)"]
        else:
            parts += [_grid(exhibit.frame, exhibit.decimals)]
        parts += _notes(exhibit.notes)
    if replication.claims:
        parts += ["The numbers of the paper's text stand beside ours in [claims.md](claims.md)."]
    return "\n\n".join(parts) + "\n"


def html_page(replication: Replication) -> str:
    """The replication as one HTML page that asks nothing of the network and runs nothing."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = stylesheet() + _STYLE.read_text(encoding="utf-8")
    return environment.get_template("page.html.j2").render(
        replication=replication,
        exhibits=[_template_values(exhibit) for exhibit in replication.exhibits],
        style=Markup(style),
        policy=security_policy(style, ""),
        tied=_keep_together,
        long=LONG,
        tall=TALL,
        short=SHORT,
    )


def format_value(value: object, decimals: int) -> str:
    """A value as a reader sees it; a missing one is a dash, never zero."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        # A p-value of 3e-9 is small, and not nothing.
        shown = (
            f"{value:,.{decimals}f}" if value == 0 or abs(value) >= 0.5 * 10**-decimals else f"{value:.1e}"
        )
        return shown.replace("-", MINUS)
    if isinstance(value, int):
        return f"{value:,}".replace("-", MINUS)
    return str(value)


class EstimateCell(NamedTuple):
    """What a reader sees of an estimate."""

    value: str
    interval: str = ""

    def __str__(self) -> str:
        return f"{self.value} {self.interval}".rstrip()


def merge_estimate_columns(frame: pl.DataFrame, decimals: int) -> tuple[list[str], list[list[EstimateCell]]]:
    """Heads and cells as a reader sees them: ``x``, ``x_low`` and ``x_high`` share a cell."""
    heads = [name for name in frame.columns if not _is_bound(name, frame.columns)]
    rows = [[_cell(row, head, decimals) for head in heads] for row in frame.iter_rows(named=True)]
    return heads, rows


def _is_bound(name: str, names: Sequence[str]) -> bool:
    return name.endswith(("_low", "_high")) and name.rpartition("_")[0] in names


def _cell(row: dict[str, object], head: str, decimals: int) -> EstimateCell:
    low, high = row.get(f"{head}_low"), row.get(f"{head}_high")
    bounds = (
        ""
        if low is None or high is None
        else f"[{format_value(low, decimals)}, {format_value(high, decimals)}]"
    )
    return EstimateCell(format_value(row[head], decimals), bounds)


def _template_values(exhibit: PaperTable | PaperFigure) -> dict[str, object]:
    shown: dict[str, object] = {"id": exhibit.id, "name": _name(exhibit.id), "heading": _heading(exhibit)}
    shown |= {"notes": exhibit.notes, "is_offensive": False}
    if isinstance(exhibit, PaperFigure):
        narrow = _data_url(exhibit.narrow) if exhibit.narrow else ""
        shown |= {"image": _data_url(exhibit.svg), "narrow": narrow, "alt": exhibit.alt}
        return shown | _rows(exhibit, 2)
    return shown | _rows(exhibit, exhibit.decimals) | {"is_offensive": exhibit.is_offensive}


def _keep_together(words: str) -> str:
    """Words of a claim in which a number stays with its sign and its name."""
    return words.replace(" %", "\u00a0%").replace("n = ", "n\u00a0=\u00a0").replace("< ", "<\u00a0")


def _data_url(svg: str) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


def _rows(exhibit: PaperTable | PaperFigure, decimals: int) -> dict[str, object]:
    """The cells of a table, or of the numbers a figure draws."""
    frame = exhibit.frame.head(ROWS_SHOWN)
    heads, rows = merge_estimate_columns(frame, decimals)
    return {
        "columns": [_words(head) for head in heads],
        "numeric": [_is_of_numbers(frame.schema[head]) for head in heads],
        "rows": rows,
        "is_many": len(heads) > MANY,
        "printed": [source.startswith("paper") for source in _sources(frame)],
        "left_out": exhibit.frame.height - frame.height,
    }


def _is_of_numbers(kind: pl.DataType) -> bool:
    """Whether a column is; one in which no number is known counts too."""
    return kind.is_numeric() or kind == pl.Null


def _sources(frame: pl.DataFrame) -> list[str]:
    return frame["source"].to_list() if "source" in frame.columns else [""] * frame.height


def _grid(frame: pl.DataFrame, decimals: int) -> str:
    heads, rows = merge_estimate_columns(frame, decimals)
    return markdown_table([_words(head) for head in heads], [[str(value) for value in row] for row in rows])


def _notes(notes: Sequence[str]) -> list[str]:
    return ["", *(f"- {escape_markdown(note)}" for note in notes)] if notes else []


def _words(column: str) -> str:
    return column.replace("_", " ")


def _heading(exhibit: PaperTable | PaperFigure) -> str:
    """The number and title of the paper's exhibits; the title alone of our own, which have no number."""
    number = exhibit.id.partition("_")[2]
    return f"{_name(exhibit.id)}: {exhibit.title}" if _is_number(number) else exhibit.title


def _name(identifier: str) -> str:
    kind, _, number = identifier.partition("_")
    words = number.replace("_", " ")
    return f"{kind.capitalize()} {words}" if _is_number(number) else words.capitalize() or kind.capitalize()


def _is_number(words: str) -> bool:
    """Whether an exhibit has a number in the paper, such as 3 or 4_male."""
    return words[:1].isdigit()


def write_replication(replication: Replication, folder: Path) -> tuple[Path, ...]:
    """The files of a replication: Parquet and Markdown for every table, SVG and Parquet for every figure."""
    written = [path for exhibit in replication.exhibits for path in _write_exhibit(exhibit, folder)]
    if replication.claims:
        rows = [claim.row() for claim in replication.claims]
        written.append(_write_table(pl.DataFrame(rows, infer_schema_length=None), folder / "claims.parquet"))
        written.append(_write_text(claims_markdown(replication.claims), folder / "claims.md"))
    written.append(_write_text(markdown_page(replication), folder / "replication.md"))
    written.append(_write_text(html_page(replication), folder / "report.html"))
    return tuple(written)


def _write_exhibit(exhibit: Exhibit, folder: Path) -> Sequence[Path]:
    data = _write_table(exhibit.frame, folder / f"{exhibit.id}.parquet")
    if isinstance(exhibit, PaperFigure):
        return data, _write_text(exhibit.svg, folder / f"{exhibit.id}.svg")
    return data, _write_text(table_markdown(exhibit), folder / f"{exhibit.id}.md")


def _write_table(frame: pl.DataFrame, path: Path) -> Path:
    with replace_file(path) as temporary:
        write_parquet(frame, temporary)
    return path


def _write_text(text: str, path: Path) -> Path:
    write_text(path, text)
    return path
