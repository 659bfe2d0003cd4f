"""``power``: how many prompts and samples show a gap, planned from a pilot run or from a guess."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack, cast

import polars as pl
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evenhand.audits.analysis.gaps import GapSide
from evenhand.audits.analysis.group_comparison import split_sides
from evenhand.audits.analysis.paired_runs import FILES
from evenhand.audits.analysis.quantities import Axis, Quantity, cross_axes, read_axes
from evenhand.audits.loaded_run import FinishedRun, check_has_comparisons, load_run, read_command
from evenhand.audits.options import PowerOptions
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options
from evenhand.report.wording import format_name, show_control_characters
from evenhand.stats.power_analysis import Growth, clusters_needed, required_growth, variance_within
from evenhand.stats.quantiles import t_quantile
from evenhand.stats.results import NO_VARIATION
from evenhand.store.run import Run, run_errors


@dataclass(frozen=True, slots=True)
class ObservedGap:
    """A gap as a run saw it."""

    suite: str
    axis: str
    group: str
    baseline: str
    metric: str
    output: str
    low: float
    high: float
    n_clusters: int


class SampleSizePlanner:
    """Plans the growth of one run."""

    def __init__(self, loaded: FinishedRun, *, level: float = 0.95, power: float = 0.8) -> None:
        self._level, self._power = level, power
        plain = read_axes(loaded.prompt_ids, loaded.prompts)
        every = [*plain, *cross_axes(plain, {}).axes]
        self._axes: dict[tuple[str, str], Axis] = {(axis.suite, axis.name): axis for axis in every}
        if read_command(loaded.run) == "score":
            # Files that are compared have one name for what each calls by its own.
            self._axes |= {(FILES, axis.name): axis for axis in every}
        self._quantities: dict[tuple[str, str], Quantity] = {
            (item.metric, item.output): item for item in loaded.quantities
        }

    def plan_growth(self, seen: ObservedGap, *, distance: float) -> Growth | None:
        """What it takes so that the interval leaves everything at this distance from the gap outside.

        With the wanted power, if the true gap is the one seen. None for an axis the run does not have.
        """
        axis, quantity = self._axes.get((seen.suite, seen.axis)), self._quantities[seen.metric, seen.output]
        if axis is None:
            return None
        sides = split_sides(axis, seen.group, seen.baseline)
        group, other = (GapSide.of(quantity, axis, rows) for rows in sides)
        df = max(1.0, seen.n_clusters - 1)
        alpha, beta = t_quantile((1 + self._level) / 2, df), t_quantile(self._power, df)
        variance = ((seen.high - seen.low) / 2 / alpha) ** 2
        within = variance_within(group.values, group.clusters, other.values, other.clusters)
        return required_growth(variance, within, wanted=(distance / (alpha + beta)) ** 2)


_COLUMNS: Mapping[str, pl.DataType] = {
    "suite": pl.String(),
    "axis": pl.String(),
    "group": pl.String(),
    "baseline": pl.String(),
    "metric": pl.String(),
    "output": pl.String(),
    "n_clusters": pl.Int64(),
    "min_detectable": pl.Float64(),
    "clusters_needed": pl.Int64(),
    "samples_factor": pl.Float64(),
    "null_reason": pl.String(),
}


@dataclass(frozen=True, slots=True)
class SamplePlan:
    """What a gap of this size needs to be seen; one row a comparison of the pilot."""

    gap: float
    power: float
    level: float
    table: pl.DataFrame
    """``clusters_needed`` at the pilot's samples; ``samples_factor``: times the samples instead, or null."""

    @property
    def clusters(self) -> int | None:
        """The clusters that every comparison needs at most; null where none could be planned."""
        most = self.table["clusters_needed"].max()
        return most if isinstance(most, int) else None


@checks_options
def power(run: Run | Path | str | None = None, **options: Unpack[PowerOptions]) -> SamplePlan:
    """The plan of samples that shows a true gap of this size.

    From a pilot run: for each primary comparison, from the spread its test saw. Without a run: for two groups
    of shares near ``share``, ``samples`` texts per prompt, alike within a prompt by ``icc``.
    """
    gap, power, level = options["gap"], options["power"], options["level"]
    if run is None:
        rows = [_plan_from_guess(options)]
    else:
        with run_errors(run):
            rows = _plan_from_pilot(run if isinstance(run, Run) else Run.open(run), gap, power, level)
    return SamplePlan(gap, power, level, pl.DataFrame(rows, schema=dict(_COLUMNS)))


def _plan_from_pilot(pilot: Run, gap: float, power: float, level: float) -> list[dict[str, object]]:
    check_has_comparisons(pilot)
    planner = SampleSizePlanner(load_run(pilot), level=level, power=power)
    table = pilot.table("comparisons").filter(~pl.col("exploratory"))
    columns = [name for name in _COLUMNS if name in table.columns]
    rows: list[dict[str, object]] = list(table.select(columns).iter_rows(named=True))
    for row, low, high in zip(rows, table["low"], table["high"], strict=True):
        if low is None or high is None:
            continue
        names = ("suite", "axis", "group", "baseline", "metric", "output")
        clusters = cast(int, row["n_clusters"])
        known = {name: str(row[name]) for name in names}
        seen = ObservedGap(**known, low=low, high=high, n_clusters=clusters)
        growth = planner.plan_growth(seen, distance=gap)
        if growth is not None and growth.clusters is not None:
            row["clusters_needed"] = math.ceil(growth.clusters * clusters)
            row["samples_factor"] = growth.samples
    return rows


def _plan_from_guess(options: PowerOptions) -> dict[str, object]:
    gap, share = options["gap"], options["share"]
    room = max(share, 1 - share)
    if gap > room:
        raise InputError(
            f"a gap of {gap} from a share of {share}",
            expected=f"at most {room:g}: shares end at 0 and 1",
            fix="say the gap as a share, 0.05 for 5 points, or give a pilot run for a mean",
        )
    if share in (0, 1):
        return {"group": "a", "baseline": "b", "clusters_needed": None, "null_reason": NO_VARIATION}
    clusters = clusters_needed(
        gap,
        sd=math.sqrt(share * (1 - share)),
        icc=options["icc"],
        samples=options["samples"],
        level=options["level"],
        power=options["power"],
    )
    return {"group": "a", "baseline": "b", "clusters_needed": clusters, "null_reason": None}


_LEGEND = (
    "gaps of shares from 0 to 1: 0.05 is 5 points; clusters: there now, on both sides; needed: at the same "
    "samples; or samples: of the same prompts, times as many"
)


def summarise_plan(table: pl.DataFrame, *, gap: float, power: float, has_pilot: bool) -> RenderableType:
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
    lines = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for head in ("Axis", "Measure", "Group that needs most"):
        lines.add_column(head, overflow="fold")
    for head in ("Seen from", "Clusters", "Needed", "or samples"):
        lines.add_column(head, justify="right", no_wrap=True)
    for row in most.iter_rows(named=True):
        samples = "no number" if row["samples_factor"] is None else f"{row['samples_factor']:.1f} x"
        names = (
            format_name(row["axis"]),
            f"{format_name(row['metric'])}, {format_name(row['output'])}",
            format_name(row["group"]),
        )
        seen = "" if row["min_detectable"] is None else f"{row['min_detectable']:.3f}"
        numbers = (seen, f"{row['n_clusters']:,}", f"{row['clusters_needed']:,}", samples)
        lines.add_row(*(Text(show_control_characters(str(cell))) for cell in (*names, *numbers)))
    return Group(Text(title, style="bold"), Text(""), lines, Text(_LEGEND, style="dim"))
