"""``render`` and ``summarise_run``: the report of a run in every format."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Final

from rich.console import RenderableType

from evenhand.core.errors import InputError
from evenhand.core.options import checks_options, split_names
from evenhand.report.document import Report
from evenhand.report.html import to_html
from evenhand.report.json_tables import to_json
from evenhand.report.manifest import read_text
from evenhand.report.plain_formats import to_markdown, to_terminal
from evenhand.store.atomic_writes import write_text
from evenhand.store.run import Run, run_errors

RENDERERS: Final[Mapping[str, Callable[[Report], str]]] = {
    "html": to_html,
    "json": to_json,
    "md": to_markdown,
}
EXPORTS: Final[Mapping[str, tuple[str, str]]] = {
    "lm-eval": ("lm_eval.json", "lm_eval_results"),
    "model-card": ("model_card.md", "model_card"),
}
"""What other tools read, of audits and scored texts: file, and writer in `_EXPORTS_MODULE`, by format."""
_EXPORTS_MODULE = "evenhand.audits.report.exports"
_AUDIT = "evenhand.audits.report.page"
_MODULES: Final[Mapping[str, str]] = {
    "corpus": "evenhand.corpus.report.page",
    "compare": "evenhand.audits.report.compare_report",
    "probe": "evenhand.probes.report.page",
    "associate": "evenhand.audits.report.association_report",
    **dict.fromkeys(("agreement", "ratings", "validate"), "evenhand.annotate.report.page"),
}
"""Command to the module with its ``build_report``; by name, since it is in a room above this one."""


@checks_options
def render(run: Run | Path | str, formats: str | Sequence[str] = ("html", "json")) -> dict[str, Path]:
    """The written files by format, from the tables of a run.

    Formats: ``html``, ``md``, ``json``; for other tools ``lm-eval`` and ``model-card``, which write
    ``lm_eval.json`` and ``model_card.md``. Each file is whole or absent; an earlier one is replaced.
    """
    with run_errors(run):
        run, formats = run if isinstance(run, Run) else Run.open(run), split_names(formats) or ()
        if unknown := sorted(set(formats) - set(RENDERERS) - set(EXPORTS)):
            raise InputError(
                f"the report format {unknown[0]!r} is not known",
                expected=", ".join([*RENDERERS, *EXPORTS]),
                fix="name one or more of these",
            )
        if (exports := sorted(set(formats) & set(EXPORTS))) and _module(run) != _AUDIT:
            raise InputError(
                f"a run of `evenhand {read_text(run.manifest, 'identity', 'command')}` has no {exports[0]}",
                expected=f"{', '.join(RENDERERS)}; {exports[0]} for runs of audit and score",
                fix="name another format",
            )
        report, paths = build_report(run), {}
        for name in formats:
            if name in EXPORTS:
                file, function = EXPORTS[name]
                text = getattr(import_module(_EXPORTS_MODULE), function)(run)
            else:
                file, text = f"report.{name}", RENDERERS[name](report)
            write_text(run.path / file, text)
            paths[name] = run.path / file
        return paths


def build_report(run: Run) -> Report:
    """The content of a run's report."""
    builder: Callable[[Run], Report] = import_module(_module(run)).build_report
    return builder(run)


def format_report(run: Run, name: str) -> str:
    """The report of a run as ``html``, ``json`` or ``md`` text."""
    return RENDERERS[name](build_report(run))


def summarise_run(run: Run) -> RenderableType:
    """The verdict of a run and its most important tables, for the terminal."""
    return to_terminal(build_report(run))


def _module(run: Run) -> str:
    return _MODULES.get(read_text(run.manifest, "identity", "command"), _AUDIT)
