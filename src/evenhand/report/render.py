"""Writes the report of a run beside its tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import cast

from evenhand.core.errors import InputError
from evenhand.report.html import html_report
from evenhand.report.json import json_report
from evenhand.report.markdown import markdown_report
from evenhand.report.reading import text_at
from evenhand.store.atomic import write_text
from evenhand.store.run import Run

Writer = Callable[[Run], str]

FORMATS: Mapping[str, Writer] = {"html": html_report, "json": json_report, "md": markdown_report}
_WORDS = {"html": "html", "json": "json", "md": "markdown"}
OF_COMMANDS: Mapping[str, str] = {
    "corpus": "evenhand.report.corpus.draw",
    "compare": "evenhand.report.compare.draw",
}
"""The runs that are not audits or scored texts: the module of their ``<command>_html`` and its twins."""


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
    write_text(path, _writer(text_at(run.manifest, "identity", "command"), name)(run))
    return path


def _writer(command: str, name: str) -> Writer:
    if command not in OF_COMMANDS:
        return FORMATS[name]
    return cast(Writer, getattr(import_module(OF_COMMANDS[command]), f"{command}_{_WORDS[name]}"))
