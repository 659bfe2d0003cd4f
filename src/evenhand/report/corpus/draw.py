"""The report of a corpus run: heat maps of emotions and groups, tables, the sentences behind each cell."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2
import polars as pl
from markupsafe import Markup
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evenhand.core.digests import Json
from evenhand.store.run import Run

CAVEATS = (
    "Words are counted, not feelings: a term may stand in another sense, be negated or be quoted.",
    "A sentence with an emotion and a group need not say that the group feels it or is its target.",
    "Sentences that name a group tend to be longer, and longer ones hold more of everything: it raises odds.",
    "Intervals take sentences as independent; those of one text are not, so that they are too narrow.",
    "Groups are counted where they are named; people who are not named as members are not seen.",
)
_SPECIAL = frozenset("\\`*_{}[]()<>#+!|~$")
_STEPS = 5
_STRONGEST = 2.0
"""Bits (log2 of the odds ratio) at which the colour of a heat map is full."""
_SAMPLES_SHOWN = 3
_CLEAR = 0.05
"""Adjusted p up to which a link is called clear."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One field of a heat map."""

    emotion: str
    group: str
    text: str
    detail: str
    shade: str
    """``up-1`` to ``up-5`` (more than the baseline), ``down-1`` to ``down-5``, or empty."""
    samples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Emotions by groups of one axis in one corpus."""

    corpus: str
    axis: str
    emotions: tuple[str, ...]
    lines: tuple[tuple[str, tuple[Cell, ...]], ...]


def corpus_html(run: Run) -> str:
    """The report of a corpus run as one HTML page without scripts."""
    folder = Path(__file__).parent
    style = (folder / "page.css").read_text(encoding="utf-8")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.j2").render(
        name=run.manifest["name"],
        command=run.manifest["command"],
        facts=_facts(run),
        occurrence=_rows(run.table("occurrence")),
        maps=heat_maps(run),
        problems=_rows(run.table("problems")),
        caveats=CAVEATS,
        warnings=run.manifest["warnings"],
        verdict=verdict(run),
        style=Markup(style),
        policy=f"default-src 'none'; style-src {_digest(style)}; base-uri 'none'; form-action 'none'",
    )


def corpus_json(run: Run) -> str:
    """The report of a corpus run as JSON text."""
    tables: dict[str, Json] = {
        name: _rows(run.table(name)) for name in ("occurrence", "cooccurrence", "samples", "problems")
    }
    keys = ("package", "command", "name", "created", "ended", "identity", "execution", "hardware", "stages")
    manifest = {key: run.manifest.get(key) for key in (*keys, "corpora", "warnings")}
    content = {"format": 1, "verdict": verdict(run), "caveats": list(CAVEATS), "manifest": manifest, **tables}
    return json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def corpus_markdown(run: Run) -> str:
    """The report of a corpus run as Markdown text."""
    parts = [f"# Emotions and groups in {_escaped(run.manifest['name'])}", f"**{_escaped(verdict(run))}**"]
    head = ("corpus", "emotion", "count", "per million")
    found = [
        (row["corpus"], row["emotion"], f"{row['count']:,}", _number(row["per_million"]))
        for row in run.table("occurrence").iter_rows(named=True)
    ]
    parts += ["## Occurrence", _markdown_table(head, found)]
    for heat in heat_maps(run):
        lines = [(group, *(cell.text for cell in cells)) for group, cells in heat.lines]
        parts += [
            f"## {_escaped(heat.corpus)}: {_escaped(heat.axis)}",
            _markdown_table(("group", *heat.emotions), lines),
        ]
    problems = [str(row["reason"]) for row in run.table("problems").iter_rows(named=True)]
    parts += ["## What this cannot tell", "\n".join(f"- {line}" for line in CAVEATS)]
    if problems:
        parts += ["## Not counted as it stands", "\n".join(f"- {_escaped(line)}" for line in problems[:50])]
    return "\n\n".join(parts) + "\n"


def corpus_summary(run: Run) -> RenderableType:
    """The run in the terminal: the verdict and both tables, within 80 columns."""
    parts: list[RenderableType] = [Text(verdict(run), style="bold"), Text("")]
    table = Table(box=box.SIMPLE_HEAD, title="Emotions", title_justify="left")
    for column in ("corpus", "emotion", "count", "per million"):
        table.add_column(column, justify="left" if column in ("corpus", "emotion") else "right")
    for row in run.table("occurrence").iter_rows(named=True):
        table.add_row(
            Text(row["corpus"]), Text(row["emotion"]), f"{row['count']:,}", _number(row["per_million"])
        )
    parts.append(table)
    for heat in heat_maps(run):
        grid = Table(
            box=box.SIMPLE_HEAD, title=f"{heat.corpus}: percent by {heat.axis}", title_justify="left"
        )
        grid.add_column("group")
        for emotion in heat.emotions:
            grid.add_column(emotion, justify="right")
        for group, cells in heat.lines:
            grid.add_row(Text(group), *(cell.text for cell in cells))
        parts.append(grid)
    return Group(*parts)


def verdict(run: Run) -> str:
    """The strongest links of the run in one sentence."""
    table = run.table("cooccurrence").filter(pl.col("odds_ratio").is_not_null())
    clear = table.filter(pl.col("p_adjusted") <= _CLEAR)
    if clear.is_empty():
        return f"None of {table.height:,} links of an emotion with a group is clear of its baseline."
    size = pl.col("odds_ratio").log().abs()
    row = clear.sort(size, descending=True).row(0, named=True)
    more = "more" if row["odds_ratio"] > 1 else "less"
    factor = row["odds_ratio"] if row["odds_ratio"] > 1 else 1 / row["odds_ratio"]
    return (
        f"{clear.height:,} of {table.height:,} links of an emotion with a group are clear of sentences that "
        "name no group of the axis; "
        f"the strongest is {row['emotion']} with {row['group']} in {row['corpus']}: "
        f"{factor:.1f} times {more} (odds; corrected over all links)."
    )


def heat_maps(run: Run) -> list[HeatMap]:
    """A heat map for each corpus and axis; the baseline is its last line."""
    table, drawn = run.table("cooccurrence"), _samples(run)
    maps = []
    for (corpus, axis), part in table.group_by(["corpus", "axis"], maintain_order=True):
        lines: dict[str, list[Cell]] = {}
        for row in part.iter_rows(named=True):
            key = (row["corpus"], row["emotion"], row["group"])
            lines.setdefault(row["group"], []).append(_cell(row, drawn.get(key, ())))
        emotions = tuple(part["emotion"].unique(maintain_order=True))
        found = tuple((group, tuple(cells)) for group, cells in lines.items())
        maps.append(HeatMap(str(corpus), str(axis), emotions, found))
    return maps


def _samples(run: Run) -> dict[tuple[str, str, str], tuple[str, ...]]:
    found: dict[tuple[str, str, str], tuple[str, ...]] = {}
    for row in run.table("samples").iter_rows(named=True):
        key = (row["corpus"], row["emotion"], row["group"])
        if len(found.get(key, ())) < _SAMPLES_SHOWN:
            found[key] = (*found.get(key, ()), row["text"])
    return found


def _cell(row: Mapping[str, Json], drawn: Sequence[str]) -> Cell:
    percent, ratio = row["percent"], row["odds_ratio"]
    detail = f"{row['count']:,} ({_number(row['per_million'])} per million)"
    if isinstance(ratio, float):
        ends = f" ({row['low']:.2f} to {row['high']:.2f})" if row["low"] is not None else ""
        detail += f"; odds ratio {ratio:.2f}{ends}, PMI {row['pmi']:+.2f} bits"
    adjusted = row["p_adjusted"]
    clear = isinstance(adjusted, float) and adjusted <= _CLEAR
    if isinstance(adjusted, float):
        detail += f", adjusted p {adjusted:.3f}"
    text = "" if percent is None else f"{percent:.2f}"
    return Cell(
        str(row["emotion"]), str(row["group"]), text, detail, _shade(ratio) if clear else "", tuple(drawn)
    )


def _shade(ratio: Json) -> str:
    if not isinstance(ratio, float) or ratio <= 0:
        return ""
    bits = math.log2(ratio)
    step = min(_STEPS, round(abs(bits) / _STRONGEST * _STEPS))
    return f"{'up' if bits > 0 else 'down'}-{step}" if step else ""


def _facts(run: Run) -> list[tuple[str, str]]:
    identity, counted = run.manifest["identity"], run.manifest["stages"].get("count", {})
    facts = [
        ("Counting", f"{identity['counting']}; a unit is a {identity['unit']}; rule {identity['rule']}"),
        ("Terms", f"digest {identity['terms']['digest']}"),
        ("Limited by", f"{counted.get('limited_by', '')} ({counted.get('seconds', 0)} s)"),
    ]
    for name, total in run.manifest.get("corpora", {}).items():
        size = f"{total['words']:,} words, {total['bytes']:,} bytes, {total['files']:,} files"
        without = f"{total['units_without_group']:,} name no group"
        facts.append((name, f"{total['units']:,} units, of which {without}; {size}"))
    return facts


def _markdown_table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    body = [[_escaped(str(cell)) for cell in line] for line in lines]
    return "\n".join(
        f"| {' | '.join(line)} |" for line in [[*map(_escaped, head)], ["---"] * len(head), *body]
    )


def _number(value: Json) -> str:
    return f"{value:,.1f}" if isinstance(value, float) else ""


def _escaped(text: str) -> str:
    line = " ".join(text.split()).replace("&", "&amp;")
    return "".join(f"\\{letter}" if letter in _SPECIAL else letter for letter in line)


def _rows(table: pl.DataFrame) -> list[dict[str, Json]]:
    return table.to_dicts()


def _digest(style: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()}'"
