"""A report as Markdown: names and texts are escaped, so that none is read as markup."""

from __future__ import annotations

from collections.abc import Iterator

from evenhand.report.document import Block, Bullets, Card, Cards, Report, Table, Text
from evenhand.report.wording import bullet_list, escape_markdown, markdown_table


def to_markdown(report: Report) -> str:
    """The report as Markdown text."""
    parts = [f"# {escape_markdown(report.question)}", escape_markdown(report.details)]
    parts += [f"**{escape_markdown(line)}**" for line in report.verdicts]
    for section, blocks in report.shown("md"):
        parts += [f"## {escape_markdown(section.title)}"] if section.title else []
        parts += [part for block in blocks for part in _write(block, "###" if section.title else "##")]
    parts += ["## What this run cannot tell", bullet_list([*report.caveats, *report.notes])]
    facts = [(fact.name, fact.value) for fact in report.facts]
    parts += ["## Where the numbers come from", markdown_table(("what", "value"), facts)]
    return "\n\n".join(parts) + "\n"


def _write(block: Block, level: str) -> Iterator[str]:
    if isinstance(block, Table | Bullets | Cards) and block.title:
        yield f"{level} {escape_markdown(block.title)}"
    if isinstance(block, Text):
        yield (
            f"{level} {escape_markdown(block.text)}"
            if block.style == "heading"
            else escape_markdown(block.text)
        )
    elif isinstance(block, Cards):
        yield bullet_list(map(_sentence, block.cards))
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


def _sentence(card: Card) -> str:
    size = f"{card.size} {card.unit}".strip()
    return f"{card.claim[:1].upper()}{card.claim[1:]}: {size}; {card.evidence}."
