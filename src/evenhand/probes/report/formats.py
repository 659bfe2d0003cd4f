"""The report of a probe run as HTML, JSON and Markdown."""

from __future__ import annotations

from pathlib import Path

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evenhand.audits.report.formats import run_json
from evenhand.probes.report.intensity_plots import HEIGHT, WIDTH
from evenhand.probes.report.page import ProbeMatrix, ProbePage, build_page
from evenhand.report.document import EXPLORE_SCRIPTS, pack_tables, render_document
from evenhand.report.report_formats import ReportFormats
from evenhand.report.standings import STANDING_WORDS
from evenhand.report.wording import bullet_list, escape_markdown, markdown_table
from evenhand.store.run import Run


def probe_summary(run: Run) -> RenderableType:
    """The verdict, the ACS of every pair and emotion, and how many classes change."""
    content = build_page(run)
    parts: list[RenderableType] = [Text(content.verdict, style="bold"), Text("")]
    parts += [_matrix(matrix) for matrix in content.matrices]
    parts.append(
        Text(
            f"ACS {content.view}: above 0, the second group of the pair is higher; below 0, the first. "
            "* clear of chance after correction; ! demographic parity below 0.80",
            style="dim",
        )
    )
    parts.append(Text(f"{content.flip_sentence}."))
    return Group(*parts)


def _matrix(matrix: ProbeMatrix) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD,
        title=Text(f"{matrix.corpus}: {matrix.axis}"),
        title_justify="left",
        pad_edge=False,
        show_edge=False,
    )
    table.add_column("pair", overflow="fold")
    for emotion in matrix.emotions:
        table.add_column(Text(emotion), justify="right", no_wrap=True)
    for pair, cells in matrix.lines:
        marks = [
            f"{cell.format_number('acs', signed=True) or '-'}{'*' if cell.standing == 'supported' else ' '}"
            f"{'!' if cell.is_below_parity else ' '}"
            for cell in cells
        ]
        table.add_row(Text(pair), *marks)
    return table


_FOLDER = Path(__file__).parent
_TABLES = ("measures", "sets", "flips", "exclusions")
_MANIFEST = (
    *("package", "command", "name", "created", "ended", "identity", "execution", "hardware", "stages"),
    *("suites", "view", "warnings"),
)
_FLIPS_IN_MARKDOWN = 20


def probe_html(run: Run) -> str:
    """The report of a probe run as one HTML page."""
    tables, downloads = pack_tables({name: run.table(name) for name in _TABLES})
    return render_document(
        _FOLDER / "probe.html.j2",
        style=(_FOLDER / "probe.css").read_text(encoding="utf-8"),
        scripts=EXPLORE_SCRIPTS,
        page=build_page(run),
        words=STANDING_WORDS,
        wide=WIDTH,
        high=HEIGHT,
        tables=tables,
        downloads=downloads,
    )


def probe_json(run: Run) -> str:
    """The report of a probe run as JSON text."""
    content = build_page(run)
    return run_json(
        run, manifest=_MANIFEST, tables=_TABLES, verdict=content.verdict, caveats=list(content.caveats)
    )


def probe_markdown(run: Run) -> str:
    """The report of a probe run as Markdown text."""
    content = build_page(run)
    parts = [
        f"# {escape_markdown(content.question)}",
        escape_markdown(content.details),
        f"**{escape_markdown(content.headline)}.**",
    ]
    if content.largest:
        parts.append(bullet_list(f"{cell.statement}, {cell.evidence}." for cell in content.largest[:3]))
    parts.append(f"{escape_markdown(content.flip_sentence)}.")
    parts += [
        "## Pairs and emotions",
        escape_markdown(f"ACS {content.view}; * clear of chance."),
        *_matrices(content),
    ]
    parts += _flips(content)
    parts += ["## What this run cannot tell", bullet_list(content.caveats)]
    facts = [(fact.name, fact.value) for fact in content.facts]
    parts += ["## Where the numbers come from", markdown_table(("what", "value"), facts)]
    return "\n\n".join(parts) + "\n"


def _matrices(content: ProbePage) -> list[str]:
    parts = []
    for matrix in content.matrices:
        rows = [
            (
                pair,
                *(
                    f"{cell.format_number('acs', signed=True) or '-'}"
                    f"{'*' if cell.standing == 'supported' else ''} {cell.acs_words}".strip()
                    for cell in cells
                ),
            )
            for pair, cells in matrix.lines
        ]
        parts += [f"### {escape_markdown(matrix.corpus)}: {escape_markdown(matrix.axis)}"]
        parts += [markdown_table(("pair", *matrix.emotions), rows)]
    return parts


def _flips(content: ProbePage) -> list[str]:
    if not content.flips:
        return []
    rows = [
        (flip.pair, flip.text_a, flip.label_a, flip.text_b, flip.label_b)
        for flip in content.flips[:_FLIPS_IN_MARKDOWN]
    ]
    return ["## Classes that change", markdown_table(("pair", "first", "class", "second", "class"), rows)]


FORMATS = ReportFormats(probe_html, probe_json, probe_markdown, probe_summary)
