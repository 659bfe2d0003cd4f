"""``render``: write the report of a run again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evenhand.core.options import checks_options, split_names
from evenhand.store.run import Run, run_errors


@checks_options
def render(run: Run | Path | str, formats: str | Sequence[str] = ("html", "json")) -> dict[str, Path]:
    """The written files by format, from the tables of a run.

    Formats: ``html``, ``md``, ``json``; for other tools ``lm-eval`` and ``model-card``.
    """
    from evenhand.report.render import render as write

    with run_errors(run):
        return write(run if isinstance(run, Run) else Run.open(run), split_names(formats) or ())
