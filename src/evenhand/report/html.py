"""``report.html`` of an audit or of scored texts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from evenhand.core.digests import Json
from evenhand.report.document import SIZE_LIMIT, document, embedded, whole_tables
from evenhand.report.findings import Findings
from evenhand.report.gaps import WORDS
from evenhand.report.packing import packed
from evenhand.report.page import Page, page
from evenhand.report.reading import mapping_at, text_at
from evenhand.report.strata import MOST
from evenhand.report.tables import GAP, columns
from evenhand.report.texts import Texts, texts
from evenhand.report.wording import visible
from evenhand.store.run import Run
from evenhand.store.schemas import SCHEMAS

_FOLDER = Path(__file__).parent
_SCRIPTS = ("data.js", "packed.js", "tabs.js", "explore.js", "views.js", "cuts.js", "texts.js", "download.js")
_WITH_TEXTS = ("prompts", "generations", "scores", "examples", "explanations")
_FIRST = ("comparisons", "groups", "omnibus", "exclusions", "cuts")
_TABLES = (*_FIRST, *(name for name in SCHEMAS if name not in (*_WITH_TEXTS, *_FIRST)))


def html_report(run: Run) -> str:
    """The report of a run as one HTML page."""
    content = page(run)
    carried = _carried(run, content.found)
    budget = SIZE_LIMIT - len(_rendered(content, carried, _NO_TEXTS).encode("utf-8", "replace"))
    return _rendered(content, carried, texts(run, budget=budget))


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
        name: columns(tables[name].select([key for key in GAP if key in tables[name].columns]))
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


def _rendered(content: Page, carried: _Carried, shown: Texts) -> str:
    return document(
        _FOLDER / "templates" / "report.html.j2",
        style=(_FOLDER / "static" / "audit.css").read_text(encoding="utf-8"),
        scripts=_SCRIPTS,
        data=carried.data,
        page=content,
        texts=shown,
        words=WORDS,
        tables=carried.tables,
        downloads=carried.names,
        most=MOST,
        examples=Markup(packed(shown.data)),
    )
