"""``report.html`` of a corpus run: the style, parts and rules of every report, with heat maps of its own."""

from __future__ import annotations

from pathlib import Path

from evenhand.core.digests import Json
from evenhand.corpus.report.page import build_page
from evenhand.report.document import EXPLORE_SCRIPTS, SIZE_LIMIT, embed_json, pack_tables, render_document
from evenhand.report.standings import STANDING_WORDS
from evenhand.report.wording import show_control_characters
from evenhand.store.run import Run

_FOLDER = Path(__file__).parent
_TABLES = ("occurrence", "cooccurrence", "contrasts", "problems")
_SENTENCE_ROOM = SIZE_LIMIT // 2
"""Bytes the sentences may take; the rest is for tables and heat maps."""


def corpus_html(run: Run) -> str:
    """The report of a corpus run as one HTML page."""
    content = build_page(run)
    sentences, left_out = _sentences(run, room=_SENTENCE_ROOM)
    tables, downloads = pack_tables({name: run.table(name) for name in _TABLES})
    return render_document(
        _FOLDER / "corpus.html.j2",
        style=_read_own("corpus.css"),
        scripts=EXPLORE_SCRIPTS,
        script=_read_own("corpus.js"),
        data=embed_json({"sentences": sentences, "unit": content.findings.unit}),
        page=content,
        words=STANDING_WORDS,
        left_out=left_out,
        tables=tables,
        downloads=downloads,
    )


def _sentences(run: Run, *, room: int) -> tuple[dict[str, Json], int]:
    """Sentences by cell, one more of each as long as there is room, and how many found none."""
    cells: dict[str, list[Json]] = {}
    waiting = [
        (f"{row['corpus']}\t{row['emotion']}\t{row['axis']}\t{row['group']}", row)
        for row in run.table("samples").iter_rows(named=True)
    ]
    ranks: dict[str, int] = {}
    ordered = []
    for key, row in waiting:
        ranks[key] = ranks.get(key, 0) + 1
        ordered.append((ranks[key], key, row))
    left_out = 0
    for _, key, row in sorted(ordered, key=lambda item: item[0]):
        room -= len(row["text"].encode("utf-8", "replace")) + len(row["file"]) + 40
        if room < 0:
            left_out += 1
            continue
        at = f"row {row['row']:,}" if row["byte"] is None else f"byte {row['byte']:,}"
        place = f"{show_control_characters(row['file'])}, {at}"
        cells.setdefault(key, []).append([show_control_characters(row["text"]), place])
    return dict(cells), left_out


def _read_own(file: str) -> str:
    return (_FOLDER / file).read_text(encoding="utf-8")
