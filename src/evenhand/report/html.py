r"""``report.html``: one file that opens from disk, asks nothing of the network and runs no text it shows.

The content-security policy allows the page's own style and script by their digests and nothing else, so
that even text that escaped escaping could not run. Model text is escaped by jinja2, or stands in a JSON
block with ``<`` written as ``\u003c`` and is shown by script as text.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import jinja2
from markupsafe import Markup

from evenhand.core.digests import Json
from evenhand.report.gaps import WORDS
from evenhand.report.page import Page, page
from evenhand.report.tables import columns
from evenhand.report.texts import Texts, texts
from evenhand.report.wording import name
from evenhand.store.run import Run

SIZE_LIMIT = 5_000_000
"""Bytes a page may have; what tables and charts leave of it goes to the texts."""
_STATIC = Path(__file__).parent / "static"
_TEMPLATES = Path(__file__).parent / "templates"
_SCRIPTS = ("data.js", "tabs.js", "explore.js", "texts.js", "download.js")
_TABLES = ("groups", "comparisons", "exclusions")


def html_report(run: Run) -> str:
    """The report of a run as one HTML page."""
    content = page(run)
    tables: dict[str, Json] = {table: columns(run.table(table)) for table in _TABLES}
    style, script = stylesheet(), script_of(_SCRIPTS)
    shell = len(_rendered(content, style, script, embedded(tables), _NO_TEXTS).encode("utf-8", "replace"))
    shown = texts(run, budget=SIZE_LIMIT - shell)
    return _rendered(content, style, script, embedded(tables | {"examples": shown.data}), shown)


def embedded(value: Json) -> Markup:
    """JSON for a script block: no byte of it can end the block or begin a comment."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return Markup(text)


def stylesheet() -> str:
    """The style every page of ours shares."""
    return _static(("report.css",))


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


def _rendered(content: Page, style: str, script: str, data: Markup, shown: Texts) -> str:
    template = environment().get_template("report.html.j2")
    return template.render(
        page=content,
        texts=shown,
        words=WORDS,
        style=Markup(style),
        script=Markup(script),
        policy=policy(style, script),
        data=data,
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
