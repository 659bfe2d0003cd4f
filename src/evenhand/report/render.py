"""Writes the report of a run beside its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

from evenhand.core.errors import InputError
from evenhand.report.exchange import lm_eval_results, model_card
from evenhand.report.forms import Forms, Writer
from evenhand.report.html import html_report
from evenhand.report.json import json_report
from evenhand.report.markdown import markdown_report
from evenhand.report.reading import text_at
from evenhand.store.atomic import write_text
from evenhand.store.run import Run

FORMATS: Mapping[str, Writer] = {"html": html_report, "json": json_report, "md": markdown_report}
EXPORTS: Mapping[str, tuple[str, Writer]] = {
    "lm-eval": ("lm_eval.json", lm_eval_results),
    "model-card": ("model_card.md", model_card),
}
"""What other tools read, of audits and scored texts: file and writer by format."""
OF_COMMANDS: Mapping[str, str] = {
    "corpus": "evenhand.report.corpus.draw",
    "compare": "evenhand.report.compare.draw",
    "probe": "evenhand.report.probe.draw",
    "associate": "evenhand.report.associate.draw",
    "agreement": "evenhand.report.people.agreement",
    "ratings": "evenhand.report.people.ratings",
    "validate": "evenhand.report.people.validate",
}
"""The runs that are not audits or scored texts: the module that holds their ``FORMS``."""


def render(run: Run, formats: Sequence[str] = ("html", "json")) -> dict[str, Path]:
    """The files written, by format: ``report.html``, ``report.json``, ``report.md`` in the run folder.

    ``lm-eval`` and ``model-card`` write ``lm_eval.json`` and ``model_card.md``. Each is whole or absent; an
    earlier one is replaced.
    """
    known = (*FORMATS, *EXPORTS)
    unknown = sorted(set(formats) - set(known))
    if unknown:
        raise InputError(
            f"the report format {unknown[0]!r} is not known",
            accepted=", ".join(known),
            todo="name one or more of these",
        )
    return {name: _write(run, name) for name in formats}


def _write(run: Run, name: str) -> Path:
    file, writer = _writer(text_at(run.manifest, "identity", "command"), name)
    write_text(run.path / file, writer(run))
    return run.path / file


def _writer(command: str, name: str) -> tuple[str, Writer]:
    file = f"report.{name}"
    if command not in OF_COMMANDS:
        return EXPORTS.get(name) or (file, FORMATS[name])
    if name in EXPORTS:
        raise InputError(
            f"a run of `evenhand {command}` has no {name}",
            accepted=f"{', '.join(FORMATS)}; {name} for runs of audit and score",
            todo="name another format",
        )
    forms: Forms = import_module(OF_COMMANDS[command]).FORMS
    return file, {"html": forms.html, "json": forms.json, "md": forms.markdown}[name]
