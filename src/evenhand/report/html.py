r"""``report.html``: one file that opens from disk, asks nothing of the network and runs no text it shows.

The content-security policy allows the page's own style and script by their digests and nothing else, so
that even text that escaped escaping could not run. Model text is escaped by jinja2, or stands in a JSON
block with ``<`` written as ``\u003c`` and is shown by script as text.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import jinja2
import polars as pl
from markupsafe import Markup

from evenhand.core.assets import asset
from evenhand.core.digests import Json
from evenhand.report.findings import Findings
from evenhand.report.gaps import WORDS
from evenhand.report.packing import packed
from evenhand.report.page import Page, page
from evenhand.report.reading import mapping_at, text_at
from evenhand.report.strata import MOST
from evenhand.report.tables import columns
from evenhand.report.texts import Texts, texts
from evenhand.report.wording import name, visible
from evenhand.store.run import Run
from evenhand.store.schemas import SCHEMAS

SIZE_LIMIT = 5_000_000
"""Bytes a page may have; what tables and charts leave of it goes to the texts."""
_STATIC = Path(__file__).parent / "static"
_TEMPLATES = Path(__file__).parent / "templates"
_SCRIPTS = ("data.js", "packed.js", "tabs.js", "explore.js", "views.js", "cuts.js", "texts.js", "download.js")
_KEYS = ("suite", "model", "axis", "group", "baseline", "metric", "output")
_WITH_TEXTS = ("prompts", "generations", "scores", "examples", "explanations")
_FIRST = ("comparisons", "groups", "omnibus", "exclusions", "cuts")
_TABLES = (*_FIRST, *(name for name in SCHEMAS if name not in (*_WITH_TEXTS, *_FIRST)))
_MOST_BYTES = 1_500_000
"""Packed bytes of tables the page carries; what is beyond, in the order above, is only in the run folder."""


def html_report(run: Run) -> str:
    """The report of a run as one HTML page."""
    content = page(run)
    carried = _carried(run, content.found)
    budget = SIZE_LIMIT - len(_rendered(content, carried, _NO_TEXTS).encode("utf-8", "replace"))
    return _rendered(content, carried, texts(run, budget=budget))


def embedded(value: Json) -> Markup:
    """JSON for a script block: no byte of it can end the block or begin a comment."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return Markup(text)


def stylesheet() -> str:
    """The style every page of ours shares."""
    return asset("style", "tokens.css").read_text(encoding="utf-8") + "\n" + _static(("report.css",))


def policy(style: str, script: str) -> str:
    """The content-security policy of a page with this style and script."""
    return (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )


def tied(sentence: str) -> str:
    """The sentence with numbers kept on one line with what belongs to them."""
    for loose in (" %", "adjusted p ", "< 0", " points"):
        sentence = sentence.replace(loose, loose.replace(" ", "\u00a0"))
    return sentence


_NO_TEXTS = Texts({}, per_bar=0, left_out=0)


@dataclass(frozen=True, slots=True)
class _Carried:
    """What the page carries beside what it shows."""

    data: Markup
    """The keys of rows that are clicked, read at once."""
    tables: Markup
    """Whole tables, packed, unpacked after the page is there."""
    names: tuple[str, ...]
    """The tables that can be downloaded."""


def _carried(run: Run, found: Findings) -> _Carried:
    tables = {name: run.table(name) for name in _TABLES}
    keys: dict[str, Json] = {
        name: columns(tables[name].select([key for key in _KEYS if key in tables[name].columns]))
        for name in ("groups", "comparisons")
    }
    cards = mapping_at(run.manifest, "metrics")
    words = {spec: visible(text_at(cards, spec, "word_scores")) for spec in cards}
    whole, names = whole_tables(tables)
    explained: Json = {spec: said for spec, said in words.items() if said}
    return _Carried(
        data=embedded({**keys, "explained": explained, "measures": _measures(found)}),
        tables=whole,
        names=(*names, "texts"),
    )


def whole_tables(tables: Mapping[str, pl.DataFrame]) -> tuple[Markup, tuple[str, ...]]:
    """The tables for download, packed, and the names of those that have rows and found room."""
    whole = _that_fit({name: columns(_flat(table)) for name, table in tables.items() if table.height})
    return Markup(packed(whole)), tuple(whole)


def _measures(found: Findings) -> dict[str, Json]:
    """What the drawer of texts has to know of a measure."""
    known: dict[str, dict[str, Json]] = {}
    for (metric, output), measure in found.measures.items():
        known.setdefault(metric, {})[output] = {
            "title": measure.title,
            "kind": measure.kind,
            "label": measure.label,
            "cut": measure.cut,
            "texts": measure.texts,
            "beyond": list(measure.beyond),
        }
    return dict(known)


def _that_fit(tables: Mapping[str, Json]) -> dict[str, Json]:
    sizes = {name: len(packed(table)) for name, table in tables.items()}
    ends = accumulate(sizes.values())
    return {name: tables[name] for name, end in zip(sizes, ends, strict=True) if end <= _MOST_BYTES}


def _flat(table: pl.DataFrame) -> pl.DataFrame:
    """Lists as words, which is what a cell of a CSV can hold."""
    lists = [name for name, kind in table.schema.items() if isinstance(kind, pl.List)]
    return table.with_columns(pl.col(lists).list.eval(pl.element().cast(pl.String)).list.join(" "))


def _rendered(content: Page, carried: _Carried, shown: Texts) -> str:
    style, script = f"{stylesheet()}\n{_static(('audit.css',))}", script_of(_SCRIPTS)
    return (
        environment()
        .get_template("report.html.j2")
        .render(
            page=content,
            texts=shown,
            words=WORDS,
            style=Markup(style),
            script=Markup(script),
            policy=policy(style, script),
            data=carried.data,
            tables=carried.tables,
            downloads=carried.names,
            most=MOST,
            examples=Markup(packed(shown.data)),
        )
    )


def environment(*folders: Path) -> jinja2.Environment:
    """Templates of ours and of further folders, with the filters they use; everything is escaped."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader([*folders, _TEMPLATES]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"words": name, "count": lambda amount: f"{amount:,}", "tied": tied}
    return made


def _static(files: Sequence[str]) -> str:
    return "\n".join((_STATIC / file).read_text(encoding="utf-8") for file in files)


def script_of(files: Sequence[str], more: str = "") -> str:
    """The shared scripts and more, in one function that keeps their names out of the page's global scope."""
    return f'(() => {{\n"use strict";\n{_static(files)}\n{more}}})();'


def _digest(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"
