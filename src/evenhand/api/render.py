"""``render``: write the report of a run again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evenhand.core.options import checks_options
from evenhand.store.run import Run, naming_run


@checks_options
def render(run: Run | Path | str, formats: str | Sequence[str] = ("html", "json")) -> dict[str, Path]:
    """The written files by format, from the tables of a run.

    Formats: ``html``, ``md``, ``json``; for other tools ``lm-eval`` and ``model-card``.
    """
    from evenhand.api.parts import split_names  # which renders runs itself
    from evenhand.report.render import render as write

    with naming_run(run):
        return write(run if isinstance(run, Run) else Run.open(run), split_names(formats) or ())
