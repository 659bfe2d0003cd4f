"""What every page of ours is made of: one file that opens from disk and asks nothing of the network.

The content-security policy allows the page's own style and script by their digests and nothing else, so
that even text that escaped escaping could not run. Model text is escaped by jinja2, or stands in a JSON
block with ``<`` written as ``\u003c`` and is shown by script as text.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import accumulate
from pathlib import Path

import jinja2
import polars as pl
from markupsafe import Markup

from evenhand.core.digests import Json
from evenhand.core.files import asset_path
from evenhand.report.json_tables import to_columns
from evenhand.report.wording import format_name


def pack_json(value: Json) -> str:
    """JSON as base64 of gzip, the same for the same value; browsers unpack it with `DecompressionStream`.

    Texts take a third of their room, and nothing of them can be read as markup.
    """
    # A lone half of a surrogate pair has no UTF-8.
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # The highest levels take three times as long for two per cent.
    return base64.b64encode(gzip.compress(text.encode("utf-8", "replace"), 6, mtime=0)).decode("ascii")


SIZE_LIMIT = 5_000_000
"""Bytes a page may have; what tables and charts leave of it goes to the texts."""
EXPLORE_SCRIPTS = ("data.js", "packed.js", "explore.js", "download.js")
"""The scripts of a page whose tables are filtered, sorted and downloaded."""
_STATIC = Path(__file__).parent / "static"
_TEMPLATES = Path(__file__).parent / "templates"
_MOST_BYTES = 1_500_000
"""Packed bytes of tables the page carries; what is beyond, in the order given, is only in the run folder."""


def render_document(
    template: Path,
    *,
    style: str,
    scripts: Sequence[str],
    script: str = "",
    data: Markup | None = None,
    **content: object,
) -> str:
    """The template as one HTML page with our style and scripts, its own after them, under their policy.

    ``data`` is what the scripts read at once, as `embedded` writes it; ``content`` are the names that the
    template uses.
    """
    styles, whole = f"{stylesheet()}\n{style}", _script_of(scripts, script)
    return (
        _environment(template.parent)
        .get_template(template.name)
        .render(
            style=Markup(styles),
            script=Markup(whole),
            policy=security_policy(styles, whole),
            data=embed_json({}) if data is None else data,
            **content,
        )
    )


def stylesheet() -> str:
    """The style every page of ours shares."""
    return asset_path("style", "tokens.css").read_text(encoding="utf-8") + "\n" + _static(("report.css",))


def security_policy(style: str, script: str) -> str:
    """The content-security policy of a page with this style and script."""
    return (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )


def pack_tables(tables: Mapping[str, pl.DataFrame]) -> tuple[Markup, tuple[str, ...]]:
    """The tables for download, packed, and the names of those that have rows and found room."""
    whole = _fitting_tables(
        {name: to_columns(_flat(table)) for name, table in tables.items() if table.height}
    )
    return Markup(pack_json(whole)), tuple(whole)


@cache
def _environment(folder: Path) -> jinja2.Environment:
    """Templates of a folder and those all pages share, with the filters they use; everything is escaped.

    Kept, since it holds the compiled templates: compiling them is half the time of a small report.
    """
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader([folder, _TEMPLATES]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"words": format_name, "count": lambda amount: f"{amount:,}", "tied": _keep_together}
    return made


def embed_json(value: Json) -> Markup:
    """JSON for a script block: no byte of it can end the block or begin a comment."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return Markup(text)


def _keep_together(sentence: str) -> str:
    """The sentence with numbers kept on one line with what belongs to them."""
    for loose in (" %", "adjusted p ", "< 0", " points"):
        sentence = sentence.replace(loose, loose.replace(" ", "\u00a0"))
    return sentence


def _fitting_tables(tables: Mapping[str, Json]) -> dict[str, Json]:
    sizes = {name: len(pack_json(table)) for name, table in tables.items()}
    ends = accumulate(sizes.values())
    return {name: tables[name] for name, end in zip(sizes, ends, strict=True) if end <= _MOST_BYTES}


def _flat(table: pl.DataFrame) -> pl.DataFrame:
    """Lists as words, which is what a cell of a CSV can hold."""
    lists = [name for name, kind in table.schema.items() if isinstance(kind, pl.List)]
    return table.with_columns(pl.col(lists).list.eval(pl.element().cast(pl.String)).list.join(" "))


def _static(files: Sequence[str]) -> str:
    return "\n".join((_STATIC / file).read_text(encoding="utf-8") for file in files)


def _script_of(files: Sequence[str], more: str) -> str:
    """The shared scripts and more, in one function that keeps their names out of the page's global scope."""
    return f'(() => {{\n"use strict";\n{_static(files)}\n{more}}})();'


def _digest(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"
