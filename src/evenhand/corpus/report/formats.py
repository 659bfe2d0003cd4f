"""The report of a corpus run in all its forms."""

from __future__ import annotations

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evenhand.audits.report.formats import run_json
from evenhand.corpus.report.findings import find_links, list_caveats
from evenhand.corpus.report.html import corpus_html
from evenhand.corpus.report.link_rows import CorpusLink
from evenhand.corpus.report.page import LIMIT, CorpusPage, HeatMap, build_page
from evenhand.report.report_formats import ReportFormats
from evenhand.report.wording import bullet_list, escape_markdown, markdown_table
from evenhand.store.run import Run

_TABLES = ("occurrence", "cooccurrence", "contrasts", "samples", "problems")
_MANIFEST = (
    *("package", "command", "name", "created", "ended", "identity", "execution", "hardware", "stages"),
    *("corpora", "warnings"),
)


def corpus_json(run: Run) -> str:
    """The report of a corpus run as JSON text."""
    found = find_links(run)
    return run_json(
        run, manifest=_MANIFEST, tables=_TABLES, verdict=found.verdict, caveats=list_caveats(run, found.unit)
    )


def corpus_markdown(run: Run) -> str:
    """The report of a corpus run as Markdown text."""
    content = build_page(run)
    found = content.findings
    parts = [
        f"# {escape_markdown(found.question)}",
        escape_markdown(found.details),
        f"**{escape_markdown(found.headline)}.**",
    ]
    if found.largest:
        parts.append(bullet_list(_sentence(link.statement) for link in found.largest[:3]))
        parts.append(f"{escape_markdown(found.ground)}.")
    else:
        parts.append(escape_markdown(found.verdict))
    if found.sides:
        parts.append(bullet_list(found.sides))
    parts += ["## How often emotions occur", _occurrence(content)]
    for heat in content.maps:
        of_corpus = ["corpus"] if len(content.corpora) > 1 else []
        lines = [
            [group, *([corpus] if of_corpus else []), *(_cell(cell.link) for cell in cells)]
            for group, rows in heat.lines
            for corpus, cells in zip(content.corpora, rows, strict=True)
        ]
        parts += [
            f"## Odds ratios by {escape_markdown(heat.axis)}",
            "An asterisk: clear of chance.",
            markdown_table(["group", *of_corpus, *content.emotions], lines),
        ]
    if content.problems:
        shown = [f"{place}: {reason}" for place, reason in content.problems[:50]]
        parts += ["## Not counted as it stands", bullet_list(shown)]
    parts += ["## What this run cannot tell", bullet_list(content.caveats)]
    return "\n\n".join(parts) + "\n"


def _occurrence(content: CorpusPage) -> str:
    head = [
        "emotion",
        *(f"{corpus}: {what}" for corpus in content.corpora for what in ("count", "per million")),
    ]
    lines = [
        [emotion, *(text for rate in line for text in (rate.count, f"{rate.per_million} ({rate.interval})"))]
        for emotion, line in content.rates
    ]
    return markdown_table(head, lines)


def _cell(link: CorpusLink) -> str:
    return f"{link.ratio}*" if link.standing == "supported" else link.short


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def corpus_summary(run: Run) -> RenderableType:
    """The verdict, how often emotions occur, and the odds ratios by axis; names go in as plain text."""
    content = build_page(run)
    parts: list[RenderableType] = [Text(content.findings.verdict, style="bold")]
    if not content.findings.units:
        return Group(*parts)
    parts += [Text(line) for line in content.findings.sides]
    parts += [Text(""), _rates(content)]
    for number, corpus in enumerate(content.corpora):
        parts += [_map(content, heat, number, corpus) for heat in content.maps]
    parts.append(Text("odds ratios; * clear of chance, after correction over all links", style="dim"))
    parts += [Text(f"limited by {fact.value}", style="dim") for fact in content.facts if fact.name == LIMIT]
    return Group(*parts)


def _rates(content: CorpusPage) -> Table:
    table = _grid(f"{content.findings.unit}s with the emotion, per million")
    table.add_column("emotion")
    for corpus in content.corpora:
        table.add_column(Text(corpus), justify="right")
    for emotion, line in content.rates:
        cells = [
            f"{rate.per_million} ({rate.interval})" if rate.interval else rate.per_million for rate in line
        ]
        table.add_row(Text(emotion), *cells)
    return table


def _map(content: CorpusPage, heat: HeatMap, number: int, corpus: str) -> Table:
    table = _grid(heat.axis if len(content.corpora) == 1 else f"{corpus}: {heat.axis}")
    table.add_column("group", overflow="fold")
    for emotion in content.emotions:
        table.add_column(Text(emotion), justify="right", no_wrap=True)
    for group, rows in heat.lines:
        own = [cell.link for cell in rows[number]]
        table.add_row(
            Text(group),
            *(f"{link.short}{'*' if link.standing == 'supported' else ' '}" for link in own),
        )
    return table


def _grid(title: str) -> Table:
    return Table(
        box=box.SIMPLE_HEAD, title=Text(title), title_justify="left", pad_edge=False, show_edge=False
    )


FORMATS = ReportFormats(corpus_html, corpus_json, corpus_markdown, corpus_summary)
