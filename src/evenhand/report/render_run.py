"""``render`` and ``summarise_run``: the report of a run in every format.

In Markdown and on the terminal names and texts are escaped, so that none is read as markup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Final

from rich import box
from rich.console import Group, JustifyMethod, RenderableType
from rich.table import Table as Grid
from rich.text import Text as Line

from evenhand.core.errors import InputError
from evenhand.core.options import checks_options, split_names
from evenhand.report.document import Block, Bullets, Cards, Report, Table, Text
from evenhand.report.html import to_html
from evenhand.report.json_tables import to_json
from evenhand.report.manifest import read_text
from evenhand.report.wording import (
    bullet_list,
    escape_markdown,
    format_count,
    markdown_table,
    replace_minus,
    show_control_characters,
)
from evenhand.store.atomic_writes import write_text
from evenhand.store.run import Run, run_errors

EXPORTS: Final[Mapping[str, tuple[str, str]]] = {
    "lm-eval": ("lm_eval.json", "lm_eval_results"),
    "model-card": ("model_card.md", "model_card"),
}
"""What other tools read, of audits and scored texts: file, and writer in `_EXPORTS_MODULE`, by format."""
_EXPORTS_MODULE = "evenhand.audits.report.exports"
_AUDIT = "evenhand.audits.report.page"
_MODULES: Final[Mapping[str, str]] = {
    "corpus": "evenhand.corpus.report.page",
    "compare": "evenhand.audits.report.compare_report",
    "probe": "evenhand.probes.report.page",
    "associate": "evenhand.audits.report.association_report",
    **dict.fromkeys(("agreement", "ratings", "validate"), "evenhand.annotate.report.page"),
}
"""Command to the module with its ``build_report``; by name, since it is in a room above this one."""


@checks_options
def render(run: Run | Path | str, formats: str | Sequence[str] = ("html", "json")) -> dict[str, Path]:
    """The written files by format, from the tables of a run.

    Formats: ``html``, ``md``, ``json``; for other tools ``lm-eval`` and ``model-card``, which write
    ``lm_eval.json`` and ``model_card.md``. Each file is whole or absent; an earlier one is replaced.
    """
    with run_errors(run):
        run, formats = run if isinstance(run, Run) else Run.open(run), split_names(formats) or ()
        if unknown := sorted(set(formats) - set(RENDERERS) - set(EXPORTS)):
            raise InputError(
                f"the report format {unknown[0]!r} is not known",
                expected=", ".join([*RENDERERS, *EXPORTS]),
                fix="name one or more of these",
            )
        if (exports := sorted(set(formats) & set(EXPORTS))) and _module(run) != _AUDIT:
            raise InputError(
                f"a run of `evenhand {read_text(run.manifest, 'identity', 'command')}` has no {exports[0]}",
                expected=f"{', '.join(RENDERERS)}; {exports[0]} for runs of audit and score",
                fix="name another format",
            )
        report, paths = build_report(run), {}
        for name in formats:
            if name in EXPORTS:
                file, function = EXPORTS[name]
                text = getattr(import_module(_EXPORTS_MODULE), function)(run)
            else:
                file, text = f"report.{name}", RENDERERS[name](report)
            write_text(run.path / file, text)
            paths[name] = run.path / file
        return paths


def build_report(run: Run) -> Report:
    """The content of a run's report."""
    builder: Callable[[Run], Report] = import_module(_module(run)).build_report
    return builder(run)


def format_report(run: Run, name: str) -> str:
    """The report of a run as ``html``, ``json`` or ``md`` text."""
    return RENDERERS[name](build_report(run))


def summarise_run(run: Run) -> RenderableType:
    """The verdict of a run and its most important tables, for the terminal."""
    report = build_report(run)
    parts: list[RenderableType] = [_line(line, style="bold") for line in report.verdicts]
    shown = report.select_sections("terminal")
    parts += [part for section, blocks in shown for block in blocks for part in _print(block, section.title)]
    return Group(*parts)


def _module(run: Run) -> str:
    return _MODULES.get(read_text(run.manifest, "identity", "command"), _AUDIT)


def to_markdown(report: Report) -> str:
    """The report as Markdown text."""
    parts = [f"# {escape_markdown(report.question)}", escape_markdown(report.details)]
    parts += [f"**{escape_markdown(line)}**" for line in report.verdicts]
    for section, blocks in report.select_sections("md"):
        parts += [f"## {escape_markdown(section.title)}"] if section.title else []
        level = "###" if section.title else "##"
        parts += [part for block in blocks for part in _write_markdown(block, level)]
    parts += ["## Limits of this run", bullet_list([*report.caveats, *report.notes])]
    facts = [(fact.name, fact.value) for fact in report.facts]
    parts += ["## Where the numbers come from", markdown_table(("what", "value"), facts)]
    return "\n\n".join(parts) + "\n"


def _write_markdown(block: Block, level: str) -> Iterator[str]:
    if isinstance(block, Table | Bullets | Cards) and block.title:
        yield f"{level} {escape_markdown(block.title)}"
    if isinstance(block, Text):
        heading = f"{level} " if block.style == "heading" else ""
        yield heading + escape_markdown(block.text)
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
        # The first letter is small unless its word is an abbreviation.
        words = [column.head for column in heads]
        yield markdown_table(
            [word if word[1:2].isupper() else word[:1].lower() + word[1:] for word in words], rows
        )
        if hidden:
            yield f"{hidden:,} more rows are in `{block.source}.parquet`."


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


RENDERERS: Final[Mapping[str, Callable[[Report], str]]] = {
    "html": to_html,
    "json": to_json,
    "md": to_markdown,
}
