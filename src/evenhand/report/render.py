"""Writes the report of a run beside its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

from evenhand.core.errors import InputError
from evenhand.report.manifest import read_text
from evenhand.report.report_formats import ReportFormats, ReportWriter
from evenhand.store.atomic_writes import write_text
from evenhand.store.run import Run

FORMATS = ("html", "json", "md")
EXPORTS: Mapping[str, tuple[str, str]] = {
    "lm-eval": ("lm_eval.json", "lm_eval_results"),
    "model-card": ("model_card.md", "model_card"),
}
"""What other tools read, of audits and scored texts: file, and writer in `_EXPORTS_MODULE`, by format."""
_EXPORTS_MODULE = "evenhand.audits.report.exports"
_AUDIT = "evenhand.audits.report.formats"
FORMATS_OF_COMMANDS: Mapping[str, str] = {
    "audit": _AUDIT,
    "score": _AUDIT,
    "corpus": "evenhand.corpus.report.formats",
    "compare": "evenhand.audits.report.compare_report",
    "probe": "evenhand.probes.report.formats",
    "associate": "evenhand.audits.report.association_report",
    "agreement": "evenhand.annotate.report.agreement_report",
    "ratings": "evenhand.annotate.report.ratings_report",
    "validate": "evenhand.annotate.report.validation_report",
}
"""Command to the module that holds the ``FORMATS`` of its runs; by name, since it stands above this one."""


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
            expected=", ".join(known),
            fix="name one or more of these",
        )
    return {name: _write(run, name) for name in formats}


def _write(run: Run, name: str) -> Path:
    file, writer = _writer(read_text(run.manifest, "identity", "command"), name)
    write_text(run.path / file, writer(run))
    return run.path / file


def _writer(command: str, name: str) -> tuple[str, ReportWriter]:
    module = FORMATS_OF_COMMANDS.get(command, _AUDIT)
    if name in EXPORTS:
        if module != _AUDIT:
            raise InputError(
                f"a run of `evenhand {command}` has no {name}",
                expected=f"{', '.join(FORMATS)}; {name} for runs of audit and score",
                fix="name another format",
            )
        file, function = EXPORTS[name]
        return file, getattr(import_module(_EXPORTS_MODULE), function)
    formats: ReportFormats = import_module(module).FORMATS
    return f"report.{name}", {"html": formats.html, "json": formats.json, "md": formats.markdown}[name]
