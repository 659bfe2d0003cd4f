"""Writes the report of a run beside its tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from evenhand.core.errors import InputError
from evenhand.report.corpus.draw import corpus_html, corpus_json, corpus_markdown
from evenhand.report.html import html_report
from evenhand.report.json import json_report
from evenhand.report.markdown import markdown_report
from evenhand.report.reading import text_at
from evenhand.store.atomic import write_text
from evenhand.store.run import Run

Writers = Mapping[str, Callable[[Run], str]]

FORMATS: Writers = {"html": html_report, "json": json_report, "md": markdown_report}
OF_CORPORA: Writers = {"html": corpus_html, "json": corpus_json, "md": corpus_markdown}


def render(run: Run, formats: Sequence[str] = ("html", "json")) -> dict[str, Path]:
    """The files written, by format: ``report.html``, ``report.json``, ``report.md`` in the run folder.

    Each is whole or absent; an earlier one is replaced.
    """
    unknown = sorted(set(formats) - set(FORMATS))
    if unknown:
        raise InputError(
            f"the report format {unknown[0]!r} is not known",
            accepted=", ".join(FORMATS),
            todo="name one or more of these",
        )
    return {name: _write(run, name) for name in formats}


def _write(run: Run, name: str) -> Path:
    path = run.path / f"report.{name}"
    writers = OF_CORPORA if text_at(run.manifest, "identity", "command") == "corpus" else FORMATS
    write_text(path, writers[name](run))
    return path
