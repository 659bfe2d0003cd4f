"""The forms a report of a run takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from rich.console import RenderableType

from evenhand.store.run import Run

ReportWriter = Callable[[Run], str]


class ReportFormats(NamedTuple):
    """How the runs of one command are shown."""

    html: ReportWriter
    json: ReportWriter
    markdown: ReportWriter
    summary: Callable[[Run], RenderableType]
    """On the terminal."""
