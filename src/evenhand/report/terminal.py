"""A report on the terminal. Names go in as plain text, so that none is read as markup or as a colour."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import Group, JustifyMethod, RenderableType
from rich.table import Table as Grid
from rich.text import Text as Line

from evenhand.report.document import Block, Bullets, Report, Table, Text
from evenhand.report.wording import format_count, replace_minus, show_control_characters


def to_terminal(report: Report) -> RenderableType:
    """The verdicts, and what the report has for a terminal."""
    parts: list[RenderableType] = [_line(line, style="bold") for line in report.verdicts]
    shown = report.shown("terminal")
    parts += [part for section, blocks in shown for block in blocks for part in _write(block, section.title)]
    return Group(*parts)


def _write(block: Block, title: str) -> Iterator[RenderableType]:
    if isinstance(block, Text):
        yield _line(block.text, style="dim" if block.style == "note" else "")
    elif isinstance(block, Bullets):
        yield from map(_line, block.items)
    elif isinstance(block, Table):
        heads, rows, hidden = block.lines("terminal")
        grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
        for column in heads:
            is_number = column.kind == "num"
            justify: JustifyMethod = "right" if is_number else "left"
            grid.add_column(_line(column.head), justify=justify, overflow="fold", no_wrap=is_number)
        for row in rows:
            grid.add_row(*map(_line, row))
        yield _line("")
        if name := block.title or title:
            yield _line(name, style="italic")
        yield grid
        if hidden:
            yield _line(f"{format_count(hidden, 'more row')} in {block.source}.parquet", style="dim")


def _line(text: str, style: str = "") -> Line:
    return Line(replace_minus(show_control_characters(text)), style=style)
