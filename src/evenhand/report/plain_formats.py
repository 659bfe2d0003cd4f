"""A report as Markdown and on the terminal: names and texts are escaped, so that none is read as markup."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import Group, JustifyMethod, RenderableType
from rich.table import Table as Grid
from rich.text import Text as Line

from evenhand.report.document import Block, Bullets, Cards, Report, Table, Text
from evenhand.report.wording import (
    bullet_list,
    escape_markdown,
    format_count,
    markdown_table,
    replace_minus,
    show_control_characters,
)


def to_markdown(report: Report) -> str:
    """The report as Markdown text."""
    parts = [f"# {escape_markdown(report.question)}", escape_markdown(report.details)]
    parts += [f"**{escape_markdown(line)}**" for line in report.verdicts]
    for section, blocks in report.select_sections("md"):
        parts += [f"## {escape_markdown(section.title)}"] if section.title else []
        parts += [
            part for block in blocks for part in _write_markdown(block, "###" if section.title else "##")
        ]
    parts += ["## Limits of this run", bullet_list([*report.caveats, *report.notes])]
    facts = [(fact.name, fact.value) for fact in report.facts]
    parts += ["## Where the numbers come from", markdown_table(("what", "value"), facts)]
    return "\n\n".join(parts) + "\n"


def _write_markdown(block: Block, level: str) -> Iterator[str]:
    if isinstance(block, Table | Bullets | Cards) and block.title:
        yield f"{level} {escape_markdown(block.title)}"
    if isinstance(block, Text):
        yield (
            f"{level} {escape_markdown(block.text)}"
            if block.style == "heading"
            else escape_markdown(block.text)
        )
    elif isinstance(block, Cards):
        sizes = [f"{card.size} {card.unit}".strip() for card in block.cards]
        claims = [card.claim[:1].upper() + card.claim[1:] for card in block.cards]
        evidence = [card.evidence for card in block.cards]
        yield bullet_list(map("{}: {}; {}.".format, claims, sizes, evidence))
    elif isinstance(block, Bullets):
        yield bullet_list(block.items[: block.shown])
        if hidden := len(block.items[block.shown :]):
            yield f"{hidden:,} more are on the page of the report."
    elif isinstance(block, Table):
        heads, rows, hidden = block.lines("md")
        yield markdown_table([_head(column.head) for column in heads], rows)
        if hidden:
            yield f"{hidden:,} more rows are in `{block.source}.parquet`."


def _head(words: str) -> str:
    """The head of a column: its first letter is small unless its word is an abbreviation."""
    return words if words[1:2].isupper() else words[:1].lower() + words[1:]


def to_terminal(report: Report) -> RenderableType:
    """The verdicts, and what the report has for a terminal."""
    parts: list[RenderableType] = [_line(line, style="bold") for line in report.verdicts]
    shown = report.select_sections("terminal")
    parts += [part for section, blocks in shown for block in blocks for part in _print(block, section.title)]
    return Group(*parts)


def _print(block: Block, title: str) -> Iterator[RenderableType]:
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
