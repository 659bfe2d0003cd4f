"""At which cuts a share is known: what the slider of a chart can be moved to."""

from __future__ import annotations

import polars as pl

from evenhand.report.overall import OverallKey
from evenhand.store.run import Run

_KEY = ("suite", "model", "axis", "metric", "output")


def grids(run: Run) -> dict[OverallKey, tuple[tuple[float, ...], int]]:
    """For each axis and share its cuts, from the middle outwards, and which is the metric's own."""
    table = run.table("cuts").select(*_KEY, "cut", "own").unique(maintain_order=True)
    found: dict[OverallKey, tuple[tuple[float, ...], int]] = {}
    for key, part in table.group_by(*_KEY, maintain_order=True):
        ordered = part.sort(pl.col("cut").abs())
        suite, model, axis, metric, output = (str(word) for word in key)
        own = ordered["own"].to_list()
        if True in own:
            found[suite, model, axis, metric, output] = (tuple(ordered["cut"].to_list()), own.index(True))
    return found
