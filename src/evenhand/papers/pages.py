"""A replication as Markdown and as one HTML page in the style of the report."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import jinja2
import polars as pl
from markupsafe import Markup

from evenhand.papers.records import Claim, Figure, Replication, Table
from evenhand.report.document import policy, stylesheet
from evenhand.report.markdown_text import escaped, grid
from evenhand.report.wording import MINUS

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


def table_markdown(table: Table) -> str:
    """A table as a GitHub Markdown page."""
    lines = [f"# {escaped(_heading(table))}", "", _grid(table.frame, table.decimals)]
    return "\n".join([*lines, *_notes(table.notes)]) + "\n"


def claims_markdown(claims: Sequence[Claim]) -> str:
    """The paper's numbers beside ours, a line each."""
    rows = [
        [claim.section, claim.claim, claim.paper, claim.ours or "-", claim.source, claim.remark]
        for claim in claims
    ]
    head = ["Section", "Claim", "Paper", "Ours", "Source", "Remark"]
    return "\n".join(["# Claims of the text, paper and ours", "", grid(head, rows)]) + "\n"


def markdown_page(replication: Replication) -> str:
    """The replication as one Markdown page."""
    parts = [f"# {escaped(replication.title)}", f"Paper: {escaped(replication.citation)}"]
    if replication.findings:
        parts += ["## What came out", *(f"- {escaped(finding)}" for finding in replication.findings)]
    parts += ["## Read this first", *(f"- {escaped(remark)}" for remark in replication.remarks)]
    for exhibit in replication.exhibits:
        parts += [f"## {escaped(_heading(exhibit))}", ""]
        if isinstance(exhibit, Figure):
            parts += [f"![{escaped(exhibit.alt)}]({exhibit.id}.svg)"]
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
        exhibits=[_shown(exhibit) for exhibit in replication.exhibits],
        style=Markup(style),
        policy=policy(style, ""),
        tied=_tied,
        long=LONG,
        tall=TALL,
        short=SHORT,
    )


def cell(value: object, decimals: int) -> str:
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


class Cell(NamedTuple):
    """What a reader sees of an estimate."""

    value: str
    interval: str = ""

    def __str__(self) -> str:
        return f"{self.value} {self.interval}".rstrip()


def joined(frame: pl.DataFrame, decimals: int) -> tuple[list[str], list[list[Cell]]]:
    """Heads and cells as a reader sees them: ``x``, ``x_low`` and ``x_high`` share a cell."""
    heads = [name for name in frame.columns if not _is_bound(name, frame.columns)]
    rows = [[_cell(row, head, decimals) for head in heads] for row in frame.iter_rows(named=True)]
    return heads, rows


def _is_bound(name: str, names: Sequence[str]) -> bool:
    return name.endswith(("_low", "_high")) and name.rpartition("_")[0] in names


def _cell(row: dict[str, object], head: str, decimals: int) -> Cell:
    low, high = row.get(f"{head}_low"), row.get(f"{head}_high")
    bounds = "" if low is None or high is None else f"[{cell(low, decimals)}, {cell(high, decimals)}]"
    return Cell(cell(row[head], decimals), bounds)


def _shown(exhibit: Table | Figure) -> dict[str, object]:
    shown: dict[str, object] = {"id": exhibit.id, "name": _name(exhibit.id), "heading": _heading(exhibit)}
    shown |= {"notes": exhibit.notes, "is_offensive": False}
    if isinstance(exhibit, Figure):
        narrow = _encoded(exhibit.narrow) if exhibit.narrow else ""
        shown |= {"image": _encoded(exhibit.svg), "narrow": narrow, "alt": exhibit.alt}
        return shown | _rows(exhibit, 2)
    return shown | _rows(exhibit, exhibit.decimals) | {"is_offensive": exhibit.is_offensive}


def _tied(words: str) -> str:
    """Words of a claim in which a number stays with its sign and its name."""
    return words.replace(" %", "\u00a0%").replace("n = ", "n\u00a0=\u00a0").replace("< ", "<\u00a0")


def _encoded(svg: str) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


def _rows(exhibit: Table | Figure, decimals: int) -> dict[str, object]:
    """The cells of a table, or of the numbers a figure draws."""
    frame = exhibit.frame.head(ROWS_SHOWN)
    heads, rows = joined(frame, decimals)
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
    heads, rows = joined(frame, decimals)
    return grid([_words(head) for head in heads], [[str(value) for value in row] for row in rows])


def _notes(notes: Sequence[str]) -> list[str]:
    return ["", *(f"- {escaped(note)}" for note in notes)] if notes else []


def _words(column: str) -> str:
    return column.replace("_", " ")


def _heading(exhibit: Table | Figure) -> str:
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
