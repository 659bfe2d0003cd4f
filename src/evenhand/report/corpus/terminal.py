"""A corpus run in the terminal: the verdict and the tables, within 80 columns."""

from __future__ import annotations

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evenhand.report.corpus.page import LIMIT, HeatMap, Page, page
from evenhand.store.run import Run


def corpus_summary(run: Run) -> RenderableType:
    """The verdict, how often emotions occur, and the odds ratios by axis; names go in as plain text."""
    content = page(run)
    parts: list[RenderableType] = [Text(content.found.verdict, style="bold")]
    if not content.found.units:
        return Group(*parts)
    parts += [Text(line) for line in content.found.sides]
    parts += [Text(""), _rates(content)]
    for number, corpus in enumerate(content.corpora):
        parts += [_map(content, heat, number, corpus) for heat in content.maps]
    parts.append(Text("odds ratios; * clear of chance, after correction over all links", style="dim"))
    parts += [Text(f"limited by {fact.value}", style="dim") for fact in content.facts if fact.name == LIMIT]
    return Group(*parts)


def _rates(content: Page) -> Table:
    table = _grid(f"{content.found.unit}s with the emotion, per million")
    table.add_column("emotion")
    for corpus in content.corpora:
        table.add_column(Text(corpus), justify="right")
    for emotion, line in content.rates:
        cells = [
            f"{rate.per_million} ({rate.interval})" if rate.interval else rate.per_million for rate in line
        ]
        table.add_row(Text(emotion), *cells)
    return table


def _map(content: Page, heat: HeatMap, number: int, corpus: str) -> Table:
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
