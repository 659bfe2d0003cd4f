"""A replication as Markdown and as one HTML page in the style of the report."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2
import polars as pl
from markupsafe import Markup

from evenhand.core.files import asset_path
from evenhand.core.records import Estimate
from evenhand.report.html import security_policy, stylesheet
from evenhand.report.wording import MINUS, escape_markdown, markdown_table
from evenhand.stats.results import Difference
from evenhand.store.atomic_writes import replace_file, write_text
from evenhand.store.parquet import write_parquet


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A table or figure in long form: the paper's columns in snake case, plus ``source``."""

    id: str
    """``table_3``."""
    title: str
    frame: pl.DataFrame
    """Our rows and, where the paper prints them, rows with the source ``paper: NAME``."""
    notes: tuple[str, ...] = ()
    decimals: int = 2
    """Decimal places shown; the Parquet file keeps full precision."""
    is_offensive: bool = False
    """Whether it shows texts that may offend, which the page then hides behind a notice."""
    svg: str = ""
    """The image of a figure; empty for a table."""
    alt: str = ""
    """Alternative text: one sentence on the content of the figure."""
    narrow: str = ""
    """The image for a narrow screen; if empty, the wide one is scrolled."""

    @property
    def name(self) -> str:
        """``table_3`` is Table 3; an exhibit without a number is named by the rest of its id."""
        kind, _, number = self.id.partition("_")
        words = number.replace("_", " ")
        return f"{kind.capitalize()} {words}" if number[:1].isdigit() else (words or kind).capitalize()

    @property
    def heading(self) -> str:
        """Number and title for the paper's exhibits; the title alone for ours, which have no number."""
        has_number = any(letter.isdigit() for letter in self.name)
        return f"{self.name}: {self.title}" if has_number else self.title


@dataclass(frozen=True, slots=True)
class PaperClaim:
    """A number from the paper's text, compared with ours."""

    section: str
    claim: str
    """The claim, in our words."""
    paper: str
    """The paper's number, as printed."""
    ours: str | None
    """Our number with its interval and n; None if it cannot be computed, with the reason in ``remark``."""
    source: str = ""
    """The texts or model behind our number."""
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Replication:
    """All content of one paper's replication."""

    title: str
    """One sentence: the topic and the sources."""
    citation: str
    exhibits: tuple[Exhibit, ...]
    claims: tuple[PaperClaim, ...] = ()
    findings: tuple[str, ...] = ()
    """The results in a few sentences; shown first."""
    remarks: tuple[str, ...] = ()
    """Caveats to read before quoting a number: the subset, differences from the paper and their reasons."""
    sources: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def load_published(paper: str, table: str) -> pl.DataFrame:
    """A table as printed, in the paper's units; its ``source`` is ``paper`` or ``paper: NAME``."""
    path = asset_path("papers", paper, f"{table}.tsv")
    frame = pl.read_csv(path.read_bytes(), separator="\t", infer_schema_length=None)
    column = next((name for name in ("source", "model") if name in frame.columns), None)
    source = pl.format("paper: {}", column) if column else pl.lit("paper")
    return frame.select(source.alias("source"), pl.all().exclude("source", "model"))


def build_table(
    paper: str, identifier: str, title: str, ours: pl.DataFrame, notes: tuple[str, ...], decimals: int = 2
) -> Exhibit:
    """A table of the paper: its rows followed by ours, with the columns of both."""
    frame = pl.concat([load_published(paper, identifier), ours], how="diagonal_relaxed")
    return Exhibit(identifier, title, frame, notes, decimals)


ROWS_SHOWN = 500
"""Rows of a table on the page; the Parquet file has all."""
MANY = 8
"""Tables with more columns are printed in landscape, and get a scroll hint in small windows."""
TALL = 30
"""Tables with more rows scroll in their own box, so that the content below stays reachable."""
LONG = 40
"""Cells with more characters count as prose, and may wrap."""
SHORT = 24
"""A claim's number (with interval and n) with more characters may wrap."""
_MISSING = "–"
_STYLE = Path(__file__).with_name("page.css")


def markdown_page(replication: Replication) -> str:
    """The replication as one Markdown page."""
    parts = [f"# {escape_markdown(replication.title)}", f"Paper: {escape_markdown(replication.citation)}"]
    if replication.findings:
        parts += ["## Findings", *(f"- {escape_markdown(finding)}" for finding in replication.findings)]
    parts += ["## Read this first", *(f"- {escape_markdown(remark)}" for remark in replication.remarks)]
    for exhibit in replication.exhibits:
        shown = f"![{escape_markdown(exhibit.alt)}]({exhibit.id}.svg)" if exhibit.svg else _grid(exhibit)
        parts += [f"## {escape_markdown(exhibit.heading)}", "", shown, *_notes(exhibit.notes)]
    if replication.claims:
        parts += ["[claims.md](claims.md) compares the numbers of the paper's text with ours."]
    return "\n\n".join(parts) + "\n"


def html_page(replication: Replication) -> str:
    """The replication as one self-contained HTML page, without scripts or network requests."""
    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    style = stylesheet() + _STYLE.read_text(encoding="utf-8")
    return environment.get_template("page.html.j2").render(
        replication=replication,
        grids={exhibit.id: _grid_values(exhibit) for exhibit in replication.exhibits},
        style=Markup(style),
        policy=security_policy(style, ""),
        tied=_keep_together,
        data_url=_data_url,
        long=LONG,
        tall=TALL,
        short=SHORT,
    )


def format_value(value: object, decimals: int) -> str:
    """A value as displayed; a missing one is a dash, never zero."""
    if value is None:
        return _MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        # A p-value of 3e-9 must not be shown as 0.
        is_shown = value == 0 or abs(value) >= 0.5 * 10**-decimals
        return (f"{value:,.{decimals}f}" if is_shown else f"{value:.1e}").replace("-", MINUS)
    if isinstance(value, int):
        return f"{value:,}".replace("-", MINUS)
    return str(value)


def estimate_cells(name: str, estimate: Estimate | Difference, *, scale: float = 1.0) -> dict[str, object]:
    """The three cells of an estimate: ``name``, ``name_low`` and ``name_high``."""
    value = estimate.value if isinstance(estimate, Estimate) else estimate.estimate
    numbers = {name: value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
    return {key: None if number is None else number * scale for key, number in numbers.items()}


def estimate_columns(name: str, value: str = "estimate") -> list[pl.Expr]:
    """An estimate and its interval as ``name``, ``name_low`` and ``name_high``."""
    return [pl.col(value).alias(name), *(pl.col(end).alias(f"{name}_{end}") for end in ("low", "high"))]


def merge_estimate_columns(
    frame: pl.DataFrame, decimals: int
) -> tuple[list[str], list[list[tuple[str, str]]]]:
    """Headers and cells of value and interval: ``x``, ``x_low`` and ``x_high`` share one cell."""
    bounds = {f"{name}{end}" for name in frame.columns for end in ("_low", "_high")}
    heads = [name for name in frame.columns if name not in bounds]
    return heads, [[_cell(row, head, decimals) for head in heads] for row in frame.iter_rows(named=True)]


def _cell(row: dict[str, object], head: str, decimals: int) -> tuple[str, str]:
    value, *ends = (format_value(row.get(f"{head}{end}"), decimals) for end in ("", "_low", "_high"))
    return value, "" if _MISSING in ends else f"[{ends[0]}, {ends[1]}]"


def _grid_values(exhibit: Exhibit) -> dict[str, object]:
    """Template variables for the table of an exhibit."""
    frame = exhibit.frame.head(ROWS_SHOWN)
    heads, rows = merge_estimate_columns(frame, exhibit.decimals)
    sources = frame["source"] if "source" in frame.columns else [""] * frame.height
    return {
        "columns": [head.replace("_", " ") for head in heads],
        # A column with only missing values counts as numeric too.
        "numeric": [frame.schema[head].is_numeric() or frame.schema[head] == pl.Null for head in heads],
        "rows": rows,
        "is_many": len(heads) > MANY,
        "printed": [source.startswith("paper") for source in sources],
        "left_out": exhibit.frame.height - frame.height,
    }


def _keep_together(words: str) -> str:
    """The text of a claim with no-break spaces between a number and its sign or name."""
    return words.replace(" %", "\u00a0%").replace("n = ", "n\u00a0=\u00a0").replace("< ", "<\u00a0")


def _data_url(svg: str) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


def _grid(exhibit: Exhibit) -> str:
    heads, rows = merge_estimate_columns(exhibit.frame, exhibit.decimals)
    cells = [[f"{value} {interval}".rstrip() for value, interval in row] for row in rows]
    return markdown_table([head.replace("_", " ") for head in heads], cells)


def _notes(notes: Sequence[str]) -> list[str]:
    return ["", *(f"- {escape_markdown(note)}" for note in notes)] if notes else []


def write_replication(replication: Replication, folder: Path) -> tuple[Path, ...]:
    """Write all files: Parquet and Markdown for each table, SVG and Parquet for each figure."""
    contents: dict[str, pl.DataFrame | str] = {}
    for exhibit in replication.exhibits:
        title = f"# {escape_markdown(exhibit.heading)}"
        page = "\n".join([title, "", _grid(exhibit), *_notes(exhibit.notes)]) + "\n"
        kind, text = ("svg", exhibit.svg) if exhibit.svg else ("md", page)
        contents |= {f"{exhibit.id}.parquet": exhibit.frame, f"{exhibit.id}.{kind}": text}
    if replication.claims:
        claims = pl.DataFrame(replication.claims, infer_schema_length=None)
        heads = [name.capitalize() for name in claims.columns]
        table = markdown_table(heads, claims.fill_null("-").iter_rows())
        contents["claims.parquet"] = claims
        contents["claims.md"] = f"# Claims in the text: paper and ours\n\n{table}\n"
    contents |= {"replication.md": markdown_page(replication), "report.html": html_page(replication)}
    for name, content in contents.items():
        if isinstance(content, str):
            write_text(folder / name, content)
            continue
        with replace_file(folder / name) as temporary:
            write_parquet(content, temporary)
    return tuple(folder / name for name in contents)
