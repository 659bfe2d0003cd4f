r"""A report as one HTML file that opens from disk and asks nothing of the network.

The content-security policy allows the page's own style and script by their digests and nothing else, so
that even text that escaped escaping could not run. Model text is escaped by jinja2, or stands in a JSON
block with ``<`` written as ``\u003c`` and is shown by script as text.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache, lru_cache
from itertools import accumulate, groupby
from pathlib import Path

import jinja2
import polars as pl
import polars.selectors as cs
from markupsafe import Markup, escape

from evenhand._version import __version__
from evenhand.core.digests import Json
from evenhand.core.files import asset_path
from evenhand.report.charts import element
from evenhand.report.document import Report
from evenhand.report.json_tables import to_columns
from evenhand.report.verdicts import DEFINITIONS
from evenhand.report.wording import format_name, show_control_characters

SIZE_LIMIT = 5_000_000
"""Bytes a page may have; what tables and charts leave of it goes to the texts."""
_STATIC = Path(__file__).parent / "static"
_TEMPLATES = Path(__file__).parent / "templates"
_MOST_BYTES = 1_500_000
"""Packed bytes of tables the page carries; what is beyond, in the order given, is only in the run folder."""
_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_DEFINED = re.compile("|".join(DEFINITIONS))


def to_html(report: Report) -> str:
    """The report as one page."""
    page = report.page
    style = stylesheet()
    if page.style:
        style += "\n" + (page.folder / page.style).read_text(encoding="utf-8")
    files = [_STATIC / file for file in page.scripts] + [page.folder / page.script] * bool(page.script)
    # One function keeps the names of the scripts out of the page's global scope.
    lines = ["(() => {", '"use strict";', *(file.read_text(encoding="utf-8") for file in files), "})();"]
    script = "\n".join(lines)
    tables, downloads = pack_tables({name: report.run.table(name) for name in page.downloads})
    (_, opening), *sections = report.select_sections("html")
    content = {
        "report": report,
        "headlines": [report.headline] if report.headline else report.verdicts,
        "opening": opening,
        "sections": sections,
        "groups": [(name, list(part)) for name, part in groupby(sections, lambda pair: pair[0].group)],
        "style": Markup(style),
        "script": Markup(script),
        "policy": security_policy(style, script),
        "version": __version__,
        "data": embed_json(dict(page.data)),
        "tables": tables,
        "downloads": (*downloads, "texts") if page.embed else downloads,
    }
    template = _environment(page.folder).get_template("page.html.j2")
    if not page.embed:
        return show_control_characters(template.render(content, examples="", texts_note=""))
    # Text that is escaped cannot hold these marks.
    texts_mark, note_mark = Markup("<!--texts-->"), Markup("<!--note-->")
    source = show_control_characters(template.render(content, examples=texts_mark, texts_note=note_mark))
    texts, left_out = page.embed(SIZE_LIMIT - len(source.encode("utf-8", "replace")))
    note = element("li", left_out) if left_out else ""
    return source.replace(note_mark, note, 1).replace(texts_mark, pack_json(dict(texts)), 1)


def pack_json(value: Json) -> str:
    """JSON as base64 of gzip, the same for the same value; browsers unpack it with `DecompressionStream`.

    Texts take a third of their room, and nothing of them can be read as markup.
    """
    # A lone half of a surrogate pair has no UTF-8. Higher levels take three times as long for two per cent.
    packed = gzip.compress(_JSON.encode(value).encode("utf-8", "replace"), 6, mtime=0)
    return base64.b64encode(packed).decode("ascii")


def embed_json(value: Json) -> Markup:
    """JSON for a script block: no byte of it can end the block or begin a comment."""
    text = _JSON.encode(value)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return Markup(text)


def pack_tables(tables: Mapping[str, pl.DataFrame]) -> tuple[Markup, tuple[str, ...]]:
    """The tables for download, packed, and the names of those that have rows and found room."""
    # Lists as words, which is what a cell of a CSV can hold.
    join = cs.list().list.eval(pl.element().cast(pl.String)).list.join(" ")
    columns: dict[str, Json] = {
        name: to_columns(table.with_columns(join)) for name, table in tables.items() if table.height
    }
    ends = accumulate(len(pack_json(table)) for table in columns.values())
    fitting = {name: columns[name] for name, end in zip(columns, ends, strict=True) if end <= _MOST_BYTES}
    return Markup(pack_json(fitting)), tuple(fitting)


def stylesheet() -> str:
    """The style every page of ours shares."""
    files = (asset_path("style", "tokens.css"), _STATIC / "report.css")
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


def security_policy(style: str, script: str) -> str:
    """The content-security policy of a page with this style and script."""
    style_digest, script_digest = (
        f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"
        for source in (style, script)
    )
    return (
        f"default-src 'none'; style-src {style_digest}; script-src {script_digest}; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )


@lru_cache(maxsize=512)
def define_words(text: str, *, can_focus: bool = False) -> Markup:
    """The text with each verdict word and its definition, shown on hover and where it can take the focus."""
    stop = Markup(' tabindex="0"') if can_focus else ""
    wrapped = Markup('<abbr class="term" title="{}"{}>{}</abbr>')
    # No definition has a letter that escaping changes.
    return Markup(
        _DEFINED.sub(lambda word: wrapped.format(DEFINITIONS[word[0]], stop, word[0]), str(escape(text)))
    )


def keep_together(sentence: str) -> str:
    """The sentence with numbers kept on one line with what belongs to them."""
    for loose in (" %", "adjusted p ", "< 0", " points"):
        sentence = sentence.replace(loose, loose.replace(" ", "\u00a0"))
    return sentence


@cache
def _environment(folder: Path) -> jinja2.Environment:
    """Templates of a folder and those all pages share, with the filters they use; everything is escaped.

    Cached, since it holds the compiled templates: compiling them is half the time of a small report.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([folder, _TEMPLATES]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "words": format_name,
        "count": lambda amount: f"{amount:,}",
        "tied": keep_together,
        "defined": define_words,
        "kind": lambda block: type(block).__name__,
    }
    return environment
