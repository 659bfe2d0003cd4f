"""``power``: how many prompts and samples show a gap, planned from a pilot run or from assumptions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

import polars as pl
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evenhand.audits.analysis.group_comparison import GapSide, split_sides
from evenhand.audits.analysis.quantities import Axis, Row, cross_axes, read_axes
from evenhand.audits.loaded_run import FILES, FinishedRun, check_has_comparisons, load_run, read_command
from evenhand.audits.options import PowerOptions
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options
from evenhand.report.wording import format_name, show_control_characters
from evenhand.stats.contrasts import SHARES
from evenhand.stats.corrections import Correction, correct_by_family
from evenhand.stats.power_analysis import (
    GapSpread,
    Growth,
    clusters_needed,
    required_growth,
    variance_within,
)
from evenhand.stats.quantiles import t_quantile
from evenhand.store.run import Run, run_errors


class SampleSizePlanner:
    """Plans the growth of one run."""

    def __init__(self, loaded: FinishedRun, *, level: float = 0.95, power: float = 0.8) -> None:
        self._level, self._power = level, power
        plain = read_axes(loaded.prompt_ids, loaded.prompts)
        every = [*plain, *cross_axes(plain)[0]]
        self._axes = {(axis.suite, axis.name): axis for axis in every}
        if read_command(loaded.run) == "score":
            # Files that are compared have one name for what each calls by its own.
            self._axes |= {(FILES, axis.name): axis for axis in every}
        self._quantities = {(item.metric, item.output): item for item in loaded.quantities}

    def plan_growth(self, seen: Row, *, distance: float, alpha: float | None = None) -> Growth | None:
        """What it takes so that the interval of a comparison leaves everything at this distance outside.

        With the wanted power, if the true gap is the one seen and p of at most ``alpha`` (1 - level) decides.
        None for a gap without an interval, and for an axis the run does not have.
        """
        axis, low, high = self._axes.get((seen["suite"], seen["axis"])), seen["low"], seen["high"]
        if axis is None or low is None or high is None:
            return None
        group, other = self._read_sides(axis, seen)
        df = max(1.0, seen["n_clusters"] - 1)
        se = (high - low) / 2 / t_quantile((1 + self._level) / 2, df)
        within = variance_within(group.values, group.clusters, other.values, other.clusters)
        reach = GapSpread(1.0, df).detectable(alpha or 1 - self._level, self._power)
        return required_growth(se**2, within, wanted=(distance / reach) ** 2)

    def is_by_text(self, seen: Row) -> bool:
        """Whether every text of a comparison is a cluster of its own."""
        sides = self._read_sides(self._axes[seen["suite"], seen["axis"]], seen)
        clusters = [cluster for side in sides for cluster in side.clusters]
        return len(set(clusters)) == len(clusters)

    def _read_sides(self, axis: Axis, seen: Row) -> list[GapSide]:
        quantity = self._quantities[seen["metric"], seen["output"]]
        sides = split_sides(axis, seen["group"], seen["baseline"])
        return [GapSide.of(quantity, axis, rows) for rows in sides]


_COLUMNS: Mapping[str, pl.DataType] = {
    **dict.fromkeys(("suite", "axis", "group", "baseline", "metric", "output"), pl.String()),
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
    assumptions: str = ""
    """What a plan without a pilot assumes, in words."""

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
    gap, power, level, share = options["gap"], options["power"], options["level"], options["share"]
    rows: list[Row] = []
    assumptions = ""
    if run is None:
        room = max(share, 1 - share)
        if gap > room:
            raise InputError(
                f"a gap of {gap} from a share of {share}",
                expected=f"at most {room:g}: shares end at 0 and 1",
                fix="say the gap as a share, 0.05 for 5 points, or give a pilot run for a mean",
            )
        how = {"icc": options["icc"], "alpha": (1 - level) / options["comparisons"], "power": power}
        needed = clusters_needed(gap, share=share, samples=options["samples"], **how)
        rows.append({"group": "a", "baseline": "b", "clusters_needed": needed})
        assumptions = (
            f"assumed: a share of {share:g} (--share), an intraclass correlation of {options['icc']:g} "
            f"within prompts (--icc), completions per prompt: {options['samples']:,} (--samples), "
            f"comparisons corrected together: {options['comparisons']:,} (--comparisons), "
            f"level {level:g} (--level)"
        )
    else:
        with run_errors(run):
            pilot = run if isinstance(run, Run) else Run.open(run)
            check_has_comparisons(pilot)
            planner = SampleSizePlanner(load_run(pilot), level=level, power=power)
            table = pilot.table("comparisons").filter(~pl.col("exploratory"))
            if gap > 1 and (table["method"] == SHARES).any():
                raise InputError(
                    f"a gap of {gap:g}, and gaps of shares are never above 1",
                    expected="a gap from 0 to 1: 5 points are 0.05",
                    fix="write it as a fraction",
                )
            # What is decided after correction must be planned at the level that decides.
            correction: Correction = table["correction"][0] if table.height else "bh"
            tests = correct_by_family(table["p"].to_list(), table["family"].to_list(), correction)
            for row, test in zip(table.iter_rows(named=True), tests, strict=True):
                growth = planner.plan_growth(row, distance=gap, alpha=test.decision_level)
                if growth is not None and growth.clusters is not None:
                    needed = math.ceil(growth.clusters * row["n_clusters"])
                    row |= {"clusters_needed": needed, "samples_factor": growth.samples}
                rows.append(row)
    return SamplePlan(gap, power, level, pl.DataFrame(rows, schema=dict(_COLUMNS)), assumptions)


_LEGEND = (
    "gaps of shares from 0 to 1: 0.05 is 5 points; detectable: the minimum detectable difference; clusters: "
    "in this run; needed: with as many samples each; both count the two sides together; or samples: factor "
    "for the same prompts (no number: no factor is enough, or each cluster has one text)"
)


def summarise_plan(
    table: pl.DataFrame, *, gap: float, power: float, has_pilot: bool, assumptions: str = ""
) -> RenderableType:
    """What a gap of this size needs: one line an axis and output, that of the group which needs most."""
    planned = table.filter(pl.col("clusters_needed").is_not_null())
    title = f"to detect a gap of {gap:g} with {100 * power:g} % power"
    if planned.is_empty():
        reasons = ", ".join(str(reason) for reason in table["null_reason"].drop_nulls().unique())
        return Text(f"{title}: no plan can be made ({reasons or 'no comparisons'})", style="bold")
    if not has_pilot:
        answer = Text(f"{title}: {planned['clusters_needed'][0]:,} prompts per group", style="bold")
        return Group(answer, Text(assumptions, style="dim"))
    most = planned.sort("clusters_needed", descending=True).unique(
        ["suite", "axis", "metric", "output"], keep="first", maintain_order=True
    )
    lines = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for head in ("Axis", "Measure", "Group that needs most"):
        lines.add_column(head, overflow="fold")
    for head in ("Detectable", "Clusters\n(both sides)", "Needed\n(both sides)", "or samples"):
        lines.add_column(head, justify="right", no_wrap=True)
    for row in most.iter_rows(named=True):
        axis, metric, output, group = (format_name(row[key]) for key in ("axis", "metric", "output", "group"))
        detectable = "" if row["min_detectable"] is None else f"{row['min_detectable']:.3f}"
        samples = "no number" if row["samples_factor"] is None else f"{row['samples_factor']:.1f} x"
        clusters = (f"{row['n_clusters']:,}", f"{row['clusters_needed']:,}")
        cells = (axis, f"{metric}, {output}", group, detectable, *clusters, samples)
        lines.add_row(*(Text(show_control_characters(cell)) for cell in cells))
    return Group(Text(title, style="bold"), Text(""), lines, Text(_LEGEND, style="dim"))
