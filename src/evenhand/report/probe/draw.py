"""The report of a probe run as HTML, JSON and Markdown."""

from __future__ import annotations

from pathlib import Path

from evenhand.report.document import EXPLORING, document, whole_tables
from evenhand.report.forms import Forms
from evenhand.report.json import run_json
from evenhand.report.markdown_text import bullets, escaped, grid
from evenhand.report.probe.page import Page, page
from evenhand.report.probe.plots import HEIGHT, WIDTH
from evenhand.report.probe.terminal import probe_summary
from evenhand.report.table_row import WORDS
from evenhand.store.run import Run

_FOLDER = Path(__file__).parent
_TABLES = ("measures", "sets", "flips", "exclusions")
_MANIFEST = (
    *("package", "command", "name", "created", "ended", "identity", "execution", "hardware", "stages"),
    *("suites", "view", "warnings"),
)
_FLIPS_IN_MARKDOWN = 20


def probe_html(run: Run) -> str:
    """The report of a probe run as one HTML page."""
    tables, downloads = whole_tables({name: run.table(name) for name in _TABLES})
    return document(
        _FOLDER / "probe.html.j2",
        style=(_FOLDER / "probe.css").read_text(encoding="utf-8"),
        scripts=EXPLORING,
        page=page(run),
        words=WORDS,
        wide=WIDTH,
        high=HEIGHT,
        tables=tables,
        downloads=downloads,
    )


def probe_json(run: Run) -> str:
    """The report of a probe run as JSON text."""
    content = page(run)
    return run_json(
        run, manifest=_MANIFEST, tables=_TABLES, verdict=content.verdict, caveats=list(content.caveats)
    )


def probe_markdown(run: Run) -> str:
    """The report of a probe run as Markdown text."""
    content = page(run)
    parts = [f"# {escaped(content.question)}", escaped(content.details), f"**{escaped(content.headline)}.**"]
    if content.largest:
        parts.append(bullets(f"{cell.statement}, {cell.evidence}." for cell in content.largest[:3]))
    parts.append(f"{escaped(content.flip_sentence)}.")
    parts += [
        "## Pairs and emotions",
        escaped(f"ACS {content.view}; * clear of chance."),
        *_matrices(content),
    ]
    parts += _flips(content)
    parts += ["## What this run cannot tell", bullets(content.caveats)]
    facts = [(fact.name, fact.value) for fact in content.facts]
    parts += ["## Where the numbers come from", grid(("what", "value"), facts)]
    return "\n\n".join(parts) + "\n"


def _matrices(content: Page) -> list[str]:
    parts = []
    for matrix in content.matrices:
        rows = [
            (
                pair,
                *(
                    f"{cell.shown('acs', signed=True) or '-'}{'*' if cell.standing == 'supported' else ''} "
                    f"{cell.acs_words}".strip()
                    for cell in cells
                ),
            )
            for pair, cells in matrix.lines
        ]
        parts += [f"### {escaped(matrix.corpus)}: {escaped(matrix.axis)}"]
        parts += [grid(("pair", *matrix.emotions), rows)]
    return parts


def _flips(content: Page) -> list[str]:
    if not content.flips:
        return []
    rows = [
        (flip.pair, flip.text_a, flip.label_a, flip.text_b, flip.label_b)
        for flip in content.flips[:_FLIPS_IN_MARKDOWN]
    ]
    return ["## Classes that change", grid(("pair", "first", "class", "second", "class"), rows)]


FORMS = Forms(probe_html, probe_json, probe_markdown, probe_summary)
