"""Whether a finding hangs on its cut: the shares of labels again, at other cuts of the same values.

A cut is a choice (BOLD cuts sentiment at 0.5, VADER's authors at 0.05), and a gap that is there at one cut
only says as much about the cut as about the groups. Each share is compared again at every cut of a grid. Its
p-values are corrected as if the run had been made with that cut: in the family of the run, with the p-values
of this one share replaced. At the run's own cut the numbers are those of ``comparisons``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import polars as pl

from evenhand.audits.analysis.group_comparison import GroupComparer, correct_rows
from evenhand.audits.analysis.quantities import Axis, Floats, Quantity, Row, name_columns
from evenhand.core.records import MetricInfo, OutputInfo
from evenhand.store.schemas import CUTS, DISTRIBUTIONS

CUT_GRID = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.75)
"""Cuts in addition to a metric's own, in parts of the way from 0 to the end of its range."""
FEW_CUTS = (0.05, 0.1, 0.25, 0.5)
"""The same for a run of many groups."""
MANY_GROUPS = 100
MOST_WORK = 500_000_000
"""Rows read at most, over all groups, shares and cuts: about half a minute. Exploratory shares go first."""

_KEY = itemgetter("suite", "axis", "group")
GAP_COLUMNS = ("baseline", "baseline_value", "estimate", "low", "high", "p", "null_reason")


@dataclass(frozen=True, slots=True)
class LabelShare:
    """A label that begins at a cut: the texts at or beyond it, on its side."""

    values: Quantity
    """The values that are cut."""
    output: str
    """The name of the share."""
    own: float
    """The metric's own cut."""
    below: bool
    """Whether the label counts values at or below the cut."""
    end: float
    """The end of the range on that side."""


def find_cut_shares(infos: Mapping[str, MetricInfo], quantities: Sequence[Quantity]) -> list[LabelShare]:
    """The shares of labels that begin at a cut, primary ones first: the lowest label and the highest."""
    means = {(item.metric, item.output): item for item in quantities if item.kind == "mean"}
    shares: list[LabelShare] = []
    for spec, info in infos.items():
        for output in info.outputs:
            values = means.get((spec, output.name))
            if values is None or not output.cuts or output.high is None or output.low is None:
                continue
            # A single cut, or two on either side of 0: the labels between them have no cut of their own.
            names, labels = output.shares(), output.labels
            if len(output.cuts) > 1:
                shares.append(LabelShare(values, names[labels[0]], output.cuts[0], True, output.low))
            shares.append(LabelShare(values, names[labels[-1]], output.cuts[-1], False, output.high))
    return sorted(shares, key=lambda share: share.output not in infos[share.values.metric].primary)


def cut_table(
    comparer: GroupComparer,
    axes: Sequence[Axis],
    infos: Mapping[str, MetricInfo],
    quantities: Sequence[Quantity],
    comparisons: pl.DataFrame,
) -> pl.DataFrame:
    """Each group's share at every cut, and its gap to the baseline of its axis."""
    rows: list[Row] = []
    left = MOST_WORK
    parts = FEW_CUTS if sum(len(axis.groups) for axis in axes) > MANY_GROUPS else CUT_GRID
    for share in find_cut_shares(infos, quantities):
        # From the middle of the range outwards.
        grid = sorted({round(share.end * part, 6) for part in parts} | {share.own}, key=abs)
        left -= len(grid) * sum(axis.rows.size * len(axis.groups) for axis in axes)
        if left < 0:
            break
        rows += _rows(share, grid, comparer, axes, comparisons)
    return pl.DataFrame(rows, schema=dict(CUTS))


def _rows(
    share: LabelShare,
    grid: Sequence[float],
    comparer: GroupComparer,
    axes: Sequence[Axis],
    comparisons: pl.DataFrame,
) -> Iterator[Row]:
    """The rows of a share, cut by cut; all cuts of an axis are judged together."""
    # The share at each cut, as a quantity of 0 and 1.
    values, flags = share.values.values, list[Quantity]()
    for cut in grid:
        beyond = values <= cut if share.below else values >= cut
        known: Floats = np.where(np.isnan(values), np.nan, beyond)
        flags.append(replace(share.values, output=share.output, kind="share", values=known))
    gaps = [comparer.compare_outputs(axis, flags, ratios=False) for axis in axes]
    estimates = [comparer.estimate_groups(axis, flags) for axis in axes]
    # The families of this share's gaps, in which its p-values are replaced cut by cut.
    is_own = (pl.col("metric") == share.values.metric) & (pl.col("output") == share.output)
    families = comparisons.filter(is_own)["family"].unique().implode()
    members = comparisons.with_columns(is_own=is_own).filter(pl.col("family").is_in(families)).to_dicts()
    for place, cut in enumerate(grid):
        of_group = {_KEY(gap): gap for of_axis in gaps for gap in of_axis[place]}
        family = [
            {**row, "p": of_group.get(_KEY(row), row)["p"]} if row["is_own"] else row for row in members
        ]
        corrected = correct_rows(family, comparer.correction)
        p_adjusted = {_KEY(row): row["p_adjusted"] for row in corrected if row["is_own"]}
        for axis, of_axis in zip(axes, estimates, strict=True):
            for group, estimate in zip(axis.groups, of_axis[place], strict=True):
                key = (axis.suite, axis.name, group)
                row = {"model": comparer.model, "group": group, "cut": cut, "own": cut == share.own}
                row |= {"value": estimate.value, "value_low": estimate.low, "value_high": estimate.high}
                gap = {name: of_group.get(key, {}).get(name) for name in GAP_COLUMNS}
                gap["p_adjusted"] = p_adjusted.get(key) if key in of_group else None
                yield {**name_columns(axis, flags[place]), **row, **gap}


BINS = 24
"""Bins of a range; fewer where values are whole numbers of a small range."""
QUANTILES: Mapping[str, float] = {"q05": 0.05, "q25": 0.25, "q50": 0.5, "q75": 0.75, "q95": 0.95}


class HistogramBins(NamedTuple):
    """Equal bins from low to high; a value on a border belongs to the bin above, the last one to the last."""

    low: float
    high: float
    number: int

    def counts(self, values: Floats) -> list[int]:
        """How many values fall into each bin; those outside count in the outermost."""
        width = (self.high - self.low) / self.number
        # A hair to the right, so that 0.3 lies in the bin that begins at 0.3 whatever its bits.
        places = np.floor((values - self.low) / width + 1e-9).astype(np.int64)
        inside = np.clip(places, 0, self.number - 1)
        counts: list[int] = np.bincount(inside, minlength=self.number).tolist()
        return counts


def distribution_table(
    model: str, axes: Sequence[Axis], infos: Mapping[str, MetricInfo], quantities: Sequence[Quantity]
) -> pl.DataFrame:
    """For each axis, group and output its counts and quantiles; groups without values are left out.

    All groups of an output share its bins: the output's own range where it has one, else that of the values.
    """
    rows: list[Row] = []
    for quantity in quantities:
        outputs = {output.name: output for output in infos[quantity.metric].outputs}
        if quantity.kind != "mean" or not (bins := find_bins(quantity.values, outputs[quantity.output])):
            continue
        for axis in axes:
            values = quantity.values[axis.rows]
            for code, group in enumerate(axis.groups):
                own = values[(axis.codes == code) & np.isfinite(values)]
                if not own.size:
                    continue
                quantiles = np.quantile(own, list(QUANTILES.values())).tolist()
                row = name_columns(axis, quantity) | {"model": model, "group": group, "n": own.size}
                row |= {"low": bins.low, "high": bins.high, "counts": bins.counts(own)}
                rows.append(row | dict(zip(QUANTILES, quantiles, strict=True)))
    return pl.DataFrame(rows, schema=dict(DISTRIBUTIONS))


def find_bins(values: Floats, output: OutputInfo) -> HistogramBins | None:
    """The bins of an output's values; None without values.

    Whole numbers of a range below ``BINS`` have a bin each, with the number in its middle.
    """
    known = values[np.isfinite(values)]
    if not known.size:
        return None
    low, high = float(known.min()), float(known.max())
    if output.low is not None and output.high is not None:
        return HistogramBins(output.low, output.high, BINS)
    if high - low < BINS and bool(np.all(known == np.round(known))):
        return HistogramBins(low - 0.5, high + 0.5, round(high - low) + 1)
    margin = 0.5 if high == low else 0.0
    return HistogramBins(low - margin, high + margin, BINS)
