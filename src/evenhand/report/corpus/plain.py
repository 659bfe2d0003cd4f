"""A corpus run as Markdown and as JSON."""

from __future__ import annotations

from evenhand.report.corpus.found import caveats, find
from evenhand.report.corpus.links import Link
from evenhand.report.corpus.page import Page, page
from evenhand.report.json import run_json
from evenhand.report.markdown_text import bullets, escaped, grid
from evenhand.store.run import Run

_TABLES = ("occurrence", "cooccurrence", "contrasts", "samples", "problems")
_MANIFEST = (
    *("package", "command", "name", "created", "ended", "identity", "execution", "hardware", "stages"),
    *("corpora", "warnings"),
)


def corpus_json(run: Run) -> str:
    """The report of a corpus run as JSON text."""
    found = find(run)
    return run_json(
        run, manifest=_MANIFEST, tables=_TABLES, verdict=found.verdict, caveats=caveats(run, found.unit)
    )


def corpus_markdown(run: Run) -> str:
    """The report of a corpus run as Markdown text."""
    content = page(run)
    found = content.found
    parts = [f"# {escaped(found.question)}", escaped(found.details), f"**{escaped(found.headline)}.**"]
    if found.largest:
        parts.append(bullets(_sentence(link.statement) for link in found.largest[:3]))
        parts.append(f"{escaped(found.ground)}.")
    else:
        parts.append(escaped(found.verdict))
    if found.sides:
        parts.append(bullets(found.sides))
    parts += ["## How often emotions occur", _occurrence(content)]
    for heat in content.maps:
        of_corpus = ["corpus"] if len(content.corpora) > 1 else []
        lines = [
            [group, *([corpus] if of_corpus else []), *(_cell(cell.link) for cell in cells)]
            for group, rows in heat.lines
            for corpus, cells in zip(content.corpora, rows, strict=True)
        ]
        parts += [
            f"## Odds ratios by {escaped(heat.axis)}",
            "An asterisk: clear of chance.",
            grid(["group", *of_corpus, *content.emotions], lines),
        ]
    if content.problems:
        shown = [f"{place}: {reason}" for place, reason in content.problems[:50]]
        parts += ["## Not counted as it stands", bullets(shown)]
    parts += ["## What this run cannot tell", bullets(content.caveats)]
    return "\n\n".join(parts) + "\n"


def _occurrence(content: Page) -> str:
    head = [
        "emotion",
        *(f"{corpus}: {what}" for corpus in content.corpora for what in ("count", "per million")),
    ]
    lines = [
        [emotion, *(text for rate in line for text in (rate.count, f"{rate.per_million} ({rate.interval})"))]
        for emotion, line in content.rates
    ]
    return grid(head, lines)


def _cell(link: Link) -> str:
    return f"{link.ratio}*" if link.standing == "supported" else link.short


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
