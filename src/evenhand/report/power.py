"""A sample plan on the terminal."""

from __future__ import annotations

import polars as pl
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evenhand.report.wording import name, visible

_LEGEND = (
    "gaps of shares from 0 to 1: 0.05 is 5 points; clusters: there now, on both sides; needed: at the same "
    "samples; or samples: of the same prompts, times as many"
)


def summary(table: pl.DataFrame, *, gap: float, power: float, has_pilot: bool) -> RenderableType:
    """What a gap of this size needs: one line an axis and output, that of the group which needs most."""
    planned = table.filter(pl.col("clusters_needed").is_not_null())
    title = f"to see a gap of {gap:g} with {100 * power:g} % power"
    if planned.is_empty():
        reasons = ", ".join(str(reason) for reason in table["null_reason"].drop_nulls().unique())
        return Text(f"{title}: no plan can be made ({reasons or 'no comparisons'})", style="bold")
    if not has_pilot:
        return Text(f"{title}: {planned['clusters_needed'][0]:,} prompts a group", style="bold")
    most = planned.sort("clusters_needed", descending=True).unique(
        ["suite", "axis", "metric", "output"], keep="first", maintain_order=True
    )
    found = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for head in ("Axis", "Measure", "Group that needs most"):
        found.add_column(head, overflow="fold")
    for head in ("Seen from", "Clusters", "Needed", "or samples"):
        found.add_column(head, justify="right", no_wrap=True)
    for row in most.iter_rows(named=True):
        samples = "no number" if row["samples_factor"] is None else f"{row['samples_factor']:.1f} x"
        names = (name(row["axis"]), f"{name(row['metric'])}, {name(row['output'])}", name(row["group"]))
        seen = "" if row["min_detectable"] is None else f"{row['min_detectable']:.3f}"
        numbers = (seen, f"{row['n_clusters']:,}", f"{row['clusters_needed']:,}", samples)
        found.add_row(*(Text(visible(str(cell))) for cell in (*names, *numbers)))
    return Group(Text(title, style="bold"), Text(""), found, Text(_LEGEND, style="dim"))
